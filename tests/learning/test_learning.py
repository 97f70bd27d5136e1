"""Learning works: a tiny world is learned through two levels by each preset."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from skillstack.learning.config import PRESETS, TrainConfig
from skillstack.learning.trainer import Trainer
from skillstack.worlds.world import Limits

PAPER, FAST = PRESETS["paper"], PRESETS["fast"]
TARGET = 0.8


def tiny_world(preset: TrainConfig) -> TrainConfig:
    """The preset in all but the size of the world and the lengths of runs."""
    return replace(
        preset,
        stages="find, get",
        items=("red", "blue"),
        threads=1,
        room_width=3,
        room_depth=3,
        max_blocks=2,
        image_size=36,
        limits=Limits(flat=15, decisions=6, episode=60),
        level=replace(preset.level, target=TARGET, window=100),
    )


PAPER_TINY = tiny_world(
    replace(
        PAPER,
        terminal=replace(PAPER.terminal, target=0.9, episodes=6_000),
        level=replace(PAPER.level, episodes=4_000),
    )
)
FAST_TINY = tiny_world(
    replace(
        FAST,
        # It is to practise, with its critic, and so has little time to learn to see.
        terminal=replace(FAST.terminal, target=0.95, seeing=1_536, episodes=6_000),
        level=replace(FAST.level, episodes=4_000),
    )
)


@pytest.mark.parametrize("config", [PAPER_TINY, FAST_TINY], ids=["paper", "fast"])
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
    assert ((0, "practice") in phases) == (config is FAST_TINY), "the one that has a critic is to use it"
    assert ((1, "base") in phases) == (config is PAPER_TINY), "the one that has two phases is to go through both"
