"""How far training runs have come, from their metrics, also while they are being written."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.learning.run_folder import CONFIG_FILE, METRICS_FILE, read_config, read_metrics

MOST_POINTS = 300
"""Of a stage; more would not be seen."""


class Runs:
    """The runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._curves: dict[str, tuple[int, dict[str, Any]]] = {}  # by name, with the size of the metrics
        self._lock = Lock()

    def names(self) -> list[str]:
        """The newest first."""
        found = [path.parent for path in self.folder.glob(f"*/{CONFIG_FILE}")] if self.folder.is_dir() else []
        return [path.name for path in sorted(found, key=_changed, reverse=True)]

    def curves(self, name: str, known: int = -1) -> dict[str, Any]:
        """The curves of a run, or only its name and size where nothing has come since that size was `known`."""
        if name not in self.names():
            raise SkillstackError(f'There is no run "{name}" in {self.folder}.')
        path = self.folder / name
        with self._lock:
            size = _size(path)
            if size == known:
                return {"run": name, "size": size}
            if self._curves.get(name, (-1,))[0] != size:
                read_config(path)
                self._curves[name] = (size, {"stages": stages(read_metrics(path))})
            return {"run": name, "size": size, **self._curves[name][1]}


def stages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The curves of each stage: success of each skill by the run's episodes, and where its phases changed."""
    told, before = [], 0
    for level, group in groupby(events, key=lambda event: event.get("level")):
        turns = list(group)
        points = [turn for turn in turns if turn.get("event") == "turn"]
        if not points:
            continue
        told.append(
            {
                "level": level,
                "begins": before,
                "points": [
                    [before + turn["episodes"], turn["windows"], turn["reward"]] for turn in _thin(points, MOST_POINTS)
                ],
                "switches": [before + turn["episodes"] for turn in points if turn["novel phase begins"]],
                "learned": any(turn.get("event") == "stage learned" for turn in turns),
                "steps": points[-1]["steps"],
                "phase": points[-1]["phase"],
            }
        )
        before += points[-1]["episodes"]
    return told


def _thin(points: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """As many points as wanted, evenly, the last one among them."""
    stride = -(-len(points) // most)
    return points[(len(points) - 1) % stride :: stride]


def _size(path: Path) -> int:
    metrics = path / METRICS_FILE
    return metrics.stat().st_size if metrics.exists() else 0


def _changed(path: Path) -> float:
    metrics = path / METRICS_FILE
    return (metrics if metrics.exists() else path).stat().st_mtime
