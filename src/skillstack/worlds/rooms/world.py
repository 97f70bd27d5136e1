"""The two-room world of the paper's section 5.1, as a batch of games that fulfils the world contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray
from skillstack.worlds.rooms.goals import judge_achieved, judge_executable
from skillstack.worlds.rooms.layout import RoomsConfig, State, X, Z, are_states, make_states, start_games
from skillstack.worlds.rooms.looks import make_materials, paint_looks
from skillstack.worlds.rooms.physics import step_games
from skillstack.worlds.rooms.raycaster import cast_frames
from skillstack.worlds.rooms.scenery import fits, make_scenery, paste_frames
from skillstack.worlds.rooms.sprites import make_hand
from skillstack.worlds.rooms.topdown import draw_map
from skillstack.worlds.rooms.words import state_from_json, state_to_json
from skillstack.worlds.world import (
    BoolArray,
    Frames,
    IntArray,
    Seeds,
    check_actions,
    check_games,
    check_seeds,
    check_tasks,
)


class RoomsWorld:
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
        self.config = config or RoomsConfig()
        self.description = self.config.description
        self.rewards = self.config.rewards
        self.num_games = num_games
        self._states = make_states(num_games, self.config.slots)
        self.state: State = self._states[:num_games]
        look = self.config
        self._looks = paint_looks(make_materials(look.items), look.fov, look.eye, look.pitch, look.randomise)
        self._hand = make_hand(look.image_size)
        self._scenery = make_scenery(look, self._looks) if fits(look) else None
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, "skillstack-draw") if threads > 1 else None
        self._all = np.arange(num_games)
        start_games(  # so that there is a game to look at before the first reset
            self.config,
            self._states,
            self._all,
            np.zeros((num_games, 2), dtype=np.int64),
            np.zeros(num_games, np.uint64),
        )

    def reset(
        self, tasks: TaskArray, seeds: Seeds | Sequence[int], games: IntArray | Sequence[int] | None = None
    ) -> None:
        games = self._games(games)
        tasks = check_tasks(tasks, self.description.vocabulary, len(games), per_game=False)
        start_games(self.config, self._states, games, tasks, check_seeds(seeds, len(games)))

    def step(self, actions: IntArray | Sequence[int], games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        step_games(self._states, games, check_actions(actions, self.description.actions, len(games)))

    def observe(self, games: IntArray | Sequence[int] | None = None) -> Frames:
        return self._draw(self._states, self._games(games))

    def achieved(self, tasks: TaskArray, games: IntArray | Sequence[int] | None = None) -> BoolArray:
        return self._judge(judge_achieved, tasks, games)

    def executable(self, tasks: TaskArray, games: IntArray | Sequence[int] | None = None) -> BoolArray:
        return self._judge(judge_executable, tasks, games)

    def snapshot(self, games: IntArray | Sequence[int] | None = None) -> State:
        return self.state[self._games(games)]  # indexing with an array copies

    def restore(self, snapshots: State, games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        states = self._check_snapshots(snapshots)
        if len(snapshots) != len(games):
            raise SkillstackError(f"There must be one snapshot for each of {len(games)} games, not {len(snapshots)}.")
        self.state[games] = states[: len(games)]

    def render(self, snapshots: State) -> Frames:
        states = self._check_snapshots(snapshots)
        return self._draw(states, np.arange(len(snapshots)))

    def state_to_json(self, snapshot: State) -> dict[str, Any]:
        return state_to_json(self.config, snapshot)

    def state_from_json(self, data: Any) -> State:
        return state_from_json(self.config, data)

    def map_picture(self, game: int, size: int = 336, path: Sequence[tuple[float, float]] = ()) -> Frames:
        """One game from above, some `size` pixels high, with the way the agent came."""
        return draw_map(self.config, self.state[game], size, path)

    def map_position(self, game: int) -> tuple[float, float]:
        """Where on the map the agent is, in cells."""
        return float(self.state["agent"][game, X]), float(self.state["agent"][game, Z])

    def _games(self, games: IntArray | Sequence[int] | None) -> IntArray:
        return self._all if games is None else check_games(games, self.num_games)

    def _judge(
        self, judge: Callable[[State, Any, Any, Any], None], tasks: TaskArray, games: IntArray | Sequence[int] | None
    ) -> BoolArray:
        games = self._games(games)
        tasks = check_tasks(tasks, self.description.vocabulary, len(games), per_game=True)
        answers = np.empty(tasks.shape[:-1], dtype=np.bool_)
        columns = answers if answers.ndim == 2 else answers[:, None]
        judge(self._states, games, tasks.reshape(*columns.shape, 2), columns)
        return answers

    def _draw(self, state: State, games: IntArray) -> Frames:
        frames: Frames = np.empty((len(games), *self.description.image_shape), dtype=np.uint8)
        if not len(games):
            return frames
        if self._pool is None or len(games) < 4 * self._threads:
            self._draw_part(state, games, frames)
        else:
            parts = zip(np.array_split(games, self._threads), np.array_split(frames, self._threads), strict=True)
            list(self._pool.map(lambda part: self._draw_part(state, *part), parts))
        return frames

    def _draw_part(self, state: State, games: IntArray, frames: Frames) -> None:
        if self._scenery is not None:
            paste_frames(state, games, self._scenery, self._looks, self._hand, frames)
        else:
            cast_frames(state, games, self._looks, state["look"][games].astype(np.int64), self._hand, frames)

    def _check_snapshots(self, snapshots: npt.NDArray[Any]) -> State:
        """The snapshots, which may come from anywhere, as compiled code wants them: see `make_states`."""
        array = np.asarray(snapshots)
        if array.dtype == self.state.dtype and array.ndim == 1:
            states = make_states(len(array), self.config.slots)
            states[: len(array)] = array
            if are_states(self.config, states, len(array)):
                return states
        raise SkillstackError(
            "These are not snapshots of a world with these settings: its rooms, items, most blocks and number of looks "
            "must be the same."
        )
