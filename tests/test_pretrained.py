"""The shipped agent: it is there, also in a wheel, it plays by default, and it is as good as it is said to be."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from math import sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from skillstack import shipped
from skillstack.cli import main
from skillstack.errors import SkillstackError
from skillstack.evaluation import evaluate, ways
from skillstack.policies.agent import Agent
from skillstack.rollout.casting import cast
from skillstack.rollout.runner import RunnerConfig
from skillstack.shipped import shipped_agent
from skillstack.worlds.rooms import RoomsConfig

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "pretrained"
GAMES = 480  # of each skill
GOALS = {
    "small": {"find": 0.995, "get": 0.99, "put": 1.0, "stack": 0.98},
    "big": {"find": 0.90, "get": 0.85, "put": 1.0, "stack": 0.80},
}


def stated(room: str) -> dict[str, dict[str, Any]]:
    evaluations = json.loads((FOLDER / "evaluation.json").read_text())
    (found,) = [evaluation for evaluation in evaluations if evaluation["settings"]["room"] == room]
    return {figures["skill"]: figures for figures in found["skills"]}


@pytest.mark.parametrize("room", ["small", "big"])
def test_it_is_as_good_as_it_is_said_to_be(room: str) -> None:
    torch.set_num_threads(1)
    world, player = cast("shipped", RoomsConfig(big=room == "big"), 64)
    found = evaluate(world, player, RunnerConfig(), GAMES, seed=20_260)  # not the seed of the stated figures
    for figures in found.skills:
        claim = stated(room)[figures.skill]
        share = (figures.successes + claim["successes"]) / (figures.games + claim["games"])  # if both are one agent's
        spread = sqrt(max(share * (1 - share), 1e-4) * (1 / figures.games + 1 / claim["games"]))
        assert abs(figures.success - claim["success"]) < 3 * spread, f"{figures.skill} in the {room} room"
        assert figures.ratio is not None
        assert figures.ratio < 1.1 * claim["ratio"], f"ways of {figures.skill} in the {room} room"
    taken, said = ways(found.skills), ways(SimpleNamespace(**claim) for claim in stated(room).values())
    assert taken is not None
    assert said is not None
    assert taken[0] / taken[1] == pytest.approx(said[0] / said[1], rel=0.05)


@pytest.mark.parametrize("room", ["small", "big"])
def test_it_is_as_good_as_it_was_meant_to_be(room: str) -> None:
    for skill, goal in GOALS[room].items():
        assert stated(room)[skill]["success"] >= goal, f"{skill} in the {room} room"
        assert stated(room)[skill]["games"] >= 1_000


def test_its_ways_are_at_most_half_as_long_again_as_the_shortest() -> None:
    taken = ways(SimpleNamespace(**claim) for claim in stated("small").values())
    assert taken is not None
    assert taken[0] / taken[1] <= 1.5


def test_it_knows_all_24_tasks_and_takes_little_room() -> None:
    agent = Agent.load(shipped_agent())
    assert agent.num_levels == 4
    assert len(agent.stages[-1].tasks) == 24
    assert sum(file.stat().st_size for file in FOLDER.rglob("*") if file.is_file()) < 25e6


def test_its_page_tells_how_it_was_made() -> None:
    page = (FOLDER / "README.md").read_text()
    made = json.loads((FOLDER / "config.json").read_text())
    assert len(made) > 1
    for run in made:
        assert f"    {run['command']}\n" in page
        assert run["command"].startswith("skillstack train ")
        assert "commit " in run["command"]
    with (FOLDER / "metrics.csv").open(newline="") as file:
        ends = {(row["run"], row["level"]): int(row["seconds"]) for row in csv.DictReader(file)}
    assert {name for name, _ in ends} == {run["run"] for run in made}
    minutes = round(sum(ends.values()) / 60)
    assert f"In all {minutes} minutes of one core." in page
    assert f"from nothing in {minutes} minutes of one core" in (ROOT / "README.md").read_text()
    for room in ("small", "big"):
        for skill, figures in stated(room).items():
            assert f"| {room} | {skill} | {figures['success']:.3f} |" in page


@pytest.mark.parametrize("room", ["small", "big"])
def test_the_front_page_has_its_figures(room: str) -> None:
    shares = " | ".join(f"**{figures['success']:.3f}**" for figures in stated(room).values())
    assert f"| {room} room, shipped agent | {shares} |" in (ROOT / "README.md").read_text()


def test_it_plays_where_nobody_else_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "get red", "--seed", "2"]) == 0
    assert "get red" in capsys.readouterr().out
    assert main(["evaluate", "--episodes", "6", "--skills", "put"]) == 0
    assert "shipped" in capsys.readouterr().out
    assert main(["grammar", "stack blue"]) == 0
    assert "stack blue" in capsys.readouterr().out


def test_a_copy_without_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shipped, "PLACES", (tmp_path / "nowhere",))
    with pytest.raises(SkillstackError, match="comes without an agent"):
        shipped_agent()


def test_a_wheel_has_it_where_it_is_looked_for(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    unpacked = tmp_path / "site"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(unpacked)
    names = {file.name for file in (unpacked / "skillstack" / "pretrained" / "agent").iterdir()}
    assert names == {file.name for file in (FOLDER / "agent").iterdir()}
    play = (
        "from skillstack import shipped, cli; print(shipped.shipped_agent()); cli.main(['plan', 'put red']); "
        "cli.main(['evaluate', '--skills', 'put', '--episodes', '6']); exit(cli.main(['grammar', 'stack blue']))"
    )
    told = subprocess.run(
        [sys.executable, "-c", play], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert told.startswith(str(unpacked))
    assert all(words in told for words in ("put red", "6 games of each skill", "stack blue"))
