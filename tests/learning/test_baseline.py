"""The flat baseline: one policy for all tasks, which goes on from the one for fewer."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny import tiny

from skillstack.instructions import make_stages
from skillstack.learning.baseline import flat_agent
from skillstack.learning.learner import A2CLearner
from skillstack.learning.trainer import Trainer
from skillstack.policies.agent import Agent
from skillstack.policies.encoder import LstmState
from skillstack.policies.flat import FlatPolicy

STAGES = make_stages("find, get", ["red", "blue"])


def terminal_agent() -> Agent:
    return Agent.create(tiny().world().description, STAGES[:1], shared_encoder=True)


def test_a_flat_policy_for_more_tasks_says_the_same_of_those_it_knew() -> None:
    start = terminal_agent()
    flat = flat_agent(start, STAGES[1].tasks, seed=3)
    assert flat.num_levels == 1
    assert flat.stages[0].tasks == STAGES[1].tasks
    features, known = torch.rand(4, 256), torch.tensor([[0, 0], [0, 1], [0, 0], [0, 1]])
    answers = []
    for agent in (start, flat):
        policy = agent.levels[0]
        assert isinstance(policy, FlatPolicy)
        answers.append(policy.step(features, known, LstmState.zeros(4))[0])
    assert answers[0].action.equal(answers[1].action)
    assert answers[0].value.equal(answers[1].value)


def test_making_a_flat_policy_does_not_touch_the_one_it_starts_from() -> None:
    start = terminal_agent()
    flat = flat_agent(start, STAGES[1].tasks, seed=3)
    with torch.no_grad():
        for parameter in flat.levels[0].parameters():
            parameter.zero_()
    assert any(parameter.abs().sum() > 0 for parameter in start.levels[0].parameters())


def test_new_words_are_drawn_by_the_seed() -> None:
    rows = [flat_agent(terminal_agent(), STAGES[1].tasks, seed).levels[0].trunk.instruction.skills.weight[1]
            for seed in (1, 1, 2)]  # fmt: skip
    assert rows[0].equal(rows[1])
    assert not rows[0].equal(rows[2])


def test_the_baseline_is_trained_like_a_level_of_the_hierarchy_in_both_phases() -> None:
    trainer = Trainer(tiny(flat=True))
    seen = []
    for metrics in trainer.turns():
        seen.append((metrics["level"], metrics.get("phase")))
        if metrics["event"] == "turn" and metrics["level"] == 1:
            assert isinstance(trainer.stage.learner, A2CLearner)
    assert {(0, "novel"), (1, "base"), (1, "novel")} <= set(seen)
    assert trainer.learned.num_levels == 1
    assert trainer.learned.stages[0].tasks == STAGES[1].tasks


def test_a_wider_flat_policy_stays_as_wide_from_stage_to_stage_and_on_disk(tmp_path: Path) -> None:
    start = Agent.create(tiny().world().description, STAGES[:1], shared_encoder=True, lstm=20)
    flat = flat_agent(start, STAGES[1].tasks, seed=3)
    assert isinstance(flat.levels[0], FlatPolicy)
    assert flat.levels[0].action_head.in_features == 20
    flat.save(tmp_path / "agent")
    assert Agent.load(tmp_path / "agent").lstm == 20
