"""Games that were lost, to be played once more: most games teach a good policy nothing (Jiang et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skillstack.instructions import Instruction
from skillstack.rollout.episode import Episode

MOST = 1_000
"""Games that are remembered; the oldest are forgotten."""
ENOUGH = 32
"""With fewer there would be too little variety."""

Game = tuple[Instruction, int]
"""A task and a seed, from which a game starts as it did before."""


class LostGames:
    """The last games that were lost, each until it is won."""

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
        played = list(zip(tasks, seeds, episodes, strict=True))
        won = {(task, seed) for task, seed, episode in played[:again] if episode.success}
        lost = [(task, seed) for task, seed, episode in played[again:] if not episode.success]
        self._games = [game for game in self._games if game not in won] + lost
        self._games = self._games[-MOST:]

    def state(self) -> list[Any]:
        """Everything, for a checkpoint."""
        return [[str(task), seed] for task, seed in self._games]

    def load_state(self, state: Sequence[Any]) -> None:
        self._games = [(Instruction(*words.split()), seed) for words, seed in state]
