"""The oracle plans in words as a perfect agent would, whatever the order of acquisition."""

from __future__ import annotations

import numpy as np
import pytest

from skillstack import Instruction, SkillstackError, make_stages
from skillstack.rollout.oracle_player import OraclePlayer
from skillstack.rollout.plan_text import plan_line
from skillstack.rollout.runner import Runner
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld


@pytest.mark.parametrize("order", ["find get put stack", "find put get stack", "stack get find put"])
@pytest.mark.parametrize("big", [False, True])
def test_it_solves_every_game_through_the_runner(order: str, big: bool) -> None:
    world = RoomsWorld(RoomsConfig(big=big), num_games=32)
    stages = make_stages(order)
    runner = Runner(world, OraclePlayer(world, stages))
    tasks = stages[-1].tasks.tasks
    episodes = runner.play([tasks[number % 24] for number in range(192)], range(192))
    assert all(episode.success for episode in episodes)
    assert not sum(episode.refusals for episode in episodes)


def test_its_plan_for_stacking_is_the_papers() -> None:
    world = RoomsWorld(RoomsConfig(distractors=False))
    runner = Runner(world, OraclePlayer(world, make_stages()), plans=True)
    (episode,) = runner.play([Instruction("stack", "blue")], [0])
    assert episode.plan is not None
    assert plan_line(episode.plan) == "stack blue: get blue (find blue, pick up), find blue, put blue (put down)"


def test_it_acts_itself_where_the_block_is_in_front_already() -> None:
    world = RoomsWorld(RoomsConfig(distractors=False))
    runner = Runner(world, OraclePlayer(world, make_stages("find, get")), plans=True)
    lines = set()
    for episode in runner.play([Instruction("get", "red")] * 200, range(200)):
        assert episode.plan is not None
        lines.add(plan_line(episode.plan))
    assert lines == {"get red: find red, pick up", "get red: pick up"}


def test_it_knows_the_two_room_world_only() -> None:
    with pytest.raises(SkillstackError, match="two-room"):
        OraclePlayer(object(), make_stages())  # type: ignore[arg-type]


def test_it_is_certain() -> None:
    world = RoomsWorld()
    player = OraclePlayer(world, make_stages("find, get"))
    world.reset(np.array([[1, 0]]), [0])
    proposal = player.propose(1, np.array([0]), np.array([[1, 0]]))
    for part in proposal:
        assert part is not None
        assert np.exp(part).max() == 1.0
