"""Episodes: what the top level decided in a game, with the probabilities it did so with (Gamma in the paper)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.instructions import TaskArray
from skillstack.rollout.plan import ACHIEVED, PlanTree

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Decisions:
    """T decisions of one level in order of time, as arrays. A terminal level has no switch and no instruction."""

    states: npt.NDArray[Any]
    """(T,) snapshots, or (T, height, width, 3) frames where the world has no snapshots."""
    action: npt.NDArray[np.int64]
    """(T,): drawn at every decision, carried out where the switch says ACT."""
    mu_action: Floats
    """(T, actions): probabilities of the plain policy, as are the other mu."""
    behaviour_action: Floats
    """(T,): the probability with which the action was in truth drawn, with grammar and epsilon, as for the others."""
    switch: npt.NDArray[np.int64] | None = None
    """(T,): CALL or ACT."""
    instruction: TaskArray | None = None
    """(T, 2): drawn at every decision, uttered where the switch says CALL."""
    mu_switch: Floats | None = None
    """(T, 2)"""
    mu_skill: Floats | None = None
    """(T, skills of the base)"""
    mu_item: Floats | None = None
    """(T, items of the base)"""
    behaviour_switch: Floats | None = None
    """(T,)"""
    behaviour_instruction: Floats | None = None
    """(T,)"""
    executable: npt.NDArray[np.bool_] | None = None
    """(T, skills of the base * items of the base): which instructions could have been carried out, if that was asked
    for."""

    def __len__(self) -> int:
        return len(self.action)

    def row(self, index: int) -> dict[str, Any]:
        """One decision, by the names of the fields."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: None if value is None else value[index] for name, value in values.items()}


@dataclass(frozen=True)
class Episode:
    """One game played by a level for a task."""

    level: int
    task: TaskArray
    """(2,): word numbers of the player's vocabulary."""
    seed: int
    decisions: Decisions
    rewards: npt.NDArray[np.float32]
    """(T,): one for each decision; only the last can be other than 0."""
    done: npt.NDArray[np.bool_]
    """(T,): whether the game was over after the decision."""
    outcome: str
    """How it ended, one of `plan.OUTCOMES`."""
    steps: int
    """Primitive steps, whoever took them."""
    calls: int
    """Utterances at all levels, executable or not."""
    refusals: int
    """Utterances at all levels that could not be executed."""
    reached: npt.NDArray[np.bool_] | None = None
    """(T + 1, tasks): which of the level's tasks held at the start and after each decision, if it was asked for."""
    plan: PlanTree | None = None
    """Recorded if the runner was asked to."""

    @property
    def success(self) -> bool:
        return self.outcome == ACHIEVED

    def __len__(self) -> int:
        return len(self.decisions)
