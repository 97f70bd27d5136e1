"""What a person sees while many jobs run: a bar for all of them and one for each that runs; plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from skillstack.experiments.jobs import Job

SECONDS_BETWEEN_LINES = 60.0


class Overview:
    """How far all jobs are, and how long the rest may take."""

    def __init__(self, console: Console, jobs: Sequence[Job], runs: Path, workers: int) -> None:
        self._console, self._runs, self._workers = console, runs, workers
        self._jobs = {job.name: job for job in jobs}
        self._shares = {job.name: job.share_done(runs) for job in jobs}
        self._at_first = dict(self._shares)
        self._begun = self._spoken = monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[words]}"),
            console=console, disable=not console.is_terminal,
        )  # fmt: skip
        self._all = self._bar.add_task("all", total=1.0, words="")
        self._tasks: dict[str, TaskID] = {}
        self._over = {name for name, share in self._shares.items() if share >= 1.0}

    def __enter__(self) -> Self:
        """Start drawing, and say what lies ahead."""
        self._bar.start()
        left = len(self._jobs) - len(self._over)
        words = f"{left} to do" if left else "nothing left to do"
        self.say(f"{len(self._jobs)} jobs, {words}, at most {self._workers} at once.")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop drawing."""
        self._bar.stop()

    def say(self, sentence: str) -> None:
        self._console.print(sentence, highlight=False)

    def began(self, name: str) -> None:
        self._tasks[name] = self._bar.add_task(name, total=1.0, words="")
        if not self._console.is_terminal:
            self.say(f"{name} runs.")

    def ended(self, name: str, sentence: str) -> None:
        """A job is over, with a sentence if it failed."""
        self._over.add(name)
        self._shares[name] = 1.0
        if name in self._tasks:
            self._bar.remove_task(self._tasks.pop(name))
        if sentence:
            self.say(f"{name} failed. {sentence}")
        elif not self._console.is_terminal:
            self.say(f"{name} is finished; {self._summary()}.")

    def show(self) -> None:
        """Look how far the running jobs have come."""
        for name, task in self._tasks.items():
            self._shares[name] = self._jobs[name].share_done(self._runs)
            words = f"{self._shares[name]:.0%} of its most episodes"
            self._bar.update(task, completed=self._shares[name], words=words)
        done = self._seconds(self._shares)
        total = sum(job.expected_seconds for job in self._jobs.values())
        self._bar.update(self._all, completed=done / total if total else 1.0, words=self._summary())
        if not self._console.is_terminal and monotonic() - self._spoken > SECONDS_BETWEEN_LINES:
            self._spoken = monotonic()
            running = ", ".join(f"{name} {self._shares[name]:.0%}" for name in self._tasks)
            self.say(f"{running}; {self._summary()}.")

    def _seconds(self, shares: dict[str, float]) -> float:
        return sum(shares[name] * job.expected_seconds for name, job in self._jobs.items())

    def _summary(self) -> str:
        left = self.seconds_left()
        words = "" if left is None else f", at most about {_in_words(left)} left"
        return f"{len(self._over)} of {len(self._jobs)} jobs{words}"

    def seconds_left(self) -> float | None:
        """By how long what was done since the start took beside what was expected of it; None before there is any."""
        done = self._seconds(self._shares) - self._seconds(self._at_first)
        if done <= 0:
            return None
        left = sum(job.expected_seconds for job in self._jobs.values()) - self._seconds(self._shares)
        return left * (monotonic() - self._begun) / done


def _in_words(seconds: float) -> str:
    """A length of time for people.

    >>> _in_words(59), _in_words(600), _in_words(9000)
    ('1 minute', '10 minutes', '2.5 hours')
    """
    minutes = max(round(seconds / 60), 1)
    if minutes > 90:
        return f"{seconds / 3600:.1f} hours"
    return f"{minutes} minute{'s' if minutes > 1 else ''}"
