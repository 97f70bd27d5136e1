"""A training run small enough for tests: a small room, two colours, small frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from skillstack.learning.config import A2CConfig, LevelConfig, PPOConfig, TerminalConfig, TrainConfig
from skillstack.worlds.world import Limits

torch.set_num_threads(1)

SMALL_ROOM: dict[str, Any] = {
    "items": ("red", "blue"), "room_width": 3, "room_depth": 3, "max_blocks": 2, "image_size": 36,
}  # fmt: skip

TINY = TrainConfig(
    stages="find, get",
    **SMALL_ROOM,
    games=8,
    threads=1,
    limits=Limits(flat=6, decisions=4, episode=20),
    terminal=TerminalConfig(episodes=16, ppo=PPOConfig(batch=4)),
    ppo=PPOConfig(batch=4),
    level=LevelConfig(episodes=32, window=4, threshold=-1.0, epsilon_episodes=24),
    a2c=A2CConfig(rotation=5, updates=1.0),
)
"""The base phase passes at once (its threshold is below any reward), so that both phases are seen."""


def tiny(**changes: Any) -> TrainConfig:
    """TINY with fields changed, also those of its groups, by their names alone."""
    groups = {name: getattr(TINY, name) for name in ("terminal", "ppo", "level", "a2c")}
    for name, value in list(changes.items()):
        for group, settings in groups.items():
            if name not in TrainConfig.__dataclass_fields__ and name in settings.__dataclass_fields__:
                groups[group] = replace(settings, **{name: value})
                del changes[name]
                break
    return replace(TINY, **groups, **changes)
