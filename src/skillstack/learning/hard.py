"""Games that went badly, to be played once more: most games teach a good policy nothing (Jiang et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from skillstack.instructions import Instruction
from skillstack.rollout.episode import Episode

MOST = 1_000
"""Games that are remembered; the oldest are forgotten."""
ENOUGH = 32
"""With fewer there would be too little variety."""
SLOW = 2.0
"""A game goes badly if it is lost, or takes more than so many times as many steps as its skill's new games do."""

Game = tuple[Instruction, int]
"""A task and a seed, from which a game starts as it did before."""


class HardGames:
    """The last games that went badly, each until it goes well."""

    def __init__(self) -> None:
        self._games: list[Game] = []

    def __len__(self) -> int:
        return len(self._games)

    def draw(self, count: int, rng: np.random.Generator) -> list[Game]:
        """So many different ones, or none while there are few."""
        if not count or len(self) < max(ENOUGH, count):
            return []
        return [self._games[number] for number in rng.choice(len(self), count, replace=False).tolist()]

    def note(self, tasks: Sequence[Instruction], seeds: Sequence[int], episodes: Sequence[Episode], again: int) -> None:
        """What became of a turn's games, of which the first `again` were drawn from here."""
        steps: dict[str, list[int]] = {}
        for task, episode in zip(tasks[again:], episodes[again:], strict=True):
            steps.setdefault(task.skill, []).append(episode.steps)
        most = {skill: SLOW * fmean(counts) for skill, counts in steps.items()}
        well = [
            episode.success and episode.steps <= most.get(task.skill, episode.steps)
            for task, episode in zip(tasks, episodes, strict=True)
        ]
        played = list(zip(tasks, seeds, well, strict=True))
        gone = {(task, seed) for task, seed, went_well in played[:again] if went_well}
        new = [(task, seed) for task, seed, went_well in played[again:] if not went_well]
        self._games = [game for game in self._games if game not in gone] + new
        self._games = self._games[-MOST:]

    def state(self) -> list[Any]:
        """Everything, for a checkpoint."""
        return [[str(task), seed] for task, seed in self._games]

    def load_state(self, state: Sequence[Any]) -> None:
        self._games = [(Instruction(*words.split()), seed) for words, seed in state]
