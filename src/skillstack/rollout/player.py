"""Who plays: whatever can say, for a level and a task, how likely it is to decide what.

The runner draws the decisions; a player only proposes. So networks, a random player and an oracle are run, recorded and
drawn by the same code.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch

from skillstack.instructions import Stage, TaskArray, Vocabulary
from skillstack.policies.agent import Agent
from skillstack.policies.encoder import LstmState
from skillstack.policies.flat import FlatOutput
from skillstack.policies.grammar import Grammar
from skillstack.worlds.world import Frames, IntArray

Floats = npt.NDArray[np.floating[Any]]


class Proposal(NamedTuple):
    """The plain policies of n games at one level, as log-probabilities; a terminal level has actions alone."""

    log_action: Floats  # (n, actions)
    log_switch: Floats | None = None  # (n, 2), CALL and ACT
    log_skill: Floats | None = None  # (n, skills of the base)
    log_item: Floats | None = None  # (n, items of the base)


class Player(Protocol):
    """Plays games by slots: a slot holds one game at a time, and one run of each level."""

    stages: tuple[Stage, ...]
    vocabulary: Vocabulary
    grammars: list[Grammar | None]

    def set_up(self, num_slots: int) -> None:
        """Make place for so many games."""
        ...

    def begin(self, level: int, slots: IntArray) -> None:
        """A new run of a level begins in these slots."""
        ...

    def look(self, slots: IntArray, frames: Frames) -> None:
        """What is to be seen now in these slots; holds until the next look."""
        ...

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        """How a level would decide now. Called once for each decision, so a level's memory may move on."""
        ...


class AgentPlayer:
    """Plays with an agent's networks. With a shared encoder a frame is encoded once, whatever the depth."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.stages = agent.stages
        self.vocabulary = agent.vocabulary
        self.grammars = agent.grammars

    def set_up(self, num_slots: int) -> None:
        self._memory = [LstmState.zeros(num_slots, self.agent.lstm) for _ in self.agent.levels]  # (slots, 256)
        self._place = np.zeros(num_slots, dtype=np.int64)  # where a slot is in what was looked at last
        self._features: torch.Tensor | None = None
        self._frames: Frames | None = None

    def begin(self, level: int, slots: IntArray) -> None:
        for part in self._memory[level]:
            part[slots] = 0.0

    @torch.inference_mode()
    def look(self, slots: IntArray, frames: Frames) -> None:
        self._place[slots] = np.arange(len(slots))
        self._frames = frames
        self._features = self.agent.encoder_of(0)(torch.from_numpy(frames)) if self.agent.shared_encoder else None

    @torch.inference_mode()
    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        policy = self.agent.levels[level]
        hidden, cell = self._memory[level]
        rows = torch.from_numpy(slots)
        output, (new_hidden, new_cell) = policy.step(
            self._see(level, slots), torch.from_numpy(tasks), LstmState(hidden[rows], cell[rows])
        )
        hidden[rows], cell[rows] = new_hidden, new_cell
        if isinstance(output, FlatOutput):
            return Proposal(_log_softmax(output.action))
        return Proposal(*(_log_softmax(part) for part in (output.action, output.switch, output.skill, output.item)))

    def _see(self, level: int, slots: IntArray) -> torch.Tensor:
        places = self._place[slots]
        if self._features is not None:
            return self._features[torch.from_numpy(places)]
        assert self._frames is not None, "look first"
        everything = len(places) == len(self._frames) and bool((places == np.arange(len(places))).all())
        frames = self._frames if everything else self._frames[places]
        features: torch.Tensor = self.agent.encoder_of(level)(torch.from_numpy(frames))
        return features


def _log_softmax(logits: torch.Tensor) -> Floats:
    return torch.log_softmax(logits, dim=-1).numpy()


class RandomPlayer:
    """Knows the words and the actions, and nothing else: every decision is equally likely."""

    def __init__(self, stages: tuple[Stage, ...], num_actions: int) -> None:
        self.stages = stages
        self.vocabulary = stages[-1].tasks.vocabulary
        self.grammars: list[Grammar | None] = [None] * len(stages)
        self._num_actions = num_actions

    def set_up(self, num_slots: int) -> None:
        pass

    def begin(self, level: int, slots: IntArray) -> None:
        pass

    def look(self, slots: IntArray, frames: Frames) -> None:
        pass

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        base, n = self.stages[level].base, len(slots)
        log_action = uniform(n, self._num_actions)
        if not base:
            return Proposal(log_action)
        return Proposal(log_action, uniform(n, 2), uniform(n, len(base.skills)), uniform(n, len(base.items)))


def uniform(n: int, choices: int) -> Floats:
    return np.full((n, choices), -np.log(choices))


def certain(numbers: list[int], choices: int) -> Floats:
    """Log-probabilities of choices that are beyond doubt."""
    log = np.full((len(numbers), choices), -np.inf)
    log[np.arange(len(numbers)), numbers] = 0.0
    return log


class MisledPlayer:
    """A player whose top level is told the next item's name in place of the task's: whoever listens then fails."""

    def __init__(self, player: Player, top: int) -> None:
        self._player, self._top = player, top
        self.stages, self.vocabulary, self.grammars = player.stages, player.vocabulary, player.grammars

    def set_up(self, num_slots: int) -> None:
        self._player.set_up(num_slots)

    def begin(self, level: int, slots: IntArray) -> None:
        self._player.begin(level, slots)

    def look(self, slots: IntArray, frames: Frames) -> None:
        self._player.look(slots, frames)

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        if level == self._top:
            tasks = np.stack([tasks[:, 0], (tasks[:, 1] + 1) % len(self.stages[level].tasks.items)], axis=1)
        return self._player.propose(level, slots, tasks)
