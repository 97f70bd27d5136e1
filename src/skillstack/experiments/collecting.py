"""From what jobs left to data: learning curves in points, success of each task, and what everything took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from skillstack.experiments.data import POINTS, Curve, Run, Score
from skillstack.experiments.jobs import FINISHED_FILE, Measuring, Training
from skillstack.learning.curriculum import NOVEL
from skillstack.learning.run_folder import read_metrics


def curve_of(job: Training, runs: Path, panel: str, method: str, *, novel_only: bool = False) -> Curve:
    """The curve of a run's top level, or of its novel phase alone."""
    turns = [line for line in read_metrics(runs / job.name) if line["event"] == "turn"]
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
    )


def _points(turns: Sequence[dict[str, Any]], games: int, most: int) -> Iterator[Sequence[dict[str, Any]]]:
    """Turns in groups, so that there are at most POINTS."""
    size = max(-(-most // (POINTS * games)), 1)
    for begin in range(0, len(turns), size):
        yield turns[begin : begin + size]


def scores_of(job: Measuring, runs: Path, method: str, seed: int) -> list[Score]:
    data = job.read(runs)
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
        for test, evaluation in zip(data["asked"]["tests"], data["evaluations"], strict=True)
        for task in evaluation["tasks"]
    ]


def run_of(job: Training, runs: Path) -> Run:
    took = json.loads((runs / job.name / FINISHED_FILE).read_bytes())
    return Run(job.name, job.config.seed, took["episodes"], took["steps"], took["seconds"])
