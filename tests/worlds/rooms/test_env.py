import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rooms_helpers import tasks

import skillstack  # noqa: F401  registers the environments
from skillstack import Instruction, SkillstackError
from skillstack.worlds.rooms import Randomisation
from skillstack.worlds.rooms.env import RoomsEnv, RoomsVectorEnv, make_config
from skillstack.worlds.rooms.oracle import shortest_path

ROOMS = "skillstack/Rooms-v0"
SETTINGS: list[dict[str, Any]] = [
    {"task": "stack blue"},
    {"task": None, "big": True, "pitch": 20},
    {"task": ["find red", "get green"], "randomise": True, "image_size": 64},
]


def make_many(count: int, **settings: Any) -> Any:
    return gymnasium.make_vec(ROOMS, count, vectorization_mode="vector_entry_point", **settings)


def solve(env: RoomsEnv) -> list[float]:
    """Play the shortest way; the rewards on it."""
    observation, _ = env.reset()
    path = shortest_path(env.world.state[0], observation["instruction"])
    steps = [env.step(action) for action in path]
    assert [step[2] for step in steps] == [False] * (len(path) - 1) + [True]
    assert not any(step[3] for step in steps)
    return [step[1] for step in steps]


class TestSingle:
    def test_it_is_registered(self) -> None:
        for name in (ROOMS, f"skillstack:{ROOMS}"):  # the second needs no import of the package
            env = gymnasium.make(name, task="stack blue")
            assert isinstance(env.unwrapped, RoomsEnv)
            _, info = env.reset(seed=1)
            assert info["task"] == "stack blue"

    def test_an_observation_is_the_image_and_the_instruction(self) -> None:
        env = RoomsEnv("stack blue")
        observation, _ = env.reset(seed=1)
        assert set(observation) == {"image", "instruction"}
        assert observation["image"].shape == (84, 84, 3)
        assert observation["image"].dtype == np.uint8
        np.testing.assert_array_equal(observation["instruction"], tasks("stack blue")[0])
        np.testing.assert_array_equal(observation["image"], env.world.observe()[0])
        assert env.observation_space.contains(observation)

    @pytest.mark.parametrize("settings", SETTINGS, ids=["one task", "all tasks", "two tasks"])
    def test_gymnasiums_checker_finds_nothing_at_all(self, settings: dict[str, Any]) -> None:
        env = gymnasium.make(ROOMS, render_mode="rgb_array", **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)

    def test_the_goal_is_worth_one_and_ends_the_game(self) -> None:
        env = RoomsEnv(None)
        env.reset(seed=3)
        for _ in range(10):
            rewards = solve(env)
            assert rewards == [0.0] * (len(rewards) - 1) + [1.0]

    def test_success_is_told_at_the_end_alone(self) -> None:
        env = RoomsEnv("put red")
        _, info = env.reset(seed=0)
        assert info["success"] is False
        *_, info = env.step(shortest_path(env.world.state[0], tasks("put red")[0])[0])
        assert env.world.achieved(tasks("put red")).all() == info["success"]

    def test_time_runs_out_after_so_many_steps(self) -> None:
        env = RoomsEnv("stack blue", max_steps=5)
        env.reset(seed=0)
        ends = [env.step(np.int64(4))[2:4] for _ in range(5)]
        assert ends == [(False, False)] * 4 + [(False, True)]
        env.reset()
        assert env.step(np.int64(4))[2:4] == (False, False)

    def test_a_goal_reached_in_the_last_step_is_a_success(self) -> None:
        env = RoomsEnv("stack blue")
        env.reset(seed=0)
        path = shortest_path(env.world.state[0], tasks("stack blue")[0])
        env = RoomsEnv("stack blue", max_steps=len(path))
        env.reset(seed=0)
        *_, last = [env.step(action) for action in path]
        assert last[1:4] == (1.0, True, False)

    def test_the_same_seed_gives_the_same_sequence_of_games(self) -> None:
        one, other = RoomsEnv(None), RoomsEnv(None)
        for first_seed in (5, 9):
            for attempt in range(4):
                seed = first_seed if attempt == 0 else None
                first, _ = one.reset(seed=seed)
                second, _ = other.reset(seed=seed)
                np.testing.assert_array_equal(first["image"], second["image"])
                np.testing.assert_array_equal(first["instruction"], second["instruction"])

    def test_games_differ_from_one_reset_to_the_next_and_without_a_seed(self) -> None:
        env = RoomsEnv("find red")
        images = {env.reset(seed=5 if attempt == 0 else None)[0]["image"].tobytes() for attempt in range(6)}
        assert len(images) == 6
        assert len({RoomsEnv("find red").reset()[0]["image"].tobytes() for _ in range(4)}) > 1

    def test_very_large_seeds_are_fine(self) -> None:
        RoomsEnv("find red").reset(seed=2**70)
        RoomsVectorEnv(2, "find red").reset(seed=2**64 - 1)

    def test_tasks_are_drawn_from_those_given(self) -> None:
        env = RoomsEnv(["find red", Instruction("get", "blue")])
        seen = {env.reset(seed=0 if n == 0 else None)[1]["task"] for n in range(40)}
        assert seen == {"find red", "get blue"}
        env = RoomsEnv()
        assert len({env.reset(seed=0 if n == 0 else None)[1]["task"] for n in range(300)}) == 24

    def test_it_renders_what_is_seen_and_the_map(self) -> None:
        env = gymnasium.make(ROOMS, task="find red", render_mode="rgb_array")
        observation, _ = env.reset(seed=0)
        np.testing.assert_array_equal(env.render(), observation["image"])
        assert env.unwrapped.map_picture().shape == (336, 630, 3)
        assert env.unwrapped.map_picture(160).shape == (160, 300, 3)

    def test_it_renders_nothing_unasked(self) -> None:
        env = RoomsEnv("find red")
        env.reset(seed=0)
        assert env.render() is None

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"task": "stak blue"}, 'Did you mean "stack"'),
            ({"task": "stack"}, "is not an instruction"),
            ({"task": ["find red", "find orange"]}, 'Unknown item "orange"'),
            ({"task": []}, "at least one task"),
            ({"render_mode": "human"}, 'Unknown render mode "human". Known: rgb_array'),
            ({"max_steps": 0}, "must be at least 1"),
            ({"room_widht": 5}, 'no setting "room_widht". Its settings are: room_width, '),
            ({"room_width": 1}, "room_width must be from 2 to 40"),
            ({"randomise": "yes"}, "must be a Randomisation or None, not 'yes'"),
            ({"pitch": 80}, "must not reach straight down"),
        ],
        ids=str,
    )
    def test_bad_settings_are_told_what_would_be_right(self, settings: dict[str, Any], message: str) -> None:
        for make in (RoomsEnv, RoomsVectorEnv):
            with pytest.raises(SkillstackError, match=message):
                make(**settings)

    @pytest.mark.parametrize("action", [8, -1, 0.5, [0], "forward", None])
    def test_bad_actions_are_an_error(self, action: object) -> None:
        env = RoomsEnv("find red")
        env.reset(seed=0)
        with pytest.raises(SkillstackError, match="action"):
            env.step(action)  # type: ignore[arg-type]

    def test_settings_reach_the_world(self) -> None:
        config = make_config(randomise=True, items=["red", "blue"], big=True, penalty=False)
        assert config.randomise == Randomisation()
        assert config.items == ("red", "blue")
        assert make_config(randomise=False).randomise is None
        assert RoomsEnv("find red", room_width=9, distractors=False).world.config.room_width == 9


class TestMany:
    @pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
    @pytest.mark.parametrize("settings", SETTINGS, ids=["one task", "all tasks", "two tasks"])
    def test_it_does_exactly_what_gymnasiums_vector_of_single_games_does(
        self, settings: dict[str, Any], mode: AutoresetMode
    ) -> None:
        settings = {**settings, "max_steps": 7}
        native = make_many(6, **settings, autoreset_mode=mode)
        singles = SyncVectorEnv([lambda: RoomsEnv(**settings)] * 6, autoreset_mode=mode)
        self.assert_same(native.reset(seed=40), singles.reset(seed=40))
        rng = np.random.default_rng(0)
        ended = 0
        for _ in range(40):
            actions = rng.integers(8, size=6)
            one, other = native.step(actions), singles.step(actions)
            self.assert_same(one, other)
            ended += int(one[2].sum()) + int(one[3].sum())
        assert ended >= 20
        self.assert_same(native.reset(), singles.reset())
        seeds = [3, 1, 4, 1, 5, 9]
        self.assert_same(native.reset(seed=seeds), singles.reset(seed=seeds))

    def assert_same(self, one: Any, other: Any) -> None:
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            if isinstance(left, dict):
                assert left.keys() == right.keys()
                self.assert_same(list(left.values()), [right[key] for key in left])
            elif (
                isinstance(left, np.ndarray) and left.dtype.kind == "O"
            ):  # words, or observations of games that have ended
                self.assert_same(left.tolist(), right.tolist())
            else:
                np.testing.assert_array_equal(left, right)

    def test_successes_restart_games_too(self) -> None:
        native = make_many(2, task="put red", distractors=False)
        observation, _ = native.reset(seed=0)
        singles = SyncVectorEnv([lambda: RoomsEnv("put red", distractors=False)] * 2)
        singles.reset(seed=0)
        rewards = 0.0
        for step in range(30):
            actions = np.array([7, 4 if step % 3 else 7])
            one, other = native.step(actions), singles.step(actions)
            self.assert_same(one, other)
            rewards += one[1].sum()
        assert rewards > 5
        assert native.observation_space.contains(observation)

    def test_it_declares_how_games_restart(self) -> None:
        native = make_many(3, task="find red")
        assert isinstance(native.unwrapped, RoomsVectorEnv)
        assert native.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
        same = make_many(3, task="find red", autoreset_mode=AutoresetMode.SAME_STEP)
        assert same.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
        with pytest.raises(SkillstackError, match="cannot be left ended"):
            make_many(3, task="find red", autoreset_mode=AutoresetMode.DISABLED)
        assert native.num_envs == 3
        assert native.single_action_space == gymnasium.spaces.Discrete(8)
        assert native.action_space.shape == (3,)

    def test_its_observations_are_of_the_space_it_declares(self) -> None:
        native = make_many(3, randomise=True)
        observation, _ = native.reset(seed=0)
        assert native.observation_space.contains(observation)
        observation, reward, terminated, truncated, _ = native.step(native.action_space.sample())
        assert native.observation_space.contains(observation)
        assert reward.shape == terminated.shape == truncated.shape == (3,)

    def test_what_was_observed_does_not_change_afterwards(self) -> None:
        native = make_many(3)
        observation, _ = native.reset(seed=0)
        image, instruction = observation["image"].copy(), observation["instruction"].copy()
        first = native.step(np.array([0, 4, 5]))
        ends = first[2].copy()
        for _ in range(3):
            native.step(np.array([4, 4, 4]))
        np.testing.assert_array_equal(observation["image"], image)
        np.testing.assert_array_equal(observation["instruction"], instruction)
        np.testing.assert_array_equal(first[2], ends)

    def test_threads_change_nothing(self) -> None:
        one, other = make_many(16, randomise=True), make_many(16, randomise=True, threads=3)
        self.assert_same(one.reset(seed=1), other.reset(seed=1))
        for action in range(8):
            actions = np.full(16, action)
            self.assert_same(one.step(actions), other.step(actions))

    def test_gymnasiums_own_wrappers_work_on_it(self) -> None:
        native = gymnasium.wrappers.vector.RecordEpisodeStatistics(make_many(2, task="put red", distractors=False))
        native.reset(seed=0)
        lengths = [native.step(np.array([7, 7]))[4].get("episode", {}).get("l") for _ in range(6)]
        assert any(length is not None for length in lengths)

    def test_it_renders_all_games(self) -> None:
        native = make_many(3, task="find red", render_mode="rgb_array")
        observation, _ = native.reset(seed=0)
        np.testing.assert_array_equal(np.stack(native.render()), observation["image"])
        silent = make_many(3, task="find red")
        silent.reset(seed=0)
        assert silent.render() is None

    def test_the_wrong_number_of_seeds_or_actions_is_an_error(self) -> None:
        native = make_many(3, task="find red")
        with pytest.raises(SkillstackError, match="one seed for each of 3 games, not 2"):
            native.reset(seed=[1, 2])
        native.reset(seed=0)
        with pytest.raises(SkillstackError, match="each of 3 games"):
            native.step(np.array([0, 0]))


class TestStableBaselines3:
    def test_its_checker_finds_nothing_at_all(self) -> None:
        from stable_baselines3.common.env_checker import check_env as check

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(gymnasium.make(ROOMS, task="stack blue"))
            check(gymnasium.make(ROOMS, render_mode="rgb_array"))

    def test_its_ppo_learns_from_pictures_and_words(self) -> None:
        from stable_baselines3 import PPO

        env = gymnasium.make(ROOMS, task=["find red", "get blue"], max_steps=40)
        model = PPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
        before = [weights.clone() for weights in model.policy.parameters()]
        model.learn(256)
        assert model.num_timesteps == 256
        assert any((old != new).any() for old, new in zip(before, model.policy.parameters(), strict=True))
        action, _ = model.predict(env.reset(seed=0)[0])
        assert env.action_space.contains(action[()])
