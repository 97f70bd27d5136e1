"""Tests of rooms/facts.py, and of looking ahead: what a critic is shown of a state."""

import numpy as np
import pytest
from rooms_helpers import ALL_TASKS, STANDARD, cycled, do, play, scene, start, tasks

from skillstack import SkillstackError
from skillstack.instructions import SKILLS
from skillstack.worlds.rooms import ACTIONS, RoomsConfig
from skillstack.worlds.rooms.facts import HAND, num_facts
from skillstack.worlds.rooms.layout import EAST, NORTH, make_state
from skillstack.worlds.world import OpenWorld

REACH, SIDE = 5, 11


def facts(agent: tuple[int, int, int], blocks: dict[tuple[int, int], str], held: str | None, task: str) -> np.ndarray:
    world = scene(agent, blocks, held)
    return world.facts(world.snapshot(), tasks(task))[0]


def cell(forward: int, right: int, *, other: bool = False) -> int:
    """Where in the facts a block is that stands so far ahead and to the right."""
    return int(other) * SIDE**2 + (forward + REACH) * SIDE + right + REACH


def test_blocks_are_told_as_the_agent_sees_them() -> None:
    told = facts((2, 3, NORTH), {(3, 1): "red", (2, 5): "blue"}, None, "find red")
    assert set(np.flatnonzero(told[: 2 * SIDE**2])) == {cell(2, 1), cell(-2, 0, other=True)}
    turned = facts((2, 3, EAST), {(3, 1): "red", (2, 5): "blue"}, None, "find red")
    assert set(np.flatnonzero(turned[: 2 * SIDE**2])) == {cell(1, -2), cell(0, 2, other=True)}


def test_a_block_is_what_lies_on_top_of_it() -> None:
    told = facts((2, 3, NORTH), {(2, 1): "red blue"}, None, "find red")
    assert set(np.flatnonzero(told[: 2 * SIDE**2])) == {cell(2, 0, other=True)}


def test_walls_hand_and_skill_are_told() -> None:
    told = facts((2, 3, NORTH), {}, "red", "put red")[2 * SIDE**2 :]
    walls, hand, skill = np.split(told, [4 * (REACH + 1), 4 * (REACH + 1) + HAND])
    # To the north there are three cells, to the east three, to the south two, to the west two.
    assert walls.reshape(4, REACH + 1).argmax(axis=1).tolist() == [3, 3, 2, 2]
    assert hand.tolist() == [0, 1, 0, 1]
    assert skill.argmax() == SKILLS.index("put")
    assert facts((2, 3, NORTH), {}, "blue", "put red")[-len(SKILLS) - HAND :][:3].tolist() == [0, 0, 1]


def test_a_room_turned_around_with_its_agent_tells_the_same() -> None:
    first = facts((1, 4, NORTH), {(2, 1): "red", (0, 3): "blue"}, None, "find red")
    # A quarter turn to the right takes x, z to 5 - z, x.
    second = facts((1, 1, EAST), {(4, 2): "red", (2, 0): "blue"}, None, "find red")
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("config", [STANDARD, RoomsConfig(big=True), RoomsConfig(grow=3), RoomsConfig(room_width=8)])
def test_there_is_a_place_for_all_that_can_be(config: RoomsConfig) -> None:
    world = start(config, 200)
    play(world, 30)
    told = world.facts(world.snapshot(), cycled(ALL_TASKS, 200))
    assert told.shape == (200, num_facts(config)) == (200, world.num_facts)
    parts = (told[:, -len(SKILLS) :], told[:, -len(SKILLS) - HAND : -len(SKILLS) - 1])
    assert all((part.sum(axis=1) == 1).all() for part in parts)
    assert (told <= 1).all()


def test_looking_ahead_is_taking_each_action_and_touches_no_game() -> None:
    assert isinstance(start(STANDARD, 50), OpenWorld)
    world = start(STANDARD, 50)
    play(world, 10)
    before, asked = world.snapshot(), cycled(ALL_TASKS, 50)
    after, achieved = world.ahead(before, asked)
    assert world.snapshot().tobytes() == before.tobytes()
    for number in range(len(ACTIONS)):
        world.restore(before)
        world.step(np.full(50, number))
        assert after[:, number].tobytes() == world.snapshot().tobytes()
        np.testing.assert_array_equal(achieved[:, number], world.achieved(asked))


def test_a_step_that_achieves_the_task_is_seen_ahead() -> None:
    world = do(scene((2, 3, NORTH), {(2, 1): "red"}))
    _, achieved = world.ahead(world.snapshot(), tasks("find red"))
    assert [ACTIONS[number] for number in np.flatnonzero(achieved[0])] == ["move forward"]


def test_what_is_no_state_of_this_world_is_refused() -> None:
    other = make_state(RoomsConfig(max_blocks=8), (1, 1, NORTH), {})
    for ask in (scene((1, 1, NORTH)).facts, scene((1, 1, NORTH)).ahead):
        with pytest.raises(SkillstackError, match="not snapshots"):
            ask(other, tasks("find red"))
