"""Many jobs in a few processes, each in a child of its own, with one thread.

Of those that are ready, the one with which the longest chain of jobs begins comes first: else a ladder of one seed may
be left at the end, with all cores but one idle.

A child that is killed or fails takes its job with it and nothing else. What was finished before is not done again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from rich.console import Console

from skillstack.disk import make_folder
from skillstack.errors import SkillstackError
from skillstack.experiments.jobs import Job
from skillstack.experiments.overview import Overview

SECONDS_BETWEEN_LOOKS = 2.0

# A server with everything imported forks the children, so that a job starts at once.
_context = multiprocessing.get_context("forkserver")


@dataclass
class _Child:
    job: Job
    process: BaseProcess
    pipe: Connection


def run_jobs(
    jobs: Sequence[Job], runs: Path, workers: int, console: Console, keep: Callable[[Job], None] = lambda job: None
) -> dict[str, str]:
    """Finish the jobs, as far as they can be; returns what was not finished, each with a sentence that says why.

    `keep` is called with each job that is finished, so that what is kept of it does not wait for the others.
    Ctrl-C, or SIGTERM, lets running jobs save their state, and raises KeyboardInterrupt; a second one stops them at
    once.
    """
    for job in jobs:
        job.check(runs)
    waiting = {job.name: job for job in _longest_first([job for job in jobs if not job.finished(runs)])}
    running: dict[str, _Child] = {}
    failed: dict[str, str] = {}
    _context.set_forkserver_preload(["skillstack.experiments.preloaded"])
    with Overview(console, jobs, runs, workers) as overview, _terminable(), _stopping(running, overview):
        while waiting or running:
            _drop_hopeless(waiting, failed, overview)
            for name in _ready(waiting, running)[: workers - len(running)]:
                running[name] = _start(waiting.pop(name), runs)
                overview.began(name)
            wait([child.process.sentinel for child in running.values()], SECONDS_BETWEEN_LOOKS)
            for name in [name for name, child in running.items() if child.process.exitcode is not None]:
                child = running.pop(name)
                sentence = _ending(child, runs)
                if sentence:
                    failed[name] = sentence
                else:
                    keep(child.job)
                overview.ended(name, sentence)
            overview.show()
    return failed


def _longest_first(jobs: Sequence[Job]) -> list[Job]:
    """Sorted by the time that a job and the longest chain of those after it take; each comes after what it needs."""
    after = dict.fromkeys((job.name for job in jobs), 0.0)
    for job in reversed(jobs):  # a job comes after those that it needs
        after[job.name] += job.expected_seconds
        for need in job.needs:
            after[need] = max(after.get(need, 0.0), after[job.name])
    return sorted(jobs, key=lambda job: -after[job.name])


def _ready(waiting: dict[str, Job], running: dict[str, _Child]) -> list[str]:
    """Jobs that need nothing any more that is not finished."""
    return [name for name, job in waiting.items() if not any(need in waiting or need in running for need in job.needs)]


def _drop_hopeless(waiting: dict[str, Job], failed: dict[str, str], overview: Overview) -> None:
    """Give up what needs something that failed; jobs come after what they need, so once through is enough."""
    for name, job in list(waiting.items()):
        missing = next((need for need in job.needs if need in failed), None)
        if missing is not None:
            failed[name] = f"It needs {missing}, which was not finished."
            overview.ended(name, failed[name])
            del waiting[name]


def _start(job: Job, runs: Path) -> _Child:
    ours, theirs = _context.Pipe()
    process = _context.Process(target=_work, args=(job, runs, theirs), name=job.name)
    process.start()
    theirs.close()
    return _Child(job, process, ours)


def _ending(child: _Child, runs: Path) -> str:
    """What a child that has ended says went wrong; nothing if its job is finished."""
    child.process.join()
    try:
        sentence = str(child.pipe.recv()) if child.pipe.poll() else ""
    except EOFError:
        sentence = ""
    child.pipe.close()
    if sentence or child.job.finished(runs):
        return sentence
    return f"Its process ended with status {child.process.exitcode}; {_log(child.job, runs)} says how far it came."


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM, which is what scripts and clusters send, is taken for Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _stopping(running: dict[str, _Child], overview: Overview) -> Iterator[None]:
    """When we are stopped, let the children save their state first."""
    try:
        yield
    except BaseException as error:
        overview.say("Stopping: running jobs save their state; once more to stop at once.")
        try:
            for child in running.values():
                _signal(child, signal.SIGINT)
            for child in running.values():
                child.process.join()
        except KeyboardInterrupt:
            for child in running.values():
                _signal(child, signal.SIGKILL)
        if isinstance(error, KeyboardInterrupt):
            overview.say("Stopped. The same command goes on from here.")
        raise


def _signal(child: _Child, number: signal.Signals) -> None:
    if child.process.exitcode is None and child.process.pid is not None:
        os.kill(child.process.pid, number)


# In the child


def _work(job: Job, runs: Path, pipe: Connection) -> None:
    os.setpgrp()  # Ctrl-C in a terminal then reaches the parent alone, which tells us once
    threading.Thread(target=_stop_when_orphaned, daemon=True).start()
    log = _log(job, runs)
    make_folder(log.parent)
    with log.open("a", encoding="utf-8") as file, redirect_stderr(file):
        console = Console(file=file, width=120)
        try:
            ended = job.run(runs, console)
            sentence = "" if ended else "It was stopped."
        except SkillstackError as error:
            sentence = str(error)
        except KeyboardInterrupt:
            sentence = "It was stopped."
        except Exception as error:
            console.print_exception()
            sentence = f"{type(error).__name__}: {error} ({log} has the whole story)."
    with suppress(BrokenPipeError):  # a parent that was killed does not listen
        pipe.send(sentence)


def _stop_when_orphaned() -> None:
    """A parent that was killed cannot tell its children to stop."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGINT)


def _log(job: Job, runs: Path) -> Path:
    return runs / f"{job.name}.log"
