from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from skillstack.errors import SkillstackError
from skillstack.learning.config import TrainConfig
from skillstack.learning.run_folder import TENSORBOARD_FOLDER
from skillstack.learning.trackers import curves, open_trackers

TURN = {
    "event": "turn", "level": 1, "phase": "base", "episodes": 64, "windows": {"find": 0.5, "get": 0.25},
    "novel phase begins": False, "reward": 0.4,
}  # fmt: skip


def read(folder: Path, name: str) -> list[tuple[int, float]]:
    events = EventAccumulator(str(folder / TENSORBOARD_FOLDER)).Reload()
    return [(event.step, round(event.value, 6)) for event in events.Scalars(name)]


def test_each_number_of_a_turn_is_a_curve_of_its_level() -> None:
    assert curves(TURN) == {
        "pi_1/episodes": 64.0, "pi_1/success of find": 0.5, "pi_1/success of get": 0.25,
        "pi_1/novel phase begins": 0.0, "pi_1/reward": 0.4,
    }  # fmt: skip


def test_tensorboard_has_the_curves_over_the_episodes_of_the_whole_run(tmp_path: Path) -> None:
    with open_trackers(TrainConfig(), tmp_path, 0) as trackers:
        for step in (64, 128):
            for tracker in trackers:
                tracker.write({"pi_0/reward": step / 1024}, step)
    assert read(tmp_path, "pi_0/reward") == [(64, 0.0625), (128, 0.125)]


def test_what_was_written_after_the_checkpoint_is_dropped_when_a_run_goes_on(tmp_path: Path) -> None:
    for start, value in ((0, 1.0), (128, 2.0)):
        with open_trackers(TrainConfig(), tmp_path, start) as (tracker,):
            for step in range(start + 64, start + 256, 64):
                tracker.write({"pi_0/reward": value}, step)
    assert read(tmp_path, "pi_0/reward") == [(64, 1.0), (128, 1.0), (192, 2.0), (256, 2.0), (320, 2.0)]


def test_tensorboard_can_be_turned_off(tmp_path: Path) -> None:
    with open_trackers(TrainConfig(tensorboard=False), tmp_path, 0) as trackers:
        assert not trackers
    assert not any(tmp_path.iterdir())


def test_without_the_extra_a_sentence_says_how_to_get_weights_and_biases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(SkillstackError, match="pip install"), open_trackers(TrainConfig(wandb="mine"), tmp_path, 0):
        pass


def test_what_weights_and_biases_refuses_is_said_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class RefusalError(Exception):
        pass

    def refuse(**settings: Any) -> None:
        raise RefusalError("no API key configured")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=refuse, Error=RefusalError))
    with pytest.raises(SkillstackError, match="no API key"), open_trackers(TrainConfig(wandb="mine"), tmp_path, 0):
        pass


def test_a_full_disk_is_said_in_a_sentence_and_does_not_hide_another_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with open_trackers(TrainConfig(), tmp_path, 0) as (tracker,):
        monkeypatch.setattr(tracker._writer, "add_scalar", full)  # type: ignore[attr-defined]
        monkeypatch.setattr(tracker._writer, "close", full)  # type: ignore[attr-defined]
        with pytest.raises(SkillstackError, match="No space left"):
            tracker.write({"pi_0/reward": 0.5}, 64)


def test_weights_and_biases_gets_the_same_numbers_and_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    run = SimpleNamespace(
        log=lambda numbers, step: calls.append((numbers, step)), finish=lambda: calls.append("finish")
    )
    fake = SimpleNamespace(init=lambda **settings: calls.append(settings) or run)
    monkeypatch.setitem(sys.modules, "wandb", fake)
    folder, config = tmp_path / "paper-7", TrainConfig(wandb="mine", seed=7, tensorboard=False)
    other_folder = tmp_path / "elsewhere" / "paper-7"
    for path in (folder, other_folder):
        path.mkdir(parents=True)
    with open_trackers(config, folder, 0) as (tracker,):
        tracker.write({"pi_0/reward": 0.5}, 64)
    settings, logged, ended = calls
    assert settings["project"] == "mine"
    assert settings["name"] == "paper-7"
    assert settings["config"]["seed"] == 7
    assert logged == ({"pi_0/reward": 0.5}, 64)
    assert ended == "finish"
    for path in (folder, other_folder):
        with open_trackers(config, path, 0):
            pass
    again, other = (call["id"] for call in calls[3:] if isinstance(call, dict))
    assert again == settings["id"] != other
