"""The scripts beside the results: what they tell of a run's metrics."""

from __future__ import annotations

import csv
import json
import runpy
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[1] / "results"


def turn(episodes: int, switched: bool = False, **shares: float) -> dict:
    return {
        "event": "turn", "level": 1, "phase": "base", "episodes": episodes, "steps": 9, "windows": shares,
        "novel phase begins": switched, "not executable": 0.12345, "length": 2.0, "seconds": 1.4, "core seconds": 30.0,
    }  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Its new skill is at 0.9 once by luck, and then stays there; the other comes back to it later."""
    shares = [(0.95, 0.9), (0.95, 0.2), *[(0.8, 0.91)] * 5, *[(0.92, 0.93)] * 5]
    lines = [turn(64, find=0.5), turn(128, switched=True, find=0.95)]
    lines += [turn(64 * number, find=find, get=get) for number, (find, get) in enumerate(shares, start=3)]
    path = tmp_path / "mine"
    path.mkdir()
    lines.append({"event": "stage learned", "level": 1, "episodes": 896})
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def call(monkeypatch: pytest.MonkeyPatch, script: Path, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [script.name, *arguments])
    runpy.run_path(str(script), run_name="__main__")


def test_stages_tells_how_soon_a_stage_was_learned(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    call(monkeypatch, RESULTS / "stages.py", str(run))
    assert capsys.readouterr().out.splitlines()[2] == (
        "| mine | pi_1 | 128 | 576 | 896 | find 0.920, get 0.930 | 896 | 7.0 |"
    )
    with pytest.raises(SystemExit, match="cannot be read"):
        call(monkeypatch, RESULTS / "stages.py", str(run / "nowhere"))


def test_a_curve_is_kept_once_with_the_last_line_of_each_stage(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "curve.py"
    script.write_text((RESULTS / "curve.py").read_text())
    call(monkeypatch, script, str(run), "kept")
    with (tmp_path / "kept.csv").open(newline="") as file:
        first, last = csv.DictReader(file)
    assert (first["episodes"], first["find"], first["get"]) == ("64", "0.5", "")
    assert (last["episodes"], last["get"], last["seconds"], last["not executable"]) == ("896", "0.93", "20", "0.1235")
    with pytest.raises(SystemExit, match="there already"):
        call(monkeypatch, script, str(run), "kept")
