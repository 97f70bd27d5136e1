import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rooms_helpers import do, held, pose, scene, stacks, standing_blocks, tasks, world_of

from skillstack.worlds.rooms import ACTIONS, RoomsConfig
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST

MOVES = ["move forward", "move backward", "move left", "move right"]
AHEAD = {NORTH: (0, -1), EAST: (1, 0), SOUTH: (0, 1), WEST: (-1, 0)}
CORNERS = {NORTH: (0, 0), EAST: (5, 0), SOUTH: (5, 5), WEST: (0, 5)}  # with walls ahead and to the left


def neighbour(facing: int, quarter_turns: int) -> tuple[int, int]:
    """The cell beside (2, 3) after so many quarter turns to the right from the facing."""
    dx, dz = AHEAD[(facing + quarter_turns) % 4]
    return 2 + dx, 3 + dz


@pytest.mark.parametrize("facing", AHEAD)
class TestMoves:
    @pytest.mark.parametrize(("action", "turns"), list(zip(MOVES, (0, 2, 3, 1), strict=True)))
    def test_a_move_goes_one_cell_relative_to_the_facing(self, facing: int, action: str, turns: int) -> None:
        assert pose(do(scene((2, 3, facing)), action)) == (*neighbour(facing, turns), facing)

    @pytest.mark.parametrize(("action", "turns"), list(zip(MOVES, (0, 2, 3, 1), strict=True)))
    def test_a_block_stops_a_move(self, facing: int, action: str, turns: int) -> None:
        blocks = {neighbour(facing, turns): "red"}
        world = do(scene((2, 3, facing), blocks), action)
        assert pose(world) == (2, 3, facing)
        assert stacks(world) == blocks

    def test_walls_stop_moves(self, facing: int) -> None:
        x, z = CORNERS[facing]
        assert pose(do(scene((x, z, facing)), "move forward", "move left")) == (x, z, facing)
        back = (facing + 2) % 4
        assert pose(do(scene((x, z, back)), "move backward", "move right")) == (x, z, back)

    def test_turns_go_round(self, facing: int) -> None:
        assert pose(do(scene((2, 3, facing)), "turn right")) == (2, 3, (facing + 1) % 4)
        assert pose(do(scene((2, 3, facing)), "turn left")) == (2, 3, (facing - 1) % 4)
        assert pose(do(scene((2, 3, facing)), *["turn left"] * 4)) == (2, 3, facing)

    def test_pick_up_takes_what_stands_in_front(self, facing: int) -> None:
        world = do(scene((2, 3, facing), {neighbour(facing, 0): "red", neighbour(facing, 1): "blue"}), "pick up")
        assert held(world) == "red"
        assert stacks(world) == {neighbour(facing, 1): "blue"}

    def test_put_down_sets_the_block_on_the_floor_in_front(self, facing: int) -> None:
        world = do(scene((2, 3, facing), held="red"), "put down")
        assert held(world) is None
        assert stacks(world) == {neighbour(facing, 0): "red"}

    def test_nothing_is_put_into_a_wall(self, facing: int) -> None:
        world = do(scene((*CORNERS[facing], facing), held="red"), "put down")
        assert held(world) == "red"
        assert stacks(world) == {}


class TestWalls:
    def test_the_wall_between_the_rooms_stops_moves_from_both_sides(self) -> None:
        assert pose(do(scene((5, 2, EAST)), "move forward")) == (5, 2, EAST)
        assert pose(do(scene((7, 2, WEST), room=1), "move forward")) == (7, 2, WEST)

    def test_in_the_big_room_there_is_no_wall_between(self) -> None:
        world = scene((5, 2, EAST), config=RoomsConfig(big=True))
        assert pose(do(world, *["move forward"] * 9)) == (12, 2, EAST)

    def test_nothing_is_put_into_the_wall_between_the_rooms(self) -> None:
        assert stacks(do(scene((5, 2, EAST), held="red"), "put down")) == {}
        assert stacks(do(scene((7, 2, WEST), held="red", room=1), "put down")) == {}


class TestHands:
    def test_pick_up_takes_the_top_block_alone(self) -> None:
        world = do(scene((2, 3, NORTH), {(2, 2): "red blue"}), "pick up")
        assert held(world) == "blue"
        assert stacks(world) == {(2, 2): "red"}

    def test_pick_up_does_nothing_with_a_full_hand(self) -> None:
        world = do(scene((2, 3, NORTH), {(2, 2): "red"}, held="blue"), "pick up")
        assert held(world) == "blue"
        assert stacks(world) == {(2, 2): "red"}

    @pytest.mark.parametrize("blocks", [{}, {(2, 1): "red"}, {(1, 3): "red"}, {(2, 4): "red"}])
    def test_pick_up_reaches_no_farther_than_the_cell_in_front(self, blocks: dict[tuple[int, int], str]) -> None:
        world = do(scene((2, 3, NORTH), blocks), "pick up")
        assert held(world) is None
        assert stacks(world) == blocks

    def test_put_down_sets_a_block_on_another(self) -> None:
        world = do(scene((2, 3, NORTH), {(2, 2): "red"}, held="blue"), "put down")
        assert held(world) is None
        assert stacks(world) == {(2, 2): "red blue"}

    def test_put_down_never_makes_a_stack_of_three(self) -> None:
        world = do(scene((2, 3, NORTH), {(2, 2): "red white"}, held="blue"), "put down")
        assert held(world) == "blue"
        assert stacks(world) == {(2, 2): "red white"}

    def test_put_down_with_an_empty_hand_does_nothing(self) -> None:
        blocks = {(2, 2): "red"}
        assert stacks(do(scene((2, 3, NORTH), blocks), "put down")) == blocks

    def test_what_is_put_down_blocks_the_way_and_what_is_picked_up_clears_it(self) -> None:
        world = do(scene((2, 3, NORTH), held="red"), "put down", "move forward")
        assert pose(world) == (2, 3, NORTH)
        assert pose(do(world, "pick up", "move forward")) == (2, 2, NORTH)

    def test_a_block_can_be_carried_through_the_room(self) -> None:
        world = scene((2, 3, NORTH), {(2, 2): "red"})
        do(world, "pick up", "turn right", "move forward", "move forward", "put down")
        assert stacks(world) == {(5, 3): "red"}

    def test_the_most_blocks_can_all_be_moved_one_after_the_other(self) -> None:
        config = RoomsConfig(max_blocks=2)
        world = scene((2, 3, NORTH), {(2, 2): "red"}, held="blue", config=config)
        do(world, "put down", "pick up", "turn right", "put down", "turn left", "pick up", "turn right", "put down")
        assert stacks(world) == {(3, 3): "blue red"}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [RoomsConfig(), RoomsConfig(big=True), RoomsConfig(3, 4, max_blocks=4), RoomsConfig(4, 2, max_blocks=2)]
    ),
    st.integers(0, 2**64 - 1),
    st.integers(0, 23),
    st.lists(st.sampled_from([0, 0, 1, 2, 3, 4, 5, 6, 6, 7, 7]), max_size=120),
)
def test_whatever_is_done_the_world_stays_whole(config: RoomsConfig, seed: int, task: int, actions: list[int]) -> None:
    world = world_of(config)
    world.reset(np.array([divmod(task, 6)]), [seed])

    def items() -> list[int]:
        game = world.state[0]
        in_hand = [int(game["agent"][3])] if game["agent"][3] >= 0 else []
        return sorted([block[0] for block in standing_blocks(game)] + in_hand)

    before, room = items(), world.state["room"][0].tolist()
    x0, z0, x1, z1, _ = room
    for action in actions:
        at = pose(world)
        world.step([action])
        x, z, facing = pose(world)
        cells: dict[tuple[int, int], list[int]] = {}
        for _, bx, bz, y in standing_blocks(world.state[0]):
            cells.setdefault((bx, bz), []).append(y)
        assert items() == before, "blocks are neither made nor lost"
        assert world.state["room"][0].tolist() == room, "nobody leaves the room"
        assert (x, z) not in cells, "the agent is never inside a block"
        assert all(x0 <= cx < x1 and z0 <= cz < z1 for cx, cz in [(x, z), *cells]), "nothing is inside a wall"
        assert all(sorted(heights) in ([0], [0, 1]) for heights in cells.values()), "nothing floats"
        assert abs(x - at[0]) + abs(z - at[1]) + (facing != at[2]) <= 1, "an action is one step or one turn"


def test_each_game_of_a_batch_gets_its_own_action() -> None:
    alone = [do(scene((2, 3, NORTH), {(2, 2): "red"}), action).snapshot() for action in ACTIONS]
    world = world_of(num_games=8)
    world.restore(np.repeat(scene((2, 3, NORTH), {(2, 2): "red"}).snapshot(), 8))
    world.step(np.arange(8))
    np.testing.assert_array_equal(world.snapshot(), np.concatenate(alone))


def test_only_the_games_named_are_stepped() -> None:
    world = world_of(num_games=4)
    world.reset(np.repeat(tasks("find red"), 4, axis=0), np.arange(4))
    before = world.snapshot()
    world.step([4, 5], games=[3, 1])
    after = world.snapshot()
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    assert after["agent"][3, 2] == (before["agent"][3, 2] - 1) % 4
    assert after["agent"][1, 2] == (before["agent"][1, 2] + 1) % 4
