"""The two-phase curriculum of section 4: first the base tasks alone, then all tasks of the stage."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

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
        each: bool = True,
        novel: float = 0.0,
        left_out: Collection[Instruction] = (),
    ) -> None:
        """The base phase ends once the mean reward over each base task's last `window` episodes is over `threshold`.

        That is the mean of each task by itself or, without `each`, of all of them. In the novel phase the share `novel`
        of the games is of new tasks; if that is 0, all tasks are equally likely. Tasks that are left out are never
        drawn: the stage knows their names, and learns nothing of them.
        """
        self.stage, self.threshold, self.window, self.each, self.novel = stage, threshold, window, each, novel
        self._tasks = [task for task in stage.tasks if task not in left_out]
        self._base = [task for task in self._tasks if task in stage.base]
        self._new = [task for task in self._tasks if task not in stage.base]
        self.phase = BASE if enabled and stage.base else NOVEL
        self._recent: dict[str, deque[float]] = {str(task): deque(maxlen=window) for task in self._tasks}

    def draw(self, rng: np.random.Generator) -> Instruction:
        """A task of the phase."""
        tasks = self._base if self.phase == BASE else self._tasks
        if self.phase == NOVEL and self.novel and self._base and self._new:
            tasks = self._new if rng.random() < self.novel else self._base
        return tasks[int(rng.integers(len(tasks)))]

    def record(self, task: Instruction, reward: float) -> bool:
        """Note how an episode ended; returns whether that ended the base phase."""
        self._recent[str(task)].append(reward)
        if self.phase == BASE and self._passed():
            self.phase = NOVEL
            return True
        return False

    def _passed(self) -> bool:
        """Whether the base tasks are over the threshold, by full windows."""
        recent = [self._recent[str(task)] for task in self._base]
        if any(len(rewards) < self.window for rewards in recent):
            return False
        sums = [sum(rewards) for rewards in recent]
        mean = min(sums) / self.window if self.each else sum(sums) / (self.window * len(sums))
        return mean > self.threshold

    def success(self, skill: str) -> float | None:
        """The share of successes of a skill over its tasks' last episodes; None before the first."""
        rewards = [reward for task in self._tasks if task.skill == skill for reward in self._recent[str(task)]]
        return sum(reward > 0 for reward in rewards) / len(rewards) if rewards else None

    def failing(self) -> npt.NDArray[np.float32]:
        """The share of each task's last episodes that were lost, (skills, items); 1 for one that was not played yet."""
        vocabulary = self.stage.tasks.vocabulary
        shares = np.ones((len(vocabulary.skills), len(vocabulary.items)), np.float32)
        for task in self._tasks:
            rewards = self._recent[str(task)]
            if rewards:
                skill, item = vocabulary.encode(task)
                shares[skill, item] = sum(reward <= 0 for reward in rewards) / len(rewards)
        return shares

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
