"""The critic that sees states: returns worked by hand, judgement of all actions, and learning to judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import TINY, tiny

from skillstack.errors import DivergedError
from skillstack.learning import critic as module
from skillstack.learning.critic import Critic, mixed_returns
from skillstack.learning.trainer import Trainer
from skillstack.policies.agent import Agent
from skillstack.rollout.episode import Episode
from skillstack.rollout.player import AgentPlayer
from skillstack.rollout.runner import Runner, RunnerConfig
from skillstack.worlds.rooms import RoomsWorld

GAMMA, TRACE = 0.5, 0.5


@pytest.fixture
def world() -> RoomsWorld:
    return RoomsWorld(TINY.world(), 16)


def play(world: RoomsWorld, turn: int = 0) -> list[Episode]:
    agent = Agent.create(world.description, TINY.make_stages()[:1])
    tasks = list(agent.stages[0].tasks) * 8
    return Runner(world, AgentPlayer(agent), RunnerConfig(TINY.limits)).play(tasks, range(16 * turn, 16 * turn + 16))


def test_returns_stop_at_the_end_of_an_episode_whether_it_was_won_or_broken_off() -> None:
    average = np.array([0.2, 0.4, 0.6], np.float32)
    taken = np.array([0.1, 0.3, 0.8], np.float32)
    outcome, returns = mixed_returns(average, taken, np.array([False, False, False]), [2, 1], GAMMA, TRACE)
    # Broken off after two decisions, the second is worth (0.4 + 0.3) / 2; the first half of that, mixed with 0.2.
    np.testing.assert_allclose(outcome, [0.5 * 0.35, 0.3, 0.8], rtol=1e-6)
    np.testing.assert_allclose(returns, [(0.2 + 0.175) / 2, 0.35, 0.7], rtol=1e-6)


def test_all_actions_are_judged_beside_what_the_policy_does_on_average(world: RoomsWorld) -> None:
    episodes = play(world)
    judged = Critic(world, GAMMA, TRACE, seed=0).judge(episodes)
    for episode, (advantages, surprise, worth) in zip(episodes, judged, strict=True):
        decisions = episode.decisions
        assert advantages.shape == decisions.mu_action.shape
        np.testing.assert_allclose((decisions.mu_action * advantages).sum(axis=1), 0.0, atol=1e-6)
        if episode.success:
            # What achieves the task at once is worth 1, and nothing that came after could surprise.
            assert advantages[-1, decisions.action[-1]] == advantages[-1].max()
            assert surprise[-1] == 0.0
            assert worth[-1] > worth[:-1].max(initial=0.0)


def test_it_learns_which_states_are_close_to_the_goal(world: RoomsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UPDATES", 200)
    critic, rng = Critic(world, 0.9, 1.0, seed=0), np.random.default_rng(0)
    for turn in range(4):
        critic.judge(play(world, turn))
        critic.learn(rng)
    won = [episode for turn in range(4, 12) for episode in play(world, turn) if episode.success and len(episode) >= 3]
    far, near = (
        np.mean([critic._values(episode.decisions.states[[place]], episode.task[None]) for episode in won])
        for place in (0, -1)
    )
    assert near > far + 0.1


def test_it_goes_on_from_its_state_bit_for_bit(world: RoomsWorld) -> None:
    first, second = (Critic(world, GAMMA, TRACE, seed=seed) for seed in (0, 1))
    first.judge(play(world))
    first.learn(np.random.default_rng(0))
    second.load_state(first.state())
    for critic in (first, second):
        critic.judge(play(world, turn=1))
        critic.learn(np.random.default_rng(1))
    expected, found = (critic.state()["network"] for critic in (first, second))
    assert all(torch.equal(expected[name], found[name]) for name in expected)


@pytest.mark.parametrize("asked", [False, True])
def test_practice_begins_anew_with_a_critic_where_it_is_asked_for(asked: bool) -> None:
    still = replace(TINY.terminal.practice, learning_rate=0.0)
    trainer = Trainer(tiny(games=4, seeing=8, practice=still, critic=asked))
    first = [parameter.clone() for parameter in trainer.agent.levels[0].parameters()]
    eyes = [parameter.clone() for parameter in trainer.agent.encoder_of(0).parameters()]
    for _ in range(2):
        assert trainer.stage.learner.critic is None  # while it learns to see
        trainer.stage.turn()
    assert trainer.stage.practising
    assert (trainer.stage.learner.critic is not None) == asked
    assert (trainer.stage.windows == {}) == asked  # what another policy achieved does not count
    trainer.stage.turn()
    assert all(map(torch.equal, first, trainer.agent.levels[0].parameters())) == asked
    assert not all(map(torch.equal, eyes, trainer.agent.encoder_of(0).parameters()))


def test_games_of_the_policy_that_learned_to_see_are_not_learned_from_by_the_one_that_practises() -> None:
    trainer = Trainer(tiny(games=8, seeing=8, critic=True))
    first = [parameter.clone() for parameter in trainer.agent.levels[0].parameters()]
    trainer.stage.turn()
    assert trainer.stage.practising
    assert all(map(torch.equal, first, trainer.agent.levels[0].parameters()))


def test_a_policy_that_is_tuned_goes_on_with_a_critic_and_not_anew() -> None:
    trainer = Trainer(tiny(games=8, stages="find", seeing=8, critic=True, tune=True))
    first = [parameter.clone() for parameter in trainer.agent.levels[0].parameters()]
    trainer.stage.turn()
    assert trainer.stage.learner.critic is not None
    assert not all(map(torch.equal, first, trainer.agent.levels[0].parameters()))


def test_where_the_world_shows_nothing_there_is_no_critic_and_no_new_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RoomsWorld, "ahead")
    trainer = Trainer(tiny(games=8, seeing=8, critic=True))
    first = [parameter.clone() for parameter in trainer.agent.levels[0].parameters()]
    trainer.stage.turn()
    assert trainer.stage.practising
    assert trainer.stage.learner.critic is None
    assert not all(map(torch.equal, first, trainer.agent.levels[0].parameters()))


def test_a_critic_whose_loss_is_not_finite_stops_learning_by_its_own_name(world: RoomsWorld) -> None:
    critic = Critic(world, GAMMA, TRACE, seed=0)
    critic.judge(play(world))
    critic._returns[-1][0] = np.nan
    with pytest.raises(DivergedError, match="The critic's loss is nan"):
        critic.learn(np.random.default_rng(0))
    for name, tensor in critic.state()["network"].items():
        assert tensor.isfinite().all(), name
