"""Presets on the command line: the settings to start from, which flags then change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillstack.cli import main
from skillstack.learning.config import PRESETS, TrainConfig
from skillstack.options import with_preset


@pytest.mark.parametrize("flags", [["--preset", "other"], ["--preset=other"], ["--seed", "3", "--preset", "other"]])
def test_a_preset_gives_the_settings_that_flags_change(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "other", TrainConfig(games=3))
    assert with_preset(["train", *flags]).settings() == TrainConfig(games=3)
    assert with_preset(["train"]).settings() == PRESETS["fast"]


def test_flags_go_before_the_preset(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--preset", "paper", "--games", "7", "--dry-run"]) == 0
    assert "7 games at once" in capsys.readouterr().out


def test_presets_have_the_encoders_that_the_docs_say(capsys: pytest.CaptureFixture[str]) -> None:
    for preset in PRESETS:
        assert main(["train", "--preset", preset, "--dry-run"]) == 0
        assert capsys.readouterr().out.count("frozen encoder") == 3  # a line for each level above pi_0


def test_the_table_of_the_docs_has_what_the_presets_have() -> None:
    """Each number stands in its cell, which for "paper" is the first."""
    page = (Path(__file__).parents[1] / "docs" / "learning.md").read_text()
    rows = {cells[0].split(" (")[0]: cells[1:] for cells in re.findall(r"^\| (.*?) \| (.*?) \| (.*?) \|$", page, re.M)}
    assert set(PRESETS) == {"fast", "paper"}
    for preset, column in (("paper", 0), ("fast", 1)):
        config = PRESETS[preset]
        level = config.level
        bonus = config.a2c.entropy if level.method == "a2c" else config.ppo.even
        for row, words in {
            "frames": f"{config.image_size} x {config.image_size}",
            "levels see through": f"(`{config.encoder}`)",
            "pi_0 practises": f"up to {config.terminal.episodes - config.terminal.seeing:,}",
            "tasks": f"(`--novel`, {level.novel:g})" if level.curriculum else "all alike",
            "tasks ": "(`--no-each`)" if level.curriculum and not level.each else "(`--no-curriculum`)",
            "random play": f"within {level.epsilon_episodes:,}",
            "hard games at the levels": f"{level.again:g} of all" if level.again else "none",
            "a stage above stops when each skill has": f"{level.target:g}",
            "at most": f"{level.episodes:,}",
            "a bonus for choices that stay open": f"{bonus:g}",
            "a bonus for choices that stay open ": "--entropy-by-failure" if preset == "paper" else "even",
            "what cannot be carried out": f"weight {config.ppo.refusal:g}" if level.method == "ppo" else "-0.5",
        }.items():
            assert re.search(rf"(?<![\d.,]){re.escape(words)}(?![.,]?\d)", rows[row.strip()][column]), (preset, row)


def test_an_unknown_preset_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["train", "--preset", "nope", "--dry-run"])
    assert stop.value.code == 2
    assert "paper" in capsys.readouterr().err
