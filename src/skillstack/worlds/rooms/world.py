"""The two-room world of the paper's section 5.1, as a batch of games that fulfils the world contract."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray
from skillstack.worlds.rooms.facts import Facts, num_facts, tell_facts
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.goals import judge_achieved
from skillstack.worlds.rooms.layout import RoomsConfig, State
from skillstack.worlds.rooms.looks import make_materials, paint_looks
from skillstack.worlds.rooms.physics import step_games
from skillstack.worlds.rooms.raycaster import cast_frames
from skillstack.worlds.rooms.scenery import fits, make_scenery, paste_frames
from skillstack.worlds.rooms.sprites import make_hand
from skillstack.worlds.world import BoolArray, Frames, IntArray, Seeds, check_actions, check_tasks


class RoomsWorld(RoomGames):
    """N games of the two-room world.

    >>> from skillstack import Instruction
    >>> world = RoomsWorld(num_games=2)
    >>> tasks = world.description.vocabulary.encode([Instruction("find", "red"), Instruction("stack", "blue")])
    >>> world.reset(tasks, seeds=[1, 2])
    >>> world.step([0, 4])
    >>> world.observe().shape
    (2, 84, 84, 3)
    """

    def __init__(self, config: RoomsConfig | None = None, num_games: int = 1, threads: int = 1) -> None:
        """Set up the games; `threads` share the drawing of large batches between them."""
        if num_games < 1 or threads < 1:
            raise SkillstackError(f"A world needs at least one game and one thread, not {num_games} and {threads}.")
        super().__init__(config or RoomsConfig(), num_games)
        look = self.config
        self._looks = paint_looks(make_materials(look.items), look.fov, look.eye, look.pitch, look.randomise)
        self._hand = make_hand(look.image_size)
        self._scenery = make_scenery(look, self._looks) if fits(look) else None
        self.num_facts = num_facts(self.config)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "skillstack-draw") if threads > 1 else None
        self._first_games()

    def reset(
        self, tasks: TaskArray, seeds: Seeds | Sequence[int], games: IntArray | Sequence[int] | None = None
    ) -> None:
        self._lay_out(self._states, tasks, seeds, self._games(games))

    def step(self, actions: IntArray | Sequence[int], games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        step_games(self._states, games, check_actions(actions, self.description.actions, len(games)))

    def restore(self, snapshots: State, games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        self.state[games] = self._check_restored(snapshots, games)

    def facts(self, snapshots: State, tasks: TaskArray) -> Facts:
        states = self._check_snapshots(snapshots)
        tasks = check_tasks(tasks, self.description.vocabulary, len(snapshots), per_game=False)
        return tell_facts(self.config, states, len(snapshots), tasks)

    def ahead(self, snapshots: State, tasks: TaskArray) -> tuple[State, BoolArray]:
        tasks = check_tasks(tasks, self.description.vocabulary, len(snapshots), per_game=False)
        shape = (len(snapshots), len(self.description.actions))
        states, games = self._check_snapshots(np.repeat(snapshots, shape[1])), np.arange(shape[0] * shape[1])
        step_games(states, games, np.tile(np.arange(shape[1]), shape[0]))
        achieved = np.empty((len(games), 1), dtype=np.bool_)
        judge_achieved(states, games, np.repeat(tasks, shape[1], axis=0)[:, None], achieved)
        return states[: len(games)].reshape(shape), achieved.reshape(shape)

    def _draw(self, states: State, games: IntArray) -> Frames:
        frames: Frames = np.empty((len(games), *self.description.image_shape), dtype=np.uint8)
        if not len(games):
            return frames
        if self._pool is None or len(games) < 4 * self._threads:
            self._draw_part(states, games, frames)
        else:
            parts = zip(np.array_split(games, self._threads), np.array_split(frames, self._threads), strict=True)
            list(self._pool.map(lambda part: self._draw_part(states, *part), parts))
        return frames

    def _draw_part(self, states: State, games: IntArray, frames: Frames) -> None:
        if self._scenery is not None:
            paste_frames(states, games, self._scenery, self._looks, self._hand, frames)
        else:
            cast_frames(states, games, self._looks, states["look"][games].astype(np.int64), self._hand, frames)
