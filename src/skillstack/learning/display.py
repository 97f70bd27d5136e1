"""What a person sees of a run: two live lines with a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from skillstack.learning.curriculum import BASE, NOVEL
from skillstack.learning.trainer import PRACTICE, Trainer

SECONDS_BETWEEN_LINES = 30.0
PHASES = {BASE: "base phase", NOVEL: "all tasks", PRACTICE: "practice"}


class Display:
    """Stage, phase, episodes, success of each skill over its last episodes, steps a second, time left."""

    def __init__(self, console: Console, trainer: Trainer) -> None:
        self._console, self._trainer = console, trainer
        self._spoken = -SECONDS_BETWEEN_LINES
        self._bar = Progress(
            TextColumn("{task.description}\n{task.fields[words]}"), BarColumn(10), TimeRemainingColumn(),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("", words="")

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop drawing."""
        self._bar.stop()

    def show(self, metrics: dict[str, Any]) -> None:
        if metrics["event"] != "turn":
            line = f"Stage {metrics['level']} ended after {metrics['episodes']:,} episodes."
            self._console.print(line, highlight=False)
            self._bar.reset(self._task)
            return
        progress = self._trainer.progress()
        phase = PHASES[progress.phase]
        policy = "flat policy, stage " if self._trainer.config.flat else "pi_"
        name = f"{policy}{progress.level} of {progress.num_levels - 1}: {progress.stage}, {phase}"
        skills = ", ".join(f"{skill} {share:.3f}" for skill, share in progress.success.items())
        name += f": {progress.episodes:,} episodes"
        words = f"{skills}  {progress.steps_per_second:,.0f} steps/s"
        self._bar.update(
            self._task, description=name, words=words, completed=progress.episodes, total=progress.most_episodes
        )
        if metrics["novel phase begins"]:
            self._console.print(
                f"{policy}{progress.level} is over the threshold in its base tasks: now all tasks.", highlight=False
            )
        if not self._console.is_terminal and monotonic() - self._spoken > SECONDS_BETWEEN_LINES:
            self._spoken = monotonic()
            left = f"some {max(round(progress.seconds_left / 60), 1):,} min left of this stage"
            self._console.print(f"{name}  {words}  {left}", highlight=False)
