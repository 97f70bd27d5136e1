"""The commands take --world minecraft as they take the embedded rooms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from skillstack.cli import main
from skillstack.learning.config import TrainConfig
from skillstack.learning.trainer import Trainer
from skillstack.worlds.minecraft import MinecraftWorld, session

pytestmark = pytest.mark.usefixtures("server")


def test_plan_plays_and_films_a_game(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film, record = tmp_path / "plan.gif", tmp_path / "plan.json"
    results = ["--gif", str(film), "--json", str(record)]
    command = ["plan", "stack blue", "--agent", "oracle", "--world", "minecraft", "--seed", "3", *results]
    assert main(command) == 0
    assert "I stacked the blue blocks" in capsys.readouterr().out
    plan = json.loads(record.read_text())
    assert plan["world"] == "minecraft"
    with Image.open(film) as picture:
        assert getattr(picture, "n_frames", 1) > 5


def test_evaluate_says_where_it_played_and_gives_the_embedded_rooms_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The oracle plays the same games in both worlds, so everything that is counted must agree."""
    figures = []
    for world in ("minecraft", "rooms"):
        path = tmp_path / f"{world}.json"
        command = ["evaluate", "oracle", "--world", world, "--episodes", "6", "--games", "4", "--json", str(path)]
        assert main(command) == 0
        (evaluation,) = json.loads(path.read_text())
        assert evaluation["settings"]["world"] == world
        figures.append(evaluation["tasks"])
    assert "small room in minecraft" in capsys.readouterr().out
    assert figures[0] == figures[1]


def test_training_takes_a_turn_there() -> None:
    trainer = Trainer(TrainConfig(world_name="minecraft", games=2, threads=1, stages="find, get"))
    assert isinstance(trainer.world, MinecraftWorld)
    turn = next(iter(trainer.turns()))
    assert turn["event"] == "turn"
    assert turn["episodes"] == 2
    assert TrainConfig.from_json(trainer.config.to_json()).world_name == "minecraft"


def test_without_the_packages_a_command_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "VIEWER", tmp_path / "none")
    assert main(["evaluate", "oracle", "--world", "minecraft"]) == 2
    assert "make minecraft" in capsys.readouterr().err
