"""Interquartile means and bootstrap intervals over seeds and tasks (Agarwal et al. 2021), and bands of curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RESAMPLES = 2000
LEVEL = 0.95
"""How often an interval holds the truth."""


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, and of how many seeds it is made."""

    value: float
    low: float
    high: float
    seeds: int

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "seeds": self.seeds}


def interquartile_mean(values: npt.ArrayLike) -> float:
    """The mean of the middle half; where a quarter is no whole number, the values at its edge count in part.

    >>> interquartile_mean([0, 1, 2, 9])
    1.5
    """
    return float(_interquartile_means(np.asarray(values, dtype=np.float64).reshape(1, -1))[0])


def _interquartile_means(rows: Floats) -> Floats:
    """Of each row of (n, values)."""
    ordered = np.sort(rows, axis=1)
    quarter, ranks = rows.shape[1] / 4, np.arange(rows.shape[1])
    # Value i lies between the ranks i and i + 1; what counts is its part between the quarters.
    weights = np.clip(np.minimum(ranks + 1, 3 * quarter) - np.maximum(ranks, quarter), 0, 1)
    means: Floats = (ordered * weights).sum(axis=1) / weights.sum()
    return means


def estimate(scores: npt.ArrayLike, *, middle: bool = True) -> Estimate:
    """Of scores (seeds,) or (seeds, tasks): the interquartile mean, or the plain mean, with its bootstrap interval.

    The bootstrap is stratified: it draws seeds anew for each task, and keeps the tasks as they are.
    """
    table = np.asarray(scores, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table  # (seeds, tasks)
    num_seeds, num_tasks = table.shape
    rng = np.random.default_rng(0)  # the same data give the same page
    drawn = rng.integers(num_seeds, size=(RESAMPLES, num_seeds, num_tasks))
    rows = np.concatenate([table[None], table[drawn, np.arange(num_tasks)]]).reshape(RESAMPLES + 1, -1)
    value, *means = _interquartile_means(rows) if middle else rows.mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(value), float(low), float(high), num_seeds)


def band(curves: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Of curves (seeds, points): the mean, and the bootstrap interval of the mean, at each point."""
    table = np.asarray(curves, dtype=np.float64)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(table), size=(RESAMPLES, len(table)))
    means = table[drawn].mean(axis=1)  # (resamples, points)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return table.mean(axis=0), low, high


def is_more(one: Estimate, other: Estimate) -> bool | None:
    """Whether one number is larger than another; None where their intervals overlap, so that it cannot be said."""
    if one.low > other.high:
        return True
    return False if one.high < other.low else None
