"""From the records of jobs to data: learning curves in points, success of each task, and what everything took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from skillstack.experiments.data import POINTS, Curve, Run, Score
from skillstack.experiments.jobs import Training
from skillstack.experiments.records import Record
from skillstack.learning.curriculum import NOVEL

SOLVED = 0.9
"""The success from which on a skill counts as learned, if it stays there for some turns."""
STAYS = 5


def curve_of(job: Training, record: Record, panel: str, method: str, *, novel_only: bool = False) -> Curve:
    """The curve of a run's top level, or of its novel phase alone."""
    columns = record["turns"]
    turns = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    level, games, config = max(line["level"] for line in turns), job.config.games, job.config
    turns = [line for line in turns if line["level"] == level]
    start = turns[0]["episodes"] - games
    switch = next((line["episodes"] for line in turns if line["novel phase begins"]), None)
    most = config.level.episodes
    if novel_only:
        start = switch if switch is not None else start
        turns = [line for line in turns if line["phase"] == NOVEL]
        most, switch = most - start if not config.flat else most, None
    least = -0.5 if config.penalty and not config.flat else 0.0
    points = list(_points(turns, games, max(most, games)))
    return Curve(
        panel=panel,
        method=method,
        seed=config.seed,
        episodes=tuple(point[-1]["episodes"] - start for point in points),
        reward=tuple((fmean(line["reward"] for line in point) - least) / (1.0 - least) for point in points),
        success=tuple(fmean(line["success"] for line in point) for point in points),
        switch=None if switch is None else switch - start,
        most=most,
        solved=_solved(turns, len(config.make_stages()[level].tasks.skills), start, most),
    )


def _solved(turns: Sequence[dict[str, Any]], num_skills: int, start: int, most: int) -> int:
    """When each skill was at SOLVED over the last games of its tasks, and stayed there; `most` if never.

    A base skill's last games may be of the base phase; the new one has games only since then.
    """
    high = 0
    for line in turns:
        shares = line["windows"].values()
        good = line["phase"] == NOVEL and len(shares) == num_skills and min(shares) >= SOLVED
        high = high + 1 if good else 0
        if high == STAYS:
            return int(line["episodes"]) - start
    return most


def _points(turns: Sequence[dict[str, Any]], games: int, most: int) -> Iterator[Sequence[dict[str, Any]]]:
    """Turns in groups, so that there are at most POINTS."""
    size = max(-(-most // (POINTS * games)), 1)
    for begin in range(0, len(turns), size):
        yield turns[begin : begin + size]


def scores_of(record: Record, method: str, seed: int) -> list[Score]:
    return [
        Score(
            method=method,
            seed=seed,
            test=test["label"],
            skill=task["skill"],
            item=task["item"],
            games=task["games"],
            success=task["success"],
            steps=task["steps"],
            refused=task["refused"],
        )
        for test, evaluation in zip(record["asked"]["tests"], record["evaluations"], strict=True)
        for task in evaluation["tasks"]
    ]


def run_of(job: Training, record: Record) -> Run:
    return Run(job.name, job.config.seed, record["episodes"], record["steps"], record["seconds"])
