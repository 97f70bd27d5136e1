"""Tests of rooms/world.py: the batch of games as a whole."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rooms_helpers import ALL_TASKS, STANDARD, cycled, play, scene, start, tasks, world_of

from skillstack import SkillstackError
from skillstack.worlds.rooms import ACTIONS, Randomisation, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.goals import _judge_achieved, _judge_executable
from skillstack.worlds.rooms.layout import NORTH, _are_states, _start_games
from skillstack.worlds.rooms.physics import _step_games
from skillstack.worlds.rooms.raycaster import _cast_frames
from skillstack.worlds.rooms.scenery import _paste_frames

RANDOM_LOOKS = RoomsConfig(randomise=Randomisation(variety=16))
BIG = RoomsConfig(big=True)
CONFIGS = pytest.mark.parametrize("config", [STANDARD, BIG, RANDOM_LOOKS], ids=["small", "big", "random looks"])


class TestSameSeedSameGames:
    def history(self, config: RoomsConfig, games: list[int], threads: int = 1, batch: int = 0) -> list[bytes]:
        """Everything that can be seen of some games of a long list, played at random `batch` at a time."""
        actions = np.random.default_rng(1).integers(len(ACTIONS), size=(12, 40))
        seen: dict[int, list[bytes]] = {game: [] for game in games}
        for begin in range(0, len(games), batch or len(games)):
            some = np.array(games[begin : begin + (batch or len(games))])
            world = world_of(config, len(some)) if threads == 1 else RoomsWorld(config, len(some), threads)
            world.reset(cycled(ALL_TASKS, 40)[some], 77 + some)
            for row in actions:
                world.step(row[some])
                asked = np.broadcast_to(ALL_TASKS, (len(some), 24, 2))
                everything = world.snapshot(), world.observe(), world.achieved(asked), world.executable(asked)
                for place, game in enumerate(some.tolist()):
                    seen[game].append(b"".join(part[place].tobytes() for part in everything))
        return [b"".join(seen[game]) for game in sorted(games)]

    @CONFIGS
    def test_whatever_the_batch_size(self, config: RoomsConfig) -> None:
        config = replace(config, image_size=32)
        games = list(range(20))
        together = self.history(config, games)
        assert self.history(config, games, batch=1) == together
        assert self.history(config, games, batch=7) == together
        assert self.history(config, games[::-1]) == together
        assert len(set(together)) == 20

    @CONFIGS
    def test_whatever_the_number_of_threads(self, config: RoomsConfig) -> None:
        games = list(range(40))
        assert self.history(config, games, threads=3) == self.history(config, games)

    def test_other_seeds_are_other_games(self) -> None:
        world = start(STANDARD, 200, tasks("stack red"))
        assert len(np.unique(world.snapshot())) > 195

    def test_a_game_can_be_started_alone_without_touching_the_others(self) -> None:
        world = start(STANDARD, 6)
        play(world, 10)
        before = world.snapshot()
        world.reset(tasks("put white", "find red"), [5, 6], games=[4, 1])
        after = world.snapshot()
        np.testing.assert_array_equal(after[[0, 2, 3, 5]], before[[0, 2, 3, 5]])
        alone = RoomsWorld(STANDARD)
        alone.reset(tasks("put white"), [5])
        np.testing.assert_array_equal(after[[4]], alone.snapshot())


class TestSnapshots:
    @CONFIGS
    def test_they_are_small(self, config: RoomsConfig) -> None:
        assert world_of(config).snapshot().dtype.itemsize <= 64
        assert RoomsConfig(12, 12, max_blocks=32).slots == 32
        assert world_of(RoomsConfig(12, 12, max_blocks=32)).snapshot().dtype.itemsize < 200

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**64 - 1), st.integers(0, 23), st.lists(st.integers(0, 7), max_size=30), st.integers(0, 30))
    def test_a_game_goes_on_from_its_snapshot_as_it_would_have(
        self, seed: int, task: int, actions: list[int], place: int
    ) -> None:
        world, other = world_of(STANDARD), world_of(STANDARD, 3)
        world.reset(ALL_TASKS[[task]], [seed])
        for action in actions[:place]:
            world.step([action])
        other.restore(world.snapshot(), games=[2])
        for action in actions[place:]:
            world.step([action])
            other.step([action], games=[2])
        assert world.snapshot() == other.snapshot([2])
        np.testing.assert_array_equal(world.observe(), other.observe([2]))
        np.testing.assert_array_equal(world.achieved(ALL_TASKS[None]), other.achieved(ALL_TASKS[None], [2]))

    @CONFIGS
    def test_they_are_drawn_as_they_were_seen_without_touching_any_game(self, config: RoomsConfig) -> None:
        world = start(config, 24)
        kept, frames = [], []
        for _ in range(5):
            play(world, 3)
            kept.append(world.snapshot())
            frames.append(world.observe())
        now = world.snapshot()
        np.testing.assert_array_equal(world.render(np.concatenate(kept)), np.concatenate(frames))
        np.testing.assert_array_equal(world_of(config, 2).render(kept[0]), frames[0])
        np.testing.assert_array_equal(world.snapshot(), now)

    def test_they_are_copies(self) -> None:
        world = start(STANDARD, 4)
        kept, frame = world.snapshot(), world.observe()
        twin = kept.copy()
        world.step([4, 4, 4, 4])
        np.testing.assert_array_equal(kept, twin)
        world.restore(kept)
        kept["agent"][:] = 0
        np.testing.assert_array_equal(world.observe(), frame)

    def test_some_can_be_taken_and_put_back_anywhere(self) -> None:
        world = start(STANDARD, 6)
        everything = world.snapshot()
        np.testing.assert_array_equal(world.snapshot([5, 0]), everything[[5, 0]])
        world.restore(everything[[5, 0]], games=[1, 2])
        np.testing.assert_array_equal(world.snapshot(), everything[[0, 5, 0, 3, 4, 5]])

    def test_they_survive_a_file_and_read_only_memory(self) -> None:
        world = start(STANDARD, 6)
        kept = np.frombuffer(world.snapshot().tobytes(), dtype=world.state.dtype)
        assert not kept.flags.writeable
        np.testing.assert_array_equal(world.render(kept), world.observe())
        world.restore(kept)

    def test_none_at_all_can_be_drawn(self) -> None:
        assert world_of().render(world_of().snapshot([])).shape == (0, 84, 84, 3)
        assert world_of().observe([]).shape == (0, 84, 84, 3)


class TestBadSnapshots:
    @pytest.mark.parametrize(
        "other",
        [
            RoomsConfig(max_blocks=5),
            RoomsConfig(room_width=5),
            RoomsConfig(room_depth=7),
            BIG,
            RANDOM_LOOKS,
            RoomsConfig(items=("red", "yellow", "green", "blue", "purple", "white", "black", "orange")),
        ],
        ids=["fewer blocks", "narrower", "deeper", "big", "random looks", "more items"],
    )
    def test_those_of_other_settings_are_an_error(self, other: RoomsConfig) -> None:
        many = RoomsWorld(other, 300)  # so many that some are surely not possible here
        many.reset(np.repeat([[0, len(other.items) - 1]], 300, axis=0), np.arange(300))
        world = world_of(STANDARD, 300)
        for use in (world.restore, world.render):
            with pytest.raises(SkillstackError, match="not snapshots of a world with these settings"):
                use(many.snapshot())

    @pytest.mark.parametrize(
        ("part", "place", "value"),
        [
            ("agent", 0, 6), ("agent", 1, -1), ("agent", 2, 4), ("agent", 2, -1), ("agent", 3, 6), ("agent", 4, -2),
            ("room", 2, 7), ("room", 4, 1), ("blocks", (0, 0), 6), ("blocks", (0, 0), -2), ("blocks", (0, 1), 6),
            ("blocks", (0, 2), -1), ("blocks", (0, 3), 2), ("look", None, 1),
        ],
    )  # fmt: skip
    def test_a_damaged_one_is_an_error(self, part: str, place: object, value: int) -> None:
        world = scene((2, 3, NORTH), {(2, 2): "red"})
        damaged = world.snapshot()
        world.render(damaged)
        if place is None:
            damaged[part][0] = value
        else:
            damaged[part][0][place] = value
        with pytest.raises(SkillstackError, match="not snapshots of a world with these settings"):
            world.render(damaged)

    @pytest.mark.parametrize("wrong", [None, 5, "state", [1, 2], np.zeros((1, 84, 84, 3), dtype=np.uint8)])
    def test_other_things_are_an_error(self, wrong: object) -> None:
        for use in (world_of().restore, world_of().render):
            with pytest.raises(SkillstackError, match="not snapshots"):
                use(wrong)  # type: ignore[arg-type]

    def test_the_wrong_number_is_an_error(self) -> None:
        world = start(STANDARD, 4)
        with pytest.raises(SkillstackError, match="one snapshot for each of 4 games, not 3"):
            world.restore(world.snapshot([0, 1, 2]))
        with pytest.raises(SkillstackError, match="one snapshot for each of 1 games, not 4"):
            world.restore(world.snapshot(), games=[0])


class TestBadInput:
    @pytest.mark.parametrize(("num_games", "threads"), [(0, 1), (1, 0), (-1, 1)])
    def test_a_world_needs_a_game_and_a_thread(self, num_games: int, threads: int) -> None:
        with pytest.raises(SkillstackError, match="at least one game and one thread"):
            RoomsWorld(num_games=num_games, threads=threads)

    def test_bad_actions_leave_the_games_alone(self) -> None:
        world = start(STANDARD, 3)
        before = world.snapshot()
        for actions in ([0, 1], [0, 1, 8], [0, -1, 0], [0.0, 1.0, 2.0], [[0, 1, 2]]):
            with pytest.raises(SkillstackError, match="action"):
                world.step(actions)  # type: ignore[arg-type]
        np.testing.assert_array_equal(world.snapshot(), before)

    def test_the_actions_are_named_to_who_takes_a_wrong_one(self) -> None:
        with pytest.raises(SkillstackError, match=r"no action 8\. The actions are: 0 move forward, .* 7 put down"):
            world_of().step([8])

    @pytest.mark.parametrize("games", [[3], [-1], [0.5], "0"])
    def test_bad_games_are_an_error_everywhere(self, games: object) -> None:
        world = start(STANDARD, 3)
        for use in (
            lambda: world.reset(tasks("find red"), [0], games),
            lambda: world.step([0], games),
            lambda: world.observe(games),
            lambda: world.achieved(tasks("find red"), games),
            lambda: world.executable(tasks("find red"), games),
            lambda: world.snapshot(games),
            lambda: world.restore(world.state[:1], games),
        ):
            with pytest.raises(SkillstackError, match="Games are n"):
                use()

    def test_bad_tasks_are_an_error_everywhere(self) -> None:
        world = world_of()
        for wrong in ([[4, 0]], [[0, 6]], [[0, 0], [0, 0]], [0, 0]):
            for use in (lambda wrong=wrong: world.reset(wrong, [0]), lambda wrong=wrong: world.achieved(wrong)):
                with pytest.raises(SkillstackError, match=r"[Tt]ask"):
                    use()

    def test_bad_seeds_are_an_error(self) -> None:
        for wrong in ([-1], [1.5], [0, 1], 7, [2**64]):
            with pytest.raises(SkillstackError, match="one seed for each of 1 games"):
                world_of().reset(tasks("find red"), wrong)  # type: ignore[arg-type]


def test_nothing_is_compiled_again_for_one_game_or_for_odd_arrays() -> None:
    compiled = (_start_games, _step_games, _judge_achieved, _judge_executable, _paste_frames, _cast_frames, _are_states)

    def use(world: RoomsWorld, wanted: np.ndarray, games: object) -> list[int]:
        world.reset(wanted, np.arange(len(wanted)), games)
        world.step(np.zeros(len(wanted), dtype=np.int8), games)
        world.achieved(wanted, games)
        world.executable(wanted, games)
        world.observe(games)
        world.restore(world.snapshot(games), games)
        world.render(world.snapshot())
        world.render(world.snapshot([]))
        return [len(function.signatures) for function in compiled]

    for config in (STANDARD, RANDOM_LOOKS):
        before = use(world_of(config, 3), tasks("find red", "get red", "put red"), [0, 1, 2])
        assert use(world_of(config, 1), tasks("find red"), None) == before
        read_only = np.broadcast_to(tasks("find red"), (2, 2))
        assert use(world_of(config, 4), read_only, np.arange(4)[::-2]) == before
        assert use(world_of(config, 4), np.asfortranarray(read_only), range(2)) == before


def test_there_is_a_game_to_look_at_before_the_first_reset() -> None:
    world = RoomsWorld(num_games=2)
    assert world.observe().any()
    world.step([0, 1])


def test_it_says_what_it_is() -> None:
    world = world_of(replace(STANDARD, penalty=False))
    assert world.description.name == "rooms"
    assert world.rewards.of(np.array([False]), np.array([True])).tolist() == [0.0]
    assert world_of().rewards.of(np.array([False]), np.array([True])).tolist() == [-0.5]
