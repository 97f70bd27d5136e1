"""Learning works: a tiny world is learned through two levels by the preset "paper"."""

from __future__ import annotations

from dataclasses import replace

import torch

from skillstack.learning.config import PRESETS
from skillstack.learning.trainer import Trainer
from skillstack.worlds.world import Limits

PAPER = PRESETS["paper"]
TINY_WORLD = replace(
    PAPER,
    stages="find, get",
    items=("red", "blue"),
    threads=1,
    room_width=3,
    room_depth=3,
    max_blocks=2,
    image_size=36,
    limits=Limits(flat=15, decisions=6, episode=60),
    terminal=replace(PAPER.terminal, target=0.9, episodes=6_000),
    level=replace(PAPER.level, target=0.8, episodes=4_000, window=100),
)
"""The preset in all but the size of the world and the lengths of runs; some 105 s of one core."""


def test_two_levels_of_a_tiny_world_are_learned_by_the_paper_preset() -> None:
    torch.set_num_threads(1)
    trainer = Trainer(TINY_WORLD)
    first: dict[str, float] = {}
    for metrics in trainer.turns():
        if metrics["event"] == "turn" and metrics["level"] == 1:
            first = first or metrics["windows"]
    success, episodes = trainer.stage.windows, trainer.stage.episodes
    assert episodes < TINY_WORLD.level.episodes, f"no success within its episodes: {success}"
    assert success["find"] >= 0.8
    assert success["get"] >= 0.8
    assert first["find"] < 0.8, "the level knew it all before it learned"
