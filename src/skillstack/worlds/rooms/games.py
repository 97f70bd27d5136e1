"""N games of the two rooms as an array of states: what is the same wherever they are played and drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray
from skillstack.worlds.rooms.goals import judge_achieved, judge_executable
from skillstack.worlds.rooms.layout import RoomsConfig, State, X, Z, are_states, make_states, start_games
from skillstack.worlds.rooms.topdown import draw_map
from skillstack.worlds.rooms.words import state_from_json, state_to_json
from skillstack.worlds.world import BoolArray, Frames, IntArray, Seeds, check_games, check_seeds, check_tasks


class RoomGames(ABC):
    """States of games, judged by the goals of the two rooms. How they come about is up to each world."""

    def __init__(self, config: RoomsConfig, num_games: int) -> None:
        self.config = config
        self.description = config.description
        self.rewards = config.rewards
        self.num_games = num_games
        self._states = make_states(num_games, config.slots)
        self.state: State = self._states[:num_games]
        self._all = np.arange(num_games)

    @abstractmethod
    def reset(
        self, tasks: TaskArray, seeds: Seeds | Sequence[int], games: IntArray | Sequence[int] | None = None
    ) -> None: ...

    @abstractmethod
    def step(self, actions: IntArray | Sequence[int], games: IntArray | Sequence[int] | None = None) -> None: ...

    @abstractmethod
    def restore(self, snapshots: State, games: IntArray | Sequence[int] | None = None) -> None: ...

    @abstractmethod
    def _draw(self, states: State, games: IntArray) -> Frames:
        """The views of `states[games]`."""
        ...

    def close(self) -> None:  # noqa: B027 - most worlds have nothing to leave
        """Leave the games, where there is anything to leave."""

    def observe(self, games: IntArray | Sequence[int] | None = None) -> Frames:
        return self._draw(self._states, self._games(games))

    def render(self, snapshots: State) -> Frames:
        states = self._check_snapshots(snapshots)
        return self._draw(states, np.arange(len(snapshots)))

    def achieved(self, tasks: TaskArray, games: IntArray | Sequence[int] | None = None) -> BoolArray:
        return self._judge(judge_achieved, tasks, games)

    def executable(self, tasks: TaskArray, games: IntArray | Sequence[int] | None = None) -> BoolArray:
        return self._judge(judge_executable, tasks, games)

    def snapshot(self, games: IntArray | Sequence[int] | None = None) -> State:
        return self.state[self._games(games)]  # indexing with an array copies

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

    def _first_games(self) -> None:
        """Lay out something to look at before the first reset."""
        tasks, seeds = np.zeros((self.num_games, 2), dtype=np.int64), np.zeros(self.num_games, np.uint64)
        start_games(self.config, self._states, self._all, tasks, seeds)

    def _lay_out(self, states: State, tasks: TaskArray, seeds: Seeds | Sequence[int], games: IntArray) -> None:
        """The start of a new game in `states[games]` for each task."""
        tasks = check_tasks(tasks, self.description.vocabulary, len(games), per_game=False)
        start_games(self.config, states, games, tasks, check_seeds(seeds, len(games)))

    def _judge(
        self, judge: Callable[[State, Any, Any, Any], None], tasks: TaskArray, games: IntArray | Sequence[int] | None
    ) -> BoolArray:
        games = self._games(games)
        tasks = check_tasks(tasks, self.description.vocabulary, len(games), per_game=True)
        answers = np.empty(tasks.shape[:-1], dtype=np.bool_)
        columns = answers if answers.ndim == 2 else answers[:, None]
        judge(self._states, games, tasks.reshape(*columns.shape, 2), columns)
        return answers

    def _check_restored(self, snapshots: State, games: IntArray) -> State:
        """One state for each game."""
        states = self._check_snapshots(snapshots)
        if len(snapshots) != len(games):
            raise SkillstackError(f"There must be one snapshot for each of {len(games)} games, not {len(snapshots)}.")
        return states[: len(games)]

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
