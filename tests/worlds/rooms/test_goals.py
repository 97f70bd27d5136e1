import numpy as np
import pytest
from rooms_helpers import ALL_TASKS, do, is_achieved, is_executable, scene, start, tasks

from skillstack import Instruction
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import EAST, HELD, KEPT, NORTH, NOTHING, SOUTH, WEST
from skillstack.worlds.rooms.oracle import shortest_paths

HERE = (2, 3, NORTH)
FRONT = (2, 2)


class TestFind:
    @pytest.mark.parametrize(("facing", "cell"), [(NORTH, (2, 2)), (EAST, (3, 3)), (SOUTH, (2, 4)), (WEST, (1, 3))])
    def test_it_is_achieved_in_front_of_the_block(self, facing: int, cell: tuple[int, int]) -> None:
        assert is_achieved(scene((2, 3, facing), {cell: "red"}), "find red")

    @pytest.mark.parametrize("cell", [(2, 1), (1, 2), (3, 3), (2, 4), (1, 3)])
    def test_it_is_not_achieved_from_farther_away_or_from_the_side(self, cell: tuple[int, int]) -> None:
        assert not is_achieved(scene(HERE, {cell: "red"}), "find red")

    def test_another_colour_does_not_count(self) -> None:
        assert not is_achieved(scene(HERE, {FRONT: "blue"}), "find red")

    def test_the_top_of_a_stack_counts_and_what_is_below_does_not(self) -> None:
        world = scene(HERE, {FRONT: "red blue"})
        assert is_achieved(world, "find blue")
        assert not is_achieved(world, "find red")

    def test_a_block_in_the_hand_is_not_found(self) -> None:
        assert not is_achieved(scene(HERE, held="red"), "find red")

    def test_it_can_be_achieved_with_something_in_the_hand(self) -> None:
        assert is_achieved(scene(HERE, {FRONT: "red"}, held="blue"), "find red")

    def test_it_is_executable_where_such_a_block_stands(self) -> None:
        assert is_executable(scene(HERE, {(5, 5): "red"}), "find red")
        assert is_executable(scene(HERE, {(5, 5): "red blue"}), "find red")
        assert is_executable(scene(HERE, {(5, 5): "red"}, held="blue"), "find red")
        assert not is_executable(scene(HERE, {(5, 5): "blue"}), "find red")
        assert not is_executable(scene(HERE, {(5, 5): "blue"}, held="red"), "find red")


class TestGet:
    def test_it_is_achieved_with_the_block_in_the_hand(self) -> None:
        assert is_achieved(scene(HERE, held="red"), "get red")
        assert not is_achieved(scene(HERE, held="blue"), "get red")
        assert not is_achieved(scene(HERE, {FRONT: "red"}), "get red")

    def test_it_is_executable_with_an_empty_hand_where_such_a_block_stands(self) -> None:
        assert is_executable(scene(HERE, {(5, 5): "red"}), "get red")
        assert not is_executable(scene(HERE, {(5, 5): "blue"}), "get red")
        assert not is_executable(scene(HERE, {(5, 5): "red"}, held="blue"), "get red")
        assert not is_executable(scene(HERE, {(5, 5): "red"}, held="red"), "get red")


class TestPut:
    def test_it_is_achieved_by_the_step_that_puts_the_block_down(self) -> None:
        world = scene(HERE, held="red")
        assert not is_achieved(world, "put red")
        assert is_achieved(do(world, "put down"), "put red")
        assert not is_achieved(world, "put blue")

    @pytest.mark.parametrize("action", ["move forward", "turn left", "pick up", "put down"])
    def test_it_is_over_one_step_later(self, action: str) -> None:
        assert not is_achieved(do(scene(HERE, held="red"), "put down", action), "put red")

    def test_putting_on_another_block_counts_too(self) -> None:
        assert is_achieved(do(scene(HERE, {FRONT: "blue"}, held="red"), "put down"), "put red")

    def test_a_put_that_failed_does_not_count(self) -> None:
        assert not is_achieved(do(scene(HERE, {FRONT: "blue blue"}, held="red"), "put down"), "put red")
        assert not is_achieved(do(scene((2, 0, NORTH), held="red"), "put down"), "put red")

    def test_it_is_executable_with_the_block_in_the_hand(self) -> None:
        assert is_executable(scene(HERE, held="red"), "put red")
        assert not is_executable(scene(HERE, held="blue"), "put red")
        assert not is_executable(scene(HERE, {FRONT: "red"}), "put red")


class TestStack:
    def test_it_is_achieved_by_two_on_top_of_each_other_anywhere(self) -> None:
        assert is_achieved(scene(HERE, {(5, 5): "red red"}), "stack red")
        assert is_achieved(scene(HERE, {(5, 5): "red red"}, held="blue"), "stack red")

    @pytest.mark.parametrize("blocks", [{(1, 1): "red", (1, 2): "red"}, {(1, 1): "red blue"}, {(1, 1): "blue blue"}])
    def test_other_stacks_do_not_count(self, blocks: dict[tuple[int, int], str]) -> None:
        assert not is_achieved(scene(HERE, blocks), "stack red")

    def test_a_block_that_was_picked_up_no_longer_counts(self) -> None:
        assert not is_achieved(do(scene(HERE, {FRONT: "red red"}), "pick up"), "stack red")

    def test_the_slots_of_the_two_may_come_in_either_order(self) -> None:
        world = do(scene(HERE, {FRONT: "red"}, held="red"), "put down")
        assert is_achieved(world, "stack red")
        assert world.state["blocks"][0, 1].tolist() == [0, *FRONT, 1]
        world = scene(HERE, {(1, 3): "red", FRONT: "red"})
        do(world, "turn left", "pick up", "turn right", "put down")  # the freed first slot takes the upper one
        assert is_achieved(world, "stack red")
        assert world.state["blocks"][0, 0].tolist() == [0, *FRONT, 1]

    def test_it_is_executable_with_two_the_one_in_the_hand_counted(self) -> None:
        assert is_executable(scene(HERE, {(1, 1): "red", (5, 5): "red"}), "stack red")
        assert is_executable(scene(HERE, {(1, 1): "red"}, held="red"), "stack red")
        assert is_executable(scene(HERE, {(1, 1): "red", (5, 5): "red"}, held="blue"), "stack red")
        assert not is_executable(scene(HERE, {(1, 1): "red"}), "stack red")
        assert not is_executable(scene(HERE, {(1, 1): "red"}, held="blue"), "stack red")
        assert not is_executable(scene(HERE, {(1, 1): "blue", (5, 5): "blue"}), "stack red")


class TestQuestions:
    def test_many_tasks_can_be_asked_of_each_game_at_once(self) -> None:
        world = start(RoomsConfig(), 12)
        several = np.broadcast_to(ALL_TASKS, (12, 24, 2))
        for ask in (world.achieved, world.executable):
            answers = ask(several)
            assert answers.shape == (12, 24)
            assert answers.dtype == np.bool_
            for column, task in enumerate(ALL_TASKS):
                np.testing.assert_array_equal(answers[:, column], ask(np.broadcast_to(task, (12, 2))))

    def test_some_games_can_be_asked_alone(self) -> None:
        world = start(RoomsConfig(), 12)
        everything = world.executable(np.broadcast_to(tasks("find red"), (12, 2)))
        some = world.executable(np.broadcast_to(tasks("find red"), (3, 2)), games=[7, 2, 2])
        np.testing.assert_array_equal(some, everything[[7, 2, 2]])

    def test_nothing_can_be_asked_of_no_games(self) -> None:
        world = start(RoomsConfig(), 12)
        assert world.achieved(np.zeros((0, 2), dtype=np.int64), games=[]).shape == (0,)
        assert world.achieved(np.zeros((0, 5, 2), dtype=np.int64), games=[]).shape == (0, 5)

    def test_asking_changes_nothing(self) -> None:
        world = do(scene(HERE, held="red"), "put down")
        before = world.snapshot()
        world.achieved(tasks("put red"))
        world.executable(tasks("put red"))
        np.testing.assert_array_equal(world.snapshot(), before)


def test_a_find_game_that_starts_with_a_block_in_the_hand_is_won_with_it_still_there() -> None:
    world = RoomsWorld(RoomsConfig(held_start=1.0, min_blocks=6, items=("red", "blue")), num_games=64)
    tasks = np.tile(world.description.vocabulary.encode(Instruction("find", "red")), (64, 1))
    world.reset(tasks, range(64))
    held = world.state["agent"][:, HELD].copy()
    assert (held != NOTHING).all()
    holds_red = np.flatnonzero(held == 0)
    assert len(holds_red) > 10
    world.step(np.full(64, 7))
    assert not world.achieved(tasks)[holds_red].any()  # a red block put down in front is not found
    world.step(np.full(64, 6))
    paths = shortest_paths(world.snapshot(), tasks)
    for game, path in enumerate(paths):
        for action in path:
            world.step([action], [game])
    assert world.achieved(tasks).all()
    assert (world.state["agent"][:, HELD] == held).all()


def test_a_find_game_that_starts_with_an_empty_hand_is_won_with_an_empty_hand() -> None:
    world = RoomsWorld(RoomsConfig(held_start=0.0))
    world.reset(tasks("find blue"), [0])
    assert world.state["agent"][0, KEPT] == NOTHING
    world = scene((1, 1, EAST), {(2, 1): "red", (1, 0): "blue"})
    begun = world.snapshot()
    begun["agent"][0, KEPT] = NOTHING
    world.restore(begun)
    do(world, "pick up", "turn left")
    assert not is_achieved(world, "find blue")
    do(world, "turn right", "put down", "turn left")
    assert is_achieved(world, "find blue")
