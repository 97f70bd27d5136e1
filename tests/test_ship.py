"""`pretrained/ship.py` makes the shipped agent's folder of runs, and goes on from what is shipped."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from skillstack import shipped
from skillstack.cli import main
from skillstack.policies.agent import Agent

SCRIPT = Path(__file__).parents[1] / "pretrained" / "ship.py"
SMALL = [
    *("--stages", "find, get", "--items", "red", "blue", "--games", "8", "--threads", "1", "--image-size", "36"),
    *("--terminal.episodes", "16", "--episodes", "16", "--no-tensorboard"),
]


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, in a project of its own where nothing is shipped yet."""
    spec = importlib.util.spec_from_file_location("ship", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path / "pretrained"
    folder.mkdir()
    (tmp_path / "README.md").write_text(f"before\n{module.MARK}old\n{module.MARK}after\n")
    monkeypatch.setattr(module, "HERE", folder)
    monkeypatch.setattr(module, "GAMES", 4)
    monkeypatch.setattr(shipped, "PLACES", (folder / "agent",))
    return module


def call(ship: ModuleType, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(sys, "argv", ["ship.py", *names])
    ship.main()


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def weights(path: Path, level: int) -> list[torch.Tensor]:
    return list(Agent.load(path).levels[level].state_dict().values())


def test_it_tells_of_all_runs_also_of_those_that_were_shipped_before(
    ship: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, folder = tmp_path / "first", tmp_path / "second", tmp_path / "pretrained"
    assert main(["train", "--run", str(first), *SMALL]) == 0
    call(ship, monkeypatch, str(first))
    before, levels_before = rows(folder), [weights(folder / "agent", level) for level in (0, 1)]
    assert main(["train", "--from", "shipped", "--tune", "--seed", "1", *SMALL[2:], "--run", str(second)]) == 0
    call(ship, monkeypatch, "shipped", str(second))

    made = json.loads((folder / "config.json").read_text())
    assert [run["run"] for run in made] == ["first", "second"]
    assert rows(folder)[: len(before)] == before
    assert {row["run"] for row in rows(folder)} == {"first", "second"}
    page = (folder / "README.md").read_text()
    for run in made:
        assert f"    {run['command']}\n" in page
    assert "| first | pi_0 |" in page
    assert "| second | pi_1 |" in page
    front = (tmp_path / "README.md").read_text()
    assert front.startswith("before\n")
    assert front.endswith("after\n")
    assert "old" not in front
    assert "small room, shipped agent" in front
    # The level that learned on is the new one, in half precision, and what lies below is as it was.
    halves = [tensor.half().float() for tensor in weights(second / "agent", 1)]
    assert all(map(torch.equal, weights(folder / "agent", 1), halves))
    assert not all(map(torch.equal, weights(folder / "agent", 1), levels_before[1]))
    assert all(map(torch.equal, weights(folder / "agent", 0), levels_before[0]))

    with pytest.raises(SystemExit, match="has a run second already"):
        call(ship, monkeypatch, "shipped", str(second))
    assert json.loads((folder / "config.json").read_text()) == made


def test_without_runs_it_says_what_to_say(ship: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="Say of which runs"):
        call(ship, monkeypatch, "shipped")
