"""A critic that sees the world's states in place of frames, and so knows how good every action would have been.

An agent's own value function has to guess what is behind its back, and what it cannot know is noise in every
advantage. While an agent learns in an embedded world, the world itself can be asked (asymmetric actor-critic, Pinto et
al. 2017). The policy never sees the answers: it learns from them what to do given what it does see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from skillstack.errors import DivergedError
from skillstack.instructions import TaskArray
from skillstack.learning.packing import load_optimizer_state, optimizer_state
from skillstack.policies.agent import seeded
from skillstack.rollout.episode import Episode
from skillstack.worlds.world import OpenWorld, Snapshots

Floats = npt.NDArray[np.float32]

HIDDEN = 256
LEARNING_RATE = 1e-3
BATCH = 512
"""States in a mini-batch."""
UPDATES = 20
"""Mini-batches a turn."""
TURNS = 10
"""The states of so many turns are learned from: what is older was worth something else."""
CRITIC_STREAM = 1000
"""What its weights are drawn by, beside the seed: the levels of an agent have the numbers from 0 on."""


class Judgement(NamedTuple):
    """What the critic thinks of one episode's decisions."""

    advantages: Floats
    """(T, actions): how much better each action would have been than what the policy does on average there."""
    surprise: Floats
    """(T,): how much better it went after the action that was taken than the critic had thought of that action."""
    worth: Floats
    """(T,): what the states turned out to be worth, by the critic and by what came of them."""


class Critic:
    """V(s, g) of states for the policy that plays, and what follows from it for all actions."""

    def __init__(self, world: OpenWorld, gamma: float, trace: float, seed: int) -> None:
        """`gamma` is the discount of a step; `trace` says how far returns are taken as they came."""
        self._world, self._gamma, self._trace = world, gamma, trace
        with seeded(seed, CRITIC_STREAM):
            self._network = nn.Sequential(
                nn.Linear(world.num_facts, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
                nn.Linear(HIDDEN, 1),
            )  # fmt: skip
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=LEARNING_RATE)
        self._facts: list[npt.NDArray[np.uint8]] = []  # of the last turns
        self._returns: list[Floats] = []

    def judge(self, episodes: Sequence[Episode]) -> list[Judgement]:
        """What it thinks of fresh episodes of a terminal level, which it then learns from."""
        states = np.concatenate([episode.decisions.states for episode in episodes])  # (m,)
        tasks = np.concatenate([np.repeat(episode.task[None], len(episode), axis=0) for episode in episodes])
        after, achieved = self._world.ahead(states, tasks)  # (m, actions)
        values = self._values(after.reshape(-1), np.repeat(tasks, achieved.shape[1], axis=0))
        q = np.where(achieved, 1.0, self._gamma * values.reshape(achieved.shape)).astype(np.float32)
        policy = np.concatenate([episode.decisions.mu_action for episode in episodes])
        average = (policy * q).sum(axis=1)  # (m,)
        action = np.concatenate([episode.decisions.action for episode in episodes])
        taken, won = (part[np.arange(len(action)), action] for part in (q, achieved))
        lengths = [len(episode) for episode in episodes]
        outcome, worth = mixed_returns(average, taken, won, lengths, self._gamma, self._trace)
        self._facts = [*self._facts, self._world.facts(states, tasks)][-TURNS:]
        self._returns = [*self._returns, worth][-TURNS:]
        ends = np.cumsum(lengths)[:-1]
        parts = (q - average[:, None], outcome - taken, worth)
        return [Judgement(*judged) for judged in zip(*(np.split(part, ends) for part in parts), strict=True)]

    def learn(self, rng: np.random.Generator) -> None:
        """Some updates on the states of the last turns."""
        facts, returns = np.concatenate(self._facts), torch.from_numpy(np.concatenate(self._returns))
        for _ in range(UPDATES):
            rows = rng.integers(len(facts), size=BATCH)
            loss = 0.5 * (self._network(_numbers(facts[rows]))[:, 0] - returns[rows]).pow(2).mean()
            if not bool(loss.detach().isfinite()):
                raise DivergedError(
                    f"The critic's loss is {loss.item()}, so learning was stopped before it spoils the weights."
                )
            self._optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self._optimizer.step()

    @torch.inference_mode()
    def _values(self, states: Snapshots, tasks: TaskArray) -> Floats:
        """V(s, g), which is a discounted success: from 0 to 1."""
        values: Floats = self._network(_numbers(self._world.facts(states, tasks)))[:, 0].clamp(0.0, 1.0).numpy()
        return values

    def state(self) -> dict[str, Any]:
        """Everything, for a checkpoint."""
        return {
            "network": dict(self._network.state_dict()),
            "optimizer": optimizer_state(self._optimizer),
            "facts": list(self._facts),
            "returns": list(self._returns),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._network.load_state_dict(state["network"])
        load_optimizer_state(self._optimizer, state["optimizer"])
        self._facts, self._returns = list(state["facts"]), list(state["returns"])


def mixed_returns(
    average: Floats, taken: Floats, won: npt.NDArray[np.bool_], lengths: Sequence[int], gamma: float, trace: float
) -> tuple[Floats, Floats]:
    """What came of the actions of some episodes, and what their states are worth, both (m,). A success is worth 1.

    A state is worth what the critic thinks of the policy's choices there (`average`) and, by `trace`, what came of the
    choice that was made. That is 1 where it won, what the next state is worth, discounted, or, where a game was broken
    off, what the critic thinks of the choice (`taken`).

    >>> average, taken = np.array([0.25, 0.5], np.float32), np.array([0.25, 1.0], np.float32)
    >>> outcome, returns = mixed_returns(average, taken, np.array([False, True]), [2], 0.5, 0.5)
    >>> outcome.tolist(), returns.tolist()
    ([0.375, 1.0], [0.3125, 0.75])
    """
    outcome, returns = taken.copy(), np.empty_like(taken)
    end = 0
    for length in lengths:
        begin, end = end, end + length
        for t in range(end - 1, begin - 1, -1):
            if t + 1 < end and not won[t]:
                outcome[t] = gamma * returns[t + 1]
            returns[t] = (1.0 - trace) * average[t] + trace * outcome[t]
    return outcome, returns


def _numbers(facts: npt.NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(facts).float()
