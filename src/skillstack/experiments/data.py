"""The data of one experiment: every single run is in it, as CSV and JSON under results/, and the page is made of it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from skillstack import __version__
from skillstack.disk import make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.experiments.statistics import Estimate, Floats, estimate

FORMAT = "skillstack-result"
FORMAT_VERSION = 1

POINTS = 100
"""At most so many of a curve."""
LAST = 5
"""The mean of so many points is where a curve ends."""


@dataclass(frozen=True)
class Curve:
    """The learning curve of one run, in points that are each the mean of some turns."""

    panel: str
    method: str
    seed: int
    episodes: tuple[int, ...]
    """At the end of each point, since the start of what the panel shows."""
    reward: tuple[float, ...]
    """Mean reward, with the least that the method can get as 0 and the most as 1."""
    success: tuple[float, ...]
    switch: int | None
    """When the novel phase began; None if it did not, or if there is no base phase."""
    most: int
    """Episodes that the run might have taken: it ends sooner once the stage is learned."""
    solved: int
    """Episodes until each skill was at 0.9 over the last games of its tasks; all episodes if that never was."""

    @property
    def final(self) -> float:
        """Mean reward at the end."""
        return fmean(self.reward[-LAST:])

    @property
    def final_success(self) -> float:
        return fmean(self.success[-LAST:])

    def area(self, until: int) -> float:
        """Mean reward over so many episodes; a run that ended sooner goes on as it ended."""
        return float(self.on_grid(np.linspace(0, until, POINTS + 1)[1:]).mean())

    def on_grid(self, grid: Floats) -> Floats:
        """Its rewards after so many episodes; after its end, as it ended."""
        return np.interp(grid, self.episodes, self.reward, right=self.final)


@dataclass(frozen=True)
class Score:
    """How an agent did on one task in one test."""

    method: str
    seed: int
    test: str
    skill: str
    item: str
    games: int
    success: float
    steps: float
    refused: float | None


@dataclass(frozen=True)
class Run:
    """What a training run took."""

    job: str
    seed: int
    episodes: int
    steps: int
    seconds: float


@dataclass(frozen=True)
class Data:
    """Of one experiment, with one kind of encoder."""

    experiment: str
    variant: str
    scale: str
    seeds: int
    """That were asked for; what is missing of them is told in `missing`."""
    curves: tuple[Curve, ...] = ()
    scores: tuple[Score, ...] = ()
    runs: tuple[Run, ...] = ()
    plans: tuple[dict[str, Any], ...] = ()
    measuring: float = 0.0
    """Seconds of one core that its measurements took."""
    missing: dict[str, str] = field(default_factory=dict)
    """What was not finished, and why."""
    shares: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """How often games are played in some way, by name, for each seed."""
    notes: dict[str, float] = field(default_factory=dict)
    """Further numbers, by name."""

    @property
    def name(self) -> str:
        return f"{self.experiment}-{self.variant}"

    @property
    def methods(self) -> tuple[str, ...]:
        entries: list[Curve | Score] = [*self.curves, *self.scores]
        return tuple(dict.fromkeys(entry.method for entry in entries))

    @property
    def panels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(curve.panel for curve in self.curves))

    def of_curves(self, panel: str, method: str, measure: Callable[[Curve], float]) -> Estimate | None:
        """A measure of a method's curves, over seeds; None where there is no run."""
        values = [measure(curve) for curve in self.curves if (curve.panel, curve.method) == (panel, method)]
        return estimate(values, middle=len(values) >= ENOUGH) if values else None

    def success(
        self, method: str, test: str, skill: str, items: Callable[[Score], bool] = lambda score: True
    ) -> Estimate | None:
        """The mean success of a method at a skill over seeds and items; None where it was not measured."""
        return self._over_tasks(method, test, skill, items, middle=False)

    def middle_success(self, method: str, test: str, skill: str) -> Estimate | None:
        """The interquartile mean over seeds and items."""
        return self._over_tasks(method, test, skill, lambda score: True, middle=True)

    def _over_tasks(
        self, method: str, test: str, skill: str, items: Callable[[Score], bool], *, middle: bool
    ) -> Estimate | None:
        rows: dict[int, list[float]] = {}
        for score in self.scores:
            if (score.method, score.test, score.skill) == (method, test, skill) and items(score):
                rows.setdefault(score.seed, []).append(score.success)
        return estimate(list(rows.values()), middle=middle) if rows else None

    def until(self, panel: str) -> int:
        """Episodes that all curves of a panel might have taken."""
        return min(curve.most for curve in self.curves if curve.panel == panel)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "skillstack": __version__,
            "experiment": self.experiment,
            "variant": self.variant,
            "scale": self.scale,
            "seeds": self.seeds,
            "runs": [asdict(run) for run in self.runs],
            "curves": [
                {"panel": curve.panel, "method": curve.method, "seed": curve.seed, "switch": curve.switch}
                | {"most": curve.most, "solved": curve.solved}
                | {"final": curve.final, "final success": curve.final_success}
                for curve in self.curves
            ],
            "measuring": self.measuring,
            "missing": self.missing,
            "shares": {name: list(values) for name, values in self.shares.items()},
            "notes": self.notes,
            "plans": list(self.plans),
        }


ENOUGH = 4
"""Seeds from which on an interquartile mean says more than a mean."""

CURVE_FIELDS = ("panel", "method", "seed", "episodes", "reward", "success")


def write_data(data: Data, folder: Path, extra: dict[str, Any]) -> list[Path]:
    """Write JSON and CSV; `extra` goes into the JSON beside the data."""
    make_folder(folder)
    files = {f"{data.name}.json": json.dumps({**data.to_json(), **extra}, indent=1) + "\n"}
    if data.curves:
        rows = [
            {"panel": curve.panel, "method": curve.method, "seed": curve.seed, "episodes": end}
            | {"reward": f"{reward:.4f}", "success": f"{success:.4f}"}
            for curve in data.curves
            for end, reward, success in zip(curve.episodes, curve.reward, curve.success, strict=True)
        ]
        files[f"{data.name}-curves.csv"] = _csv(CURVE_FIELDS, rows)
    if data.scores:
        files[f"{data.name}-success.csv"] = _csv(
            tuple(Score.__dataclass_fields__), [asdict(score) for score in data.scores]
        )
    for name, text in files.items():
        write_file(folder / name, text.encode())
    return [folder / name for name in files]


def _csv(fields: Sequence[str], rows: Iterable[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read_result(path: Path) -> dict[str, Any]:
    """The JSON of an experiment; whatever is wrong with it is said in one sentence."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SkillstackError(f"{path} cannot be read ({error}); restore it, or remove it.") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("format_version") != FORMAT_VERSION:
        raise SkillstackError(f"{path} is not a result of this version of Skillstack; move it away.")
    return data


def num_runs(path: Path) -> int:
    """How many runs the result has that is there; 0 if there is none."""
    return len(read_result(path)["runs"]) if path.exists() else 0


def check_replaceable(path: Path, scale: str, seeds: int) -> None:
    """Refuse to put less in the place of a result that is there."""
    if not path.exists():
        return
    before = read_result(path)
    if before["scale"] != scale:
        raise SkillstackError(
            f"{path} holds a result at {before['scale']} scale; choose another place for this one with --out."
        )
    if before["seeds"] > seeds:
        raise SkillstackError(
            f"{path} holds a result of {before['seeds']} seeds; say --seeds {before['seeds']}, or choose another place "
            "for this one with --out."
        )
