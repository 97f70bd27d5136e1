"""The two-phase curriculum of section 4: first the base tasks alone, then all tasks of the stage."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from skillstack.instructions import Instruction, Stage

BASE, NOVEL = "base", "novel"


class Curriculum:
    """Which phase a stage is in, which task is next, and how the last episodes of each task went."""

    def __init__(
        self,
        stage: Stage,
        *,
        threshold: float,
        window: int,
        enabled: bool = True,
        left_out: Collection[Instruction] = (),
    ) -> None:
        """The base phase ends once each base task's mean reward over its last `window` episodes is over `threshold`.

        Tasks that are left out are never drawn: the stage knows their names, and learns nothing of them.
        """
        self.stage, self.threshold, self.window = stage, threshold, window
        self._base = [task for task in stage.base if task not in left_out]
        self._tasks = [task for task in stage.tasks if task not in left_out]
        self.phase = BASE if enabled and stage.base else NOVEL
        self._recent: dict[str, deque[float]] = {str(task): deque(maxlen=window) for task in self._tasks}

    def draw(self, rng: np.random.Generator) -> Instruction:
        """A task of the phase, all equally likely."""
        tasks = self._base if self.phase == BASE else self._tasks
        return tasks[int(rng.integers(len(tasks)))]

    def record(self, task: Instruction, reward: float) -> bool:
        """Note how an episode ended; returns whether that ended the base phase."""
        self._recent[str(task)].append(reward)
        if self.phase == BASE and all(self._passed(task) for task in self._base):
            self.phase = NOVEL
            return True
        return False

    def _passed(self, task: Instruction) -> bool:
        recent = self._recent[str(task)]
        return len(recent) == self.window and sum(recent) / self.window > self.threshold

    def success(self, skill: str) -> float | None:
        """The share of successes of a skill over its tasks' last episodes; None before the first."""
        rewards = [reward for task in self._tasks if task.skill == skill for reward in self._recent[str(task)]]
        return sum(reward > 0 for reward in rewards) / len(rewards) if rewards else None

    def forget(self) -> None:
        """Begin the windows anew, as another policy plays now."""
        for recent in self._recent.values():
            recent.clear()

    def all_windows_full(self) -> bool:
        return all(len(recent) == self.window for recent in self._recent.values())

    def state(self) -> dict[str, Any]:
        return {"phase": self.phase, "recent": {task: list(rewards) for task, rewards in self._recent.items()}}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.phase = state["phase"]
        for task, rewards in state["recent"].items():
            self._recent[task] = deque(rewards, maxlen=self.window)
