"""A game watched as it is played, begun anywhere, and played by a person."""

from __future__ import annotations

import numpy as np
import pytest

from skillstack import Instruction, SkillstackError
from skillstack.rollout.casting import cast
from skillstack.rollout.person_player import PersonPlayer
from skillstack.rollout.replay import replay
from skillstack.rollout.runner import Assignment, Runner, RunnerConfig
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import make_state
from skillstack.worlds.world import Limits

STACK_BLUE = Instruction("stack", "blue")


@pytest.mark.parametrize("name", ["oracle", "random", "untrained"])
def test_a_watched_game_is_the_game_that_is_played(name: str) -> None:
    world, player = cast(name, RoomsConfig())
    runner = Runner(world, player, RunnerConfig(Limits(flat=6, decisions=4, episode=40)), plans=True)
    (episode,) = runner.play([STACK_BLUE], [5])
    steps = [len(tree.actions()) for tree in runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 5))]
    *_, tree = runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 5))
    assert tree == episode.plan
    assert steps[0] == 0
    assert set(np.diff(steps)) <= {0, 1}


def test_a_plan_until_a_moment_is_the_plan_as_it_stood_then() -> None:
    world, player = cast("random", RoomsConfig(penalty=False))
    runner = Runner(world, player, RunnerConfig(Limits(flat=5, decisions=4, episode=30)), plans=True)
    seen = [tree.dumps() for tree in runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 2))]
    *_, tree = runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 2))
    assert [tree.until(moment).dumps() for moment in range(tree.moments() + 1)] == seen


def test_only_a_runner_that_records_plans_can_be_watched() -> None:
    world, player = cast("random", RoomsConfig())
    with pytest.raises(SkillstackError, match="records plans"):
        next(Runner(world, player).watch(Assignment(player.vocabulary.encode(STACK_BLUE), 2)))


def test_a_game_can_begin_anywhere_and_its_plan_tells_from_where_to_play_it_again() -> None:
    world, player = cast("oracle", RoomsConfig())
    start = make_state(world.config, (0, 0, 0), {(5, 5): "blue", (5, 4): "blue"})
    runner = Runner(world, player, plans=True)
    *_, tree = runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 1, start))
    assert tree.success
    assert tree.settings["start"] == world.state_to_json(start)
    recording = replay(RoomsWorld(RoomsConfig()), tree)
    assert (recording.frames[0] == world.render(start)[0]).all()
    assert recording.states is not None
    assert len(recording.states) == tree.steps + 1
    *_, usual = runner.watch(Assignment(player.vocabulary.encode(STACK_BLUE), 1))
    assert "start" not in usual.settings


def test_maps_can_be_left_out_of_a_recording() -> None:
    world, player = cast("oracle", RoomsConfig())
    *_, tree = Runner(world, player, plans=True).watch(Assignment(player.vocabulary.encode(STACK_BLUE), 1))
    assert replay(world, tree, map_size=0).maps is None


def test_a_person_takes_any_task_with_actions_alone() -> None:
    world = RoomsWorld(RoomsConfig())
    person = PersonPlayer(world.description)
    start = make_state(world.config, (0, 0, 2), {(1, 1): "red"})
    game = Runner(world, person, plans=True).watch(
        Assignment(person.vocabulary.encode(Instruction("get", "red")), 0, start)
    )
    tree = next(game)
    for action in ("move forward", "turn left", "pick up"):
        person.decide(action)
        next(game)
    assert [action for action, _ in tree.actions()] == ["move forward", "turn left", "pick up"]
    assert tree.success
    with pytest.raises(SkillstackError, match='Did you mean "turn left"'):
        person.decide("turn lift")
