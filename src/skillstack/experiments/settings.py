"""What all experiments of one command have in common, and the toy size at which a test runs them all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import SKILLS
from skillstack.learning.config import PRESETS, PPOConfig, TrainConfig
from skillstack.worlds.world import Limits

Encoder = Literal["frozen", "own"]
Scale = Literal["full", "toy"]

IMAGE_SIZE = PRESETS["fast"].image_size
"""Of all frames, whatever the preset has: a run takes half as long, and as many episodes (docs/decisions.md)."""

FIGURE_EPISODES = 22_000
"""Of each level below the top, as the paper's figure 3a shows them for pi_1."""

TOY: dict[str, Any] = {
    "items": ("red", "blue"),
    "games": 16,
    "room_width": 3,
    "room_depth": 3,
    "max_blocks": 2,
    "image_size": 36,
    "limits": Limits(flat=6, decisions=4, episode=20),
    "terminal": {"episodes": 32, "ppo": PPOConfig(batch=8, epochs=1)},
    "level": {"episodes": 96, "window": 2, "threshold": -1.0, "epsilon_episodes": 48},
    "a2c": {"rotation": 5, "updates": 0.25},
}
"""Nothing is learned at this size. The base phase passes at once, as its threshold is below any reward."""


@dataclass(frozen=True)
class Settings:
    """Of one `skillstack reproduce`."""

    preset: str = "paper"
    encoder: Encoder = "frozen"
    seeds: int = 3
    scale: Scale = "full"

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise unknown("preset", self.preset, PRESETS)
        if self.seeds < 1:
            raise SkillstackError(f"There must be at least one seed, not {self.seeds}.")

    @property
    def variant(self) -> str:
        """What results of different settings are told apart by."""
        return f"{self.preset}-{self.encoder}"

    @property
    def games(self) -> int:
        """Games of each skill in an evaluation."""
        return 600 if self.scale == "full" else 8

    def config(self, seed: int, **changes: Any) -> TrainConfig:
        """The preset's settings, with the phases of "paper", the grammar in every game, one thread, and the changes.

        Levels below the top have no more episodes than the paper's figure 3a shows. All methods stand on the same pi_0,
        or learn it alike, from what is seen alone.
        """
        paper = PRESETS["paper"]
        config = changed(
            PRESETS[self.preset],
            encoder=self.encoder,
            image_size=IMAGE_SIZE,
            seed=seed,
            threads=1,
            tensorboard=False,
            terminal=paper.terminal,
            level={"curriculum": True, "each": paper.level.each, "novel": paper.level.novel, "unguided": 0.0},
        )
        config = changed(changed(config, **TOY) if self.scale == "toy" else config, **changes)
        if len(config.make_stages()) == len(SKILLS):
            return config
        return changed(config, level={"episodes": min(config.level.episodes, FIGURE_EPISODES)})


def changed(config: TrainConfig, **changes: Any) -> TrainConfig:
    """Settings with some changed; a group's are given as a dictionary."""
    groups = {name: replace(getattr(config, name), **part) for name, part in changes.items() if isinstance(part, dict)}
    return replace(config, **{**changes, **groups})
