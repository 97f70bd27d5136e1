"""Learning works: a tiny world is learned through two levels by each preset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny import SMALL_ROOM

from skillstack.learning.config import PRESETS, TrainConfig
from skillstack.learning.trainer import Trainer
from skillstack.worlds.world import Limits

TARGET = 0.8


def tiny_world(preset: TrainConfig, **terminal: Any) -> TrainConfig:
    """The preset in all but the size of the world and the lengths of runs."""
    return replace(
        preset,
        stages="find, get",
        **SMALL_ROOM,
        threads=1,
        limits=Limits(flat=15, decisions=6, episode=60),
        terminal=replace(preset.terminal, episodes=6_000, **terminal),
        level=replace(preset.level, target=TARGET, window=100, episodes=4_000),
    )


PAPER = tiny_world(PRESETS["paper"], target=0.9)
# It is to practise, with its critic, and so has little time to learn to see.
FAST = tiny_world(PRESETS["fast"], target=0.95, seeing=1_536)


@pytest.mark.parametrize("config", [PAPER, FAST], ids=["paper", "fast"])
def test_two_levels_of_a_tiny_world_are_learned(config: TrainConfig) -> None:
    torch.set_num_threads(1)
    trainer = Trainer(config)
    first: dict[str, float] = {}
    phases = set()
    for metrics in trainer.turns():
        phases.add((metrics["level"], metrics.get("phase")))
        if metrics["event"] == "turn" and metrics["level"] == 1:
            first = first or metrics["windows"]
    success, episodes = trainer.stage.windows, trainer.stage.episodes
    assert episodes < config.level.episodes, f"no success within its episodes: {success}"
    assert min(success["find"], success["get"]) >= TARGET
    assert first["find"] < TARGET, "the level knew it all before it learned"
    assert ((0, "practice") in phases) == (config is FAST), "the one that has a critic is to use it"
    assert ((1, "base") in phases) == (config is PAPER), "the one that has two phases is to go through both"
