"""The two-room world played in Minecraft: every game has a player and rooms of its own on a server.

Layouts, goals and rewards are the embedded world's. What the actions do is up to the game: after each step the state is
read back from the game's own blocks and the player's place and hand, and goals are judged by that.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray
from skillstack.worlds.minecraft.materials import BlockLooks, box_size, plan_rooms, plot_shift, wool_of
from skillstack.worlds.minecraft.renderer import Renderer
from skillstack.worlds.minecraft.session import VIEWER, Answer, session_for
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.layout import (
    FACING,
    HELD,
    ITEM,
    NOTHING,
    PLACED,
    THEME,
    RoomsConfig,
    State,
    X,
    Z,
    are_states,
    make_states,
)
from skillstack.worlds.world import Frames, IntArray, Seeds, check_actions

CHUNK = 16  # blocks
SECONDS_PER_PLAYER = 10.0  # that joining and building may take, on a busy machine

logger = logging.getLogger(__name__)


class MinecraftWorld(RoomGames):
    """N games of the two-room world, each with a player in Minecraft.

    If the server or the bridge dies or hangs, both are started anew and all games put back as they were; if that fails
    too, a SkillstackError says why.
    """

    def __init__(self, config: RoomsConfig | None = None, num_games: int = 1, server: str | None = None) -> None:
        """Join `server`, "HOST:PORT" or "ACCOUNT@HOST:PORT", or start one of our own; N players build their rooms."""
        if num_games < 1:
            raise SkillstackError(f"A world needs at least one game, not {num_games}.")
        super().__init__(config or RoomsConfig(), num_games)
        if self.config.randomise is not None:
            raise SkillstackError("Minecraft has one look only: leave out the randomisation.")
        if self.config.grow:
            raise SkillstackError("Minecraft has rooms of one size only: leave out their growth.")
        self.description = replace(self.description, name="minecraft")
        self._wools = wool_of(self.config.items)
        self._session = session_for(server)
        self._plots = self._session.lease(num_games)
        self._release = weakref.finalize(self, self._session.release, self._plots)
        try:
            cells = self._build()
            looks = _looks()
            self._renderer = Renderer(self.config, looks, looks.room_meshes(self.config, cells), self._wools)
            self._first_games()
            self._put(self._states, self._all)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the game; the server ends with the last world that uses it. Also done when the world is forgotten."""
        self._release()

    def reset(
        self, tasks: TaskArray, seeds: Seeds | Sequence[int], games: IntArray | Sequence[int] | None = None
    ) -> None:
        games = self._games(games)
        states = make_states(self.num_games, self.config.slots)
        self._lay_out(states, tasks, seeds, games)
        self._put(states, games)

    def step(self, actions: IntArray | Sequence[int], games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        actions = check_actions(actions, self.description.actions, len(games))
        steps = [[self._plots[game], action] for game, action in zip(games.tolist(), actions.tolist(), strict=True)]
        answer = self._ask({"do": "step", "games": steps})
        before = self.state[games]
        self._read(games, answer)
        self.state["agent"][games, PLACED] = _placed(before, self.state[games])

    def restore(self, snapshots: State, games: IntArray | Sequence[int] | None = None) -> None:
        games = self._games(games)
        states = make_states(self.num_games, self.config.slots)
        states[games] = self._check_restored(snapshots, games)
        self._put(states, games)

    def _draw(self, states: State, games: IntArray) -> Frames:
        return self._renderer.draw(states, games)

    def _put(self, states: State, games: IntArray) -> None:
        """Bring `states[games]` about in the game, and read them back."""
        wanted = [[self._plots[game], self._description_of(states[game])] for game in games.tolist()]
        answer = self._ask({"do": "place", "games": wanted})
        self._states[games] = states[games]  # what is no block and no place: what was put down last, what is to be kept
        self._read(games, answer)

    def _description_of(self, state: Any) -> Answer:
        """A state as the bridge is told it: with places on the plot."""
        shift = plot_shift(int(state["room"][THEME]))
        agent, blocks = state["agent"].tolist(), state["blocks"].tolist()
        return {
            "agent": [agent[X] + shift, agent[Z] + 1, agent[FACING]],
            "held": None if agent[HELD] == NOTHING else self._wools[agent[HELD]],
            "blocks": [[self._wools[item], x + shift, y + 1, z + 1] for item, x, z, y in blocks if item != NOTHING],
        }

    def _read(self, games: IntArray, answer: Answer) -> None:
        """Take over what the bridge has read in the game."""
        for game, (x, z, facing, held, standing) in zip(games.tolist(), answer["states"], strict=True):
            agent, blocks = self.state["agent"][game], self.state["blocks"][game]
            shift = plot_shift(int(self.state["room"][game, THEME]))
            agent[[X, Z, FACING]] = x - shift, z - 1, facing
            agent[HELD] = NOTHING if held is None else self._item(held)
            if len(standing) > len(blocks):
                raise SkillstackError(f"{len(standing)} blocks are in a room for {len(blocks)}: who else is there?")
            blocks[:] = 0
            blocks[:, ITEM] = NOTHING
            for slot, (name, bx, by, bz) in enumerate(standing):
                blocks[slot] = self._item(name), bx - shift, bz - 1, by - 1
        if not are_states(self.config, self._states, self.num_games):
            raise SkillstackError("There are blocks where no player of ours puts them: is somebody else in the rooms?")

    def _item(self, name: str) -> int:
        if name not in self._wools:
            raise SkillstackError(f"There is {name} where only wool should be: is somebody else in the rooms?")
        return self._wools.index(name)

    def _ask(self, request: Answer) -> Answer:
        """The bridge's answer, with one clean restart if it or the server is lost."""
        if not self._release.alive:
            raise SkillstackError("This world is closed.")
        if self._generation != self._session.generation:  # another world has met with an accident
            self._rebuild()
        try:
            return self._session.ask(request)
        except SkillstackError as error:
            logger.warning("Starting Minecraft anew: %s", error)
            self._session.start()
            self._rebuild()
            return self._session.ask(request)

    def _rebuild(self) -> None:
        """Build all rooms again and put every game back as it was."""
        self._build()
        games = [[plot, self._description_of(state)] for plot, state in zip(self._plots, self.state, strict=True)]
        self._session.ask({"do": "place", "games": games})

    def _build(self) -> list[str]:
        """Let the players join and build; returns the names of all blocks of a box of rooms, read in the game."""
        size = box_size(self.config)
        request = {
            "do": "build",
            "plots": self._plots,
            "blocks": plan_rooms(self.config),
            "size": size,
            "view": -(-max(size) // CHUNK) + 1,
        }
        answer = self._session.ask(request, self._session.joining_seconds + SECONDS_PER_PLAYER * self.num_games)
        self._generation = self._session.generation
        cells: list[str] = answer["cells"]
        return cells


def _placed(before: State, after: State) -> IntArray:
    """The item that each game's step took from the hand and added to what stands in the rooms, or NOTHING."""
    held = before["agent"][:, HELD].astype(np.int64)
    counts = [(state["blocks"][:, :, ITEM] == held[:, None]).sum(axis=1) for state in (before, after)]
    put = (held != NOTHING) & (after["agent"][:, HELD] == NOTHING) & (counts[1] == counts[0] + 1)
    return np.where(put, held, NOTHING)


@cache
def _looks() -> BlockLooks:
    return BlockLooks.load(VIEWER)
