from collections.abc import Callable

import numpy as np
import pytest
from rooms_helpers import ALL_TASKS, STANDARD, cycled, is_achieved, play, scene, start, tasks, world_of

from skillstack import SkillstackError
from skillstack.worlds.rooms import ACTIONS, RoomsConfig
from skillstack.worlds.rooms.layout import EAST, NORTH, State
from skillstack.worlds.rooms.oracle import shortest_path, shortest_paths

TINY = {
    "3 x 3, two blocks": RoomsConfig(3, 3, max_blocks=2, items=("red", "blue"), image_size=16),
    "4 x 2, two blocks": RoomsConfig(4, 2, max_blocks=2, items=("red", "blue"), image_size=16),
    "3 x 3, three blocks": RoomsConfig(3, 3, min_blocks=3, max_blocks=3, items=("red", "blue"), image_size=16),
}
TWO_ITEMS = np.array([(skill, item) for skill in range(4) for item in range(2)])  # (8, 2)


def distances(config: RoomsConfig, begin: State, actions: int = len(ACTIONS)) -> list[int | None]:
    """Steps to each of TWO_ITEMS by breadth-first search through everything that can follow; None for no way."""
    found: list[int | None] = [None] * len(TWO_ITEMS)
    seen: set[bytes] = set()
    frontier, depth, world = np.array([begin]), 0, world_of(config, 4096)
    while len(frontier):
        following = []
        for states in np.array_split(frontier, -(-len(frontier) // world.num_games)):
            games = np.arange(len(states))
            world.restore(states, games)
            reached = world.achieved(np.broadcast_to(TWO_ITEMS, (len(states), *TWO_ITEMS.shape)), games).any(axis=0)
            found = [depth if old is None and new else old for old, new in zip(found, reached, strict=True)]
            for action in range(actions):
                world.restore(states, games)
                world.step(np.full(len(states), action), games)
                following.append(world.snapshot(games))
        candidates = np.concatenate(following)
        fresh = {name: place for place, name in enumerate(names(candidates)) if name not in seen}
        seen |= fresh.keys()
        frontier, depth = candidates[list(fresh.values())], depth + 1
    return found


def names(state: State) -> list[bytes]:
    """One name for each state, the same whatever slots its blocks have."""
    blocks = state["blocks"].astype(np.int64)
    keys = np.where(blocks[..., 0] < 0, -1, blocks @ np.array([1, 16, 256, 4096]))
    rows = np.concatenate([np.sort(keys, axis=1), state["agent"]], axis=1)
    return [row.tobytes() for row in rows]


@pytest.mark.parametrize("big", [False, True], ids=["small", "big"])
def test_it_solves_10000_games_of_all_tasks(big: bool) -> None:
    count = 10_000
    world = world_of(RoomsConfig(big=big, image_size=16), count)
    own = cycled(ALL_TASKS, count)
    world.reset(own, 1000 + np.arange(count))
    paths = shortest_paths(world.state, own)
    lengths = np.array([len(path) for path in paths])
    assert lengths.min() > 0
    for step in range(lengths.max()):
        games = np.flatnonzero(lengths > step)
        world.step([paths[game][step] for game in games], games)
        done = world.achieved(own[games], games)
        np.testing.assert_array_equal(done, lengths[games] == step + 1)


def beginnings(config: RoomsConfig, count: int) -> State:
    return start(config, count, TWO_ITEMS).snapshot()


def middles(config: RoomsConfig, count: int) -> State:
    """States from the middle of games: as many with a stack, with a block in the hand, and with neither."""
    world = start(config, 200, TWO_ITEMS)
    play(world, 40)
    holds = world.state["agent"][:, 3] >= 0
    stacked = ((world.state["blocks"][..., 0] >= 0) & (world.state["blocks"][..., 3] == 1)).any(axis=1)
    kinds = [np.flatnonzero(kind)[: count // 3] for kind in (stacked, holds, ~stacked & ~holds)]
    assert [len(kind) for kind in kinds] == [count // 3] * 3
    return world.snapshot(np.concatenate(kinds))


@pytest.mark.parametrize("config", TINY.values(), ids=TINY.keys())
@pytest.mark.parametrize("states", [beginnings, middles])
def test_its_ways_are_as_short_as_brute_force_finds(config: RoomsConfig, states: Callable[..., State]) -> None:
    for game in states(config, 3 if config.min_blocks == 3 else 12):
        for task, length in zip(TWO_ITEMS, distances(config, game), strict=True):
            if length is None:
                with pytest.raises(SkillstackError, match="cannot be achieved from this state"):
                    shortest_path(game, task)
            else:
                assert len(shortest_path(game, task)) == length


def test_without_hands_it_walks_as_short_as_brute_force_finds() -> None:
    config = TINY["3 x 3, three blocks"]
    for game in start(config, 12, TWO_ITEMS).snapshot():
        for task, length in zip(TWO_ITEMS[:2], distances(config, game, actions=6), strict=False):
            if length is not None:
                path = shortest_path(game, task, hands=False)
                assert len(path) == length
                assert (path < 6).all()


def test_without_hands_it_uses_them_where_walking_does_not_do() -> None:
    state = scene((2, 3, NORTH), {(2, 2): "red"}).snapshot()[0]
    get_red = tasks("get red")[0]
    np.testing.assert_array_equal(shortest_path(state, get_red, hands=False), shortest_path(state, get_red))


def by_name(world_path: np.ndarray) -> list[str]:
    return [ACTIONS[action] for action in world_path]


class TestByHand:
    def path(self, text: str, *arguments: object, **keywords: object) -> list[str]:
        world = scene(*arguments, **keywords)  # type: ignore[arg-type]
        return by_name(shortest_path(world.state[0], tasks(text)[0]))

    def test_what_is_achieved_needs_no_steps(self) -> None:
        assert self.path("find red", (2, 3, NORTH), {(2, 2): "red"}) == []
        assert self.path("get red", (2, 3, NORTH), held="red") == []

    def test_a_block_in_front_is_one_step_away(self) -> None:
        assert self.path("get red", (2, 3, NORTH), {(2, 2): "red"}) == ["pick up"]
        assert self.path("put red", (2, 3, NORTH), held="red") == ["put down"]
        assert self.path("stack red", (2, 3, NORTH), {(2, 2): "red"}, held="red") == ["put down"]

    def test_a_full_hand_is_emptied_first(self) -> None:
        assert len(self.path("get red", (2, 3, NORTH), {(2, 2): "red"}, held="blue")) == 4

    def test_what_covers_a_block_is_taken_away(self) -> None:
        assert self.path("find red", (2, 3, NORTH), {(2, 2): "red blue"}) == ["pick up"]

    def test_picking_up_what_is_in_the_way_can_be_the_shortest(self) -> None:
        corridor = {(2, 1): "red", (2, 2): "blue", (1, 3): "white", (3, 3): "white"}
        assert self.path("find red", (2, 3, NORTH), corridor) == ["pick up", "move forward"]

    def test_a_held_block_is_found_by_putting_it_down(self) -> None:
        assert self.path("find red", (2, 3, NORTH), {(0, 0): "blue"}, held="red") == ["put down"]

    def test_no_way_is_a_clear_error(self) -> None:
        for text in ("find red", "get red", "put red", "stack red", "stack blue"):
            with pytest.raises(SkillstackError, match="cannot be achieved"):
                self.path(text, (2, 3, NORTH), {(0, 0): "blue"})

    def test_an_agent_walled_in_with_full_hands_has_no_way(self) -> None:
        walled = {(0, 1): "blue blue", (1, 0): "blue blue"}
        with pytest.raises(SkillstackError, match="cannot be achieved"):
            self.path("find white", (0, 0, NORTH), {**walled, (5, 5): "white"}, held="red")

    def test_the_state_is_left_alone(self) -> None:
        world = scene((2, 3, EAST), {(2, 0): "red"})
        before = world.snapshot()
        shortest_paths(world.state, tasks("get red"))
        np.testing.assert_array_equal(world.snapshot(), before)
        assert not is_achieved(world, "get red")


def test_the_longest_searches_end() -> None:
    crowded = RoomsConfig(6, 6, min_blocks=12, max_blocks=12)
    world = start(crowded, 48)
    own = cycled(ALL_TASKS, 48)
    assert all(len(path) < 40 for path in shortest_paths(world.state, own))


def test_the_standard_games_are_within_the_flat_limit() -> None:
    world = start(STANDARD, 480)
    assert max(len(path) for path in shortest_paths(world.state, cycled(ALL_TASKS, 480))) <= 40
