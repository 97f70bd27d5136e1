"""Replay: decisions in columns, and the spans of them that are learned from (D of Algorithm 2).

A span is a whole episode, or a part of one that was in hindsight a success of another task. Batches are whole spans
side by side, so that a level's memory unrolls from their start. The columns hold what a world's states are: snapshots
of some fifty bytes, frames where there are none, or features of a frozen encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from skillstack.instructions import TaskArray
from skillstack.learning.losses import DecisionBatch, final_returns
from skillstack.rollout.episode import Decisions, Episode

Array = npt.NDArray[Any]

FIRST_SKILL = 0
"""The number of the skill that pi_0 has: words are numbered in their order of acquisition."""


@dataclass(frozen=True)
class Batch:
    """n spans of at most t decisions, the longest first."""

    tasks: Tensor  # (n, 2)
    rows: Array  # (m,): the rows of the replay that the batch looks at, one for each decision that is there
    there: Tensor  # (t, n): which decisions there are
    decisions: DecisionBatch


class Replay:
    """Episodes in order of time; when there are more than `capacity`, the oldest are forgotten."""

    def __init__(self, capacity: int, gamma: float, *, behaviour: bool = False) -> None:
        """`behaviour` keeps the probabilities with which decisions were in truth drawn, not the plain policies'."""
        self.capacity, self.gamma, self.behaviour = capacity, gamma, behaviour
        self.clear()

    def clear(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._spans = {
            "start": _Column(np.zeros(0, np.int64)),
            "length": _Column(np.zeros(0, np.int64)),
            "task": _Column(np.zeros((0, 2), np.int64)),
            "reward": _Column(np.zeros(0, np.float32)),
            "hindsight": _Column(np.zeros(0, np.bool_)),
        }

    def __len__(self) -> int:
        """How many spans there are."""
        return len(self._spans["start"].values)

    @property
    def num_decisions(self) -> int:
        return len(self._columns["action"].values) if self._columns else 0

    def spans(self, *, hindsight: bool) -> npt.NDArray[np.int64]:
        """The numbers of the spans that are episodes as they were meant, or those seen in hindsight."""
        return np.flatnonzero(self._spans["hindsight"].values == hindsight)

    def spans_of(self, skills: Array) -> npt.NDArray[np.int64]:
        """The numbers of the spans seen in hindsight whose tasks are of these skills."""
        spans = self.spans(hindsight=True)
        return spans[np.isin(self._spans["task"].values[spans, 0], skills)]

    def add(self, episode: Episode, features: Array | None = None, more: Mapping[str, Array] | None = None) -> None:
        """Keep an episode; `features` in place of its states, and `more` about its decisions."""
        start = self.num_decisions
        columns = decision_columns(episode.decisions, self.behaviour) | dict(more or {})
        columns["states"] = episode.decisions.states if features is None else features
        for name, values in columns.items():
            self._columns.setdefault(name, _Column(values[:0])).extend(values)
        self._add_span(start, len(episode), episode.task, float(episode.rewards[-1]), hindsight=False)
        self._forget()

    def add_hindsight(
        self, episode: Episode, tasks: TaskArray, success: float, steps: int, rng: np.random.Generator
    ) -> None:
        """The episode just added as successes of other tasks: whenever it achieved one, from shortly before it on.

        It starts a random number of `steps` before the success. `tasks` are those of `episode.reached`. A moment at
        which the task is achieved already is no start for it. For the first skill, neither is one after which a task of
        another skill came about or was undone: who picks up a block on the way to another did more than find it.
        """
        assert episode.reached is not None, "the runner was not asked for hindsight"
        first = self.num_decisions - len(episode)
        reached = episode.reached
        for end, number in np.argwhere(reached[1:] & ~reached[:-1]).tolist():
            spoilt = reached[: end + 1, number]
            if tasks[number, 0] == FIRST_SKILL:
                others = reached[: end + 2, tasks[:, 0] != FIRST_SKILL]
                spoilt = spoilt | (others[1:] != others[:-1]).any(axis=1)
            start = int(np.flatnonzero(spoilt)[-1]) + 1 if spoilt.any() else 0
            if start > end:
                continue
            begin = int(rng.integers(max(start, end + 1 - steps), end + 1))
            self._add_span(first + begin, end + 1 - begin, tasks[number], success, hindsight=True)

    def _add_span(self, start: int, length: int, task: Array, reward: float, *, hindsight: bool) -> None:
        for name, value in (("start", start), ("length", length), ("reward", reward), ("hindsight", hindsight)):
            self._spans[name].extend(np.array([value]))
        self._spans["task"].extend(np.asarray(task)[None])

    def _forget(self) -> None:
        """Drop the oldest when there are a quarter too many; rarely, so that it costs nothing."""
        if 4 * len(self) <= 5 * self.capacity:
            return
        drop = len(self) - self.capacity
        # What is seen in hindsight need not begin in the order in which it was added.
        first_row = int(self._spans["start"].values[drop:].min())
        for column in self._spans.values():
            column.drop(drop)
        for column in self._columns.values():
            column.drop(first_row)
        self._spans["start"].values[:] -= first_row

    def draw(self, rng: np.random.Generator, decisions: int) -> npt.NDArray[np.int64]:
        """Spans drawn evenly, with replacement, until they have at least so many decisions."""
        lengths = self._spans["length"].values
        oldest = max(len(lengths) - self.capacity, 0)
        drawn = rng.integers(oldest, len(lengths), size=decisions)  # a span has at least one decision
        enough = int(np.searchsorted(np.cumsum(lengths[drawn]), decisions)) + 1
        return drawn[:enough]

    def batch(self, spans: npt.NDArray[np.int64]) -> Batch:
        """The named spans, side by side."""
        length = self._spans["length"].values[spans]
        order = np.argsort(-length, kind="stable")
        spans, length = spans[order], length[order]
        t = np.arange(length[0])[:, None]  # (t, 1)
        # Where a span is over, its last decision stands in.
        places = self._spans["start"].values[spans] + np.minimum(t, length - 1)  # (t, n)
        columns = {
            name: torch.from_numpy(column.values[places]) for name, column in self._columns.items() if name != "states"
        }
        rewards = torch.from_numpy(self._spans["reward"].values[spans])
        mask, returns = final_returns(rewards, torch.from_numpy(length), self.gamma)
        there = t < length
        return Batch(
            tasks=torch.from_numpy(self._spans["task"].values[spans]),
            rows=places[there],
            there=torch.from_numpy(there),
            decisions=DecisionBatch(mask=mask, returns=returns, **columns),
        )

    def states(self, rows: Array | slice) -> Array:
        """What was seen at these rows."""
        return self._columns["states"].values[rows]

    def state(self) -> dict[str, Any]:
        """Everything, for a checkpoint."""
        return {
            "columns": {name: column.values for name, column in self._columns.items()},
            "spans": {name: column.values for name, column in self._spans.items()},
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._columns = {name: _Column(values) for name, values in state["columns"].items()}
        self._spans = {name: _Column(values) for name, values in state["spans"].items()}


class _Column:
    """An array that grows at its end, in place for the most part."""

    def __init__(self, values: Array) -> None:
        self._room = values.copy()
        self._used = len(values)

    @property
    def values(self) -> Array:
        return self._room[: self._used]

    def extend(self, values: Array) -> None:
        needed = self._used + len(values)
        if needed > len(self._room):
            room = np.empty((max(2 * len(self._room), needed, 1024), *self._room.shape[1:]), dtype=self._room.dtype)
            room[: self._used] = self.values
            self._room = room
        self._room[self._used : needed] = values
        self._used = needed

    def drop(self, count: int) -> None:
        """Forget the first values. The others move up in parts that do not overlap, so that no copy is needed."""
        self._used -= count
        for start in range(0, self._used, count) if count else ():
            part = slice(start, min(start + count, self._used))
            self._room[part] = self._room[part.start + count : part.stop + count]


def decision_columns(decisions: Decisions, behaviour: bool) -> dict[str, Array]:
    """The fields of a `DecisionBatch` that an episode's decisions give: the choices and their probabilities."""
    found: dict[str, Array] = {"action": decisions.action}
    if behaviour:
        found["mu_action"] = decisions.behaviour_action
    else:
        found["mu_action"] = _chosen(decisions.mu_action, decisions.action)
    if decisions.switch is not None:
        assert decisions.instruction is not None, "levels with a switch have instructions"
        assert decisions.mu_switch is not None, "levels with a switch have all its probabilities"
        assert decisions.mu_skill is not None
        assert decisions.mu_item is not None
        assert decisions.behaviour_switch is not None
        assert decisions.behaviour_instruction is not None
        skill, item = decisions.instruction.T
        plain_instruction = _chosen(decisions.mu_skill, skill) * _chosen(decisions.mu_item, item)
        plain_switch = _chosen(decisions.mu_switch, decisions.switch)
        found["switch"], found["instruction"] = decisions.switch, decisions.instruction
        found["mu_switch"] = decisions.behaviour_switch if behaviour else plain_switch
        found["mu_instruction"] = decisions.behaviour_instruction if behaviour else plain_instruction
    return {name: values.astype(np.float32) if values.dtype.kind == "f" else values for name, values in found.items()}


def _chosen(probabilities: Array, choices: Array) -> Array:
    return np.asarray(np.take_along_axis(probabilities, choices[:, None], axis=1)[:, 0])
