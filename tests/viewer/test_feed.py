"""A plan told piece by piece is the plan."""

from __future__ import annotations

import pytest

from skillstack import Instruction
from skillstack.rollout.casting import cast
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.runner import Assignment, Runner, RunnerConfig
from skillstack.viewer.feed import PlanFeed, apply
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.world import Limits


@pytest.mark.parametrize(("player", "penalty"), [("oracle", True), ("random", True), ("random", False)])
def test_patches_put_together_are_the_plan_after_every_moment(player: str, penalty: bool) -> None:
    world, found = cast(player, RoomsConfig(penalty=penalty))
    runner = Runner(world, found, RunnerConfig(Limits(flat=8, decisions=5, episode=60)), plans=True)
    task = found.vocabulary.encode(Instruction("stack", "blue"))
    for seed in range(4):
        feed, known, sizes, sentences = PlanFeed(), None, [], []
        for tree in runner.watch(Assignment(task, seed)):
            patch = feed.patch(tree)
            known = apply(known, patch)
            assert known == tree.to_json()["root"]
            sizes.append(len(str(patch)))
            sentences.append(plan_sentence(tree))
        assert tree.root.outcome
        assert len(sizes) == tree.moments() + 1
        # What was said at a moment can be told from the whole plan, too.
        assert sentences == [plan_sentence(tree.until(moment)) for moment in range(len(sizes))]


def test_a_patch_does_not_grow_with_the_game() -> None:
    world, found = cast("random", RoomsConfig(penalty=False))
    runner = Runner(world, found, RunnerConfig(Limits(flat=200, decisions=20, episode=150)), plans=True)
    feed = PlanFeed()
    sizes = [
        len(str(feed.patch(tree)))
        for tree in runner.watch(Assignment(found.vocabulary.encode(Instruction("find", "red")), 1))
    ]
    assert len(sizes) > 20
    assert max(sizes) < 20_000
