import numpy as np
import pytest
from rooms_helpers import ALL_TASKS, STANDARD, cycled, is_achieved, scene, start, tasks, world_of

from skillstack import SkillstackError
from skillstack.worlds.rooms import ACTIONS, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import EAST, HELD, KEPT, NORTH, State
from skillstack.worlds.rooms.oracle import shortest_path, shortest_paths

TWO_ITEMS = np.array([(skill, item) for skill in range(4) for item in range(2)])  # (8, 2)
WALKING = ACTIONS.index("pick up")  # the actions before it are moves and turns
FAR = 10_000


def tiny(width: int, depth: int, blocks: int) -> RoomsConfig:
    return RoomsConfig(width, depth, min_blocks=blocks, max_blocks=blocks, items=("red", "blue"), image_size=16)


# Rooms so small that everything that can happen in a game can be listed, what stands in them, and what is in the hand
# and to be kept there.
TINY = {
    "3 x 3, red and red": (tiny(3, 3, 2), {(0, 0): "red", (2, 1): "red"}, None),
    "3 x 3, red and blue": (tiny(3, 3, 2), {(0, 0): "red", (2, 1): "blue"}, None),
    "4 x 2, red and red": (tiny(4, 2, 2), {(0, 0): "red", (3, 1): "red"}, None),
    "3 x 3, red, red and blue": (tiny(3, 3, 3), {(0, 0): "red", (2, 1): "red", (0, 2): "blue"}, None),
    "5 x 3, red and red": (tiny(5, 3, 2), {(0, 0): "red", (4, 1): "red"}, None),
    "3 x 3, red and blue, red kept": (tiny(3, 3, 3), {(0, 0): "red", (2, 1): "blue"}, "red"),
}


def explore(config: RoomsConfig, begin: State) -> tuple[State, np.ndarray]:
    """All states that can follow, by breadth-first search, and for each the place of what each action makes of it."""
    world = world_of(config, 4096)
    places: dict[bytes, int] = {names(begin)[0]: 0}
    found, following, frontier = [begin], [], begin
    while len(frontier):
        fresh = []
        for states in np.array_split(frontier, -(-len(frontier) // world.num_games)):
            games = np.arange(len(states))
            successors = np.empty((len(states), len(ACTIONS)), dtype=np.int64)
            for action in range(len(ACTIONS)):
                world.restore(states, games)
                world.step(np.full(len(states), action), games)
                after = world.snapshot(games)
                known = len(places)
                successors[:, action] = [places.setdefault(name, len(places)) for name in names(after)]
                _, first = np.unique(successors[:, action], return_index=True)
                fresh.append(after[first[successors[first, action] >= known]])
            following.append(successors)
        frontier = np.concatenate(fresh)
        found.append(frontier)
    return np.concatenate(found), np.concatenate(following)


def names(state: State) -> list[bytes]:
    """One name for each state, the same whatever slots its blocks have."""
    blocks = state["blocks"].astype(np.int64)
    keys = np.where(blocks[..., 0] < 0, -1, blocks @ np.array([1, 16, 256, 4096]))
    rows = np.concatenate([np.sort(keys, axis=1), state["agent"]], axis=1)
    return [row.tobytes() for row in rows]


def distances(config: RoomsConfig, states: State, successors: np.ndarray) -> np.ndarray:
    """The fewest steps from each state to each of TWO_ITEMS, (states, 8); FAR where there is no way."""
    world, parts = world_of(config, 4096), np.array_split(states, -(-len(states) // 4096))
    reached = []
    for part in parts:
        games = np.arange(len(part))
        world.restore(part, games)
        reached.append(world.achieved(np.broadcast_to(TWO_ITEMS, (len(part), *TWO_ITEMS.shape)), games))
    steps = np.where(np.concatenate(reached), 0, FAR)
    while True:
        nearer = np.minimum(steps, 1 + steps[successors].min(axis=1))
        if (nearer == steps).all():
            return steps
        steps = nearer


@pytest.mark.parametrize("big", [False, True], ids=["small", "big"])
@pytest.mark.parametrize("skill", range(4))
def test_it_solves_10000_games_of_every_task(big: bool, skill: int) -> None:
    own = np.repeat(ALL_TASKS[ALL_TASKS[:, 0] == skill], 10_000, axis=0)
    count = len(own)
    assert count == 60_000
    world = RoomsWorld(RoomsConfig(big=big, image_size=16), count)
    world.reset(own, 1000 + np.arange(count))
    paths = shortest_paths(world.state, own)
    lengths = np.array([len(path) for path in paths])
    assert lengths.min() > 0
    for step in range(lengths.max()):
        games = np.flatnonzero(lengths > step)
        world.step([paths[game][step] for game in games], games)
        done = world.achieved(own[games], games)
        np.testing.assert_array_equal(done, lengths[games] == step + 1)


@pytest.mark.parametrize(("config", "blocks", "kept"), TINY.values(), ids=TINY.keys())
def test_its_ways_are_as_short_as_brute_force_finds(
    config: RoomsConfig, blocks: dict[tuple[int, int], str], kept: str | None
) -> None:
    begin = scene((1, 1, NORTH), blocks, kept, config=config).snapshot()
    begin["agent"][:, KEPT] = begin["agent"][:, HELD]
    states, successors = explore(config, begin)
    steps = distances(config, states, successors)
    walked = distances(config, states, successors[:, :WALKING])
    chosen = np.random.default_rng(0).choice(len(states), 600)
    holds = states["agent"][chosen, 3] >= 0
    stacked = ((states["blocks"][chosen, :, 0] >= 0) & (states["blocks"][chosen, :, 3] == 1)).any(axis=1)
    assert min(holds.sum(), stacked.sum(), (~holds & ~stacked).sum()) > 10, "all kinds of states are tried"
    for place in chosen:
        for task, fewest, on_foot in zip(TWO_ITEMS, steps[place], walked[place], strict=True):
            if fewest >= FAR:
                with pytest.raises(SkillstackError, match="cannot be achieved from this state"):
                    shortest_path(states[place], task)
                continue
            assert len(shortest_path(states[place], task)) == fewest
            path = shortest_path(states[place], task, hands=False)
            assert len(path) == (on_foot if on_foot < FAR else fewest)
            assert (path < WALKING).all() == (on_foot < FAR)


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
