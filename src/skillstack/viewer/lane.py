"""One player's side of what is watched: its world, its runner, and the acts that it plays one after the other.

An act is one instruction carried out, and so one plan. A game is one act, or several if it was interrupted or went on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction
from skillstack.rollout.casting import Candidate
from skillstack.rollout.person_player import PersonPlayer
from skillstack.rollout.plan import PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.player import Player
from skillstack.rollout.runner import Assignment, Runner, RunnerConfig
from skillstack.viewer.feed import PlanFeed
from skillstack.viewer.pictures import data_uri
from skillstack.viewer.screen import Place
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.layout import State
from skillstack.worlds.rooms.words import begun
from skillstack.worlds.world import Limits

DRIVER = "you"
"""The name of the person at the keyboard."""
DRIVER_LIMITS = Limits(flat=1000, episode=1000)
"""People look around more than agents do."""

Moment = dict[str, Any]
_GAME = np.array([0])


@dataclass
class Act:
    """One instruction being carried out."""

    player: str
    tree: PlanTree
    going: Iterator[PlanTree]
    feed: PlanFeed = field(default_factory=PlanFeed)
    moments: int = 0

    @property
    def ended(self) -> bool:
        return bool(self.tree.root.outcome)


class Lane:
    """A world of one game, an agent that plays in it, and the person who may take over."""

    def __init__(
        self, candidate: Candidate, config: RoomsConfig, greedy: bool = False, place: Place | None = None
    ) -> None:
        place = place or Place()
        self.name = candidate.name
        self.world: RoomGames
        self.player: Player
        self.world, self.player = candidate.play_in(config, world_name=place.world, server=place.server)
        self._runner = Runner(self.world, self.player, RunnerConfig(greedy=greedy), plans=True)
        self._person = PersonPlayer(self.world.description)
        self._driving = Runner(self.world, self._person, RunnerConfig(DRIVER_LIMITS), plans=True)
        self.act: Act | None = None

    def close(self) -> None:
        """Leave the game."""
        self.act = None
        self.world.close()

    def parse(self, words: str) -> Instruction:
        """An instruction that this player knows."""
        return Instruction.parse(words, self.player.vocabulary)

    def lay_out(self, instruction: Instruction, seed: int) -> State:
        """The start of a game as its seed has it."""
        self.act = None
        self.world.reset(self._codes(instruction), [seed])
        return self.world.snapshot()

    def put(self, state: State) -> None:
        """Another start."""
        self.act = None
        self.world.restore(state)

    def begin(self, instruction: Instruction, seed: int, start: State | None, drive: bool = False) -> Moment:
        """A new act; without a `start`, as the seed has it."""
        runner, player = (self._driving, self._person) if drive else (self._runner, self.player)
        task = player.vocabulary.encode(instruction)
        going = runner.watch(Assignment(task, seed, start))
        self.act = Act(DRIVER if drive else self.name, next(going), going)
        return self._moment(self.act)

    def go_on(self, instruction: Instruction, seed: int, drive: bool = False) -> Moment:
        """A new act from where things stand; what was under way stays without an end."""
        here = self.world.state_to_json(self.world.snapshot())
        start = self.world.state_from_json(begun(here, instruction))
        self.check(instruction, start)
        return self.begin(instruction, seed, start, drive)

    def check(self, instruction: Instruction, start: State) -> None:
        """Refuse what cannot be done, or is done already, from a state."""
        before = self.world.snapshot()
        self.world.restore(start)
        possible, done = (
            bool(ask(self._codes(instruction))[0]) for ask in (self.world.executable, self.world.achieved)
        )
        self.world.restore(before)
        if done:
            raise SkillstackError(f'"{instruction}" is achieved already: there is nothing left to do.')
        if not possible:
            raise SkillstackError(f'"{instruction}" cannot be done here and now: {_needs(instruction)}.')

    def advance(self, action: str | None = None) -> Moment | None:
        """One moment more of the act under way, if there is one; a person's act needs an `action`."""
        if self.act is None or self.act.ended:
            return None
        if self.act.player == DRIVER:
            if action is None:
                return None
            self._person.decide(action)
        next(self.act.going)
        self.act.moments += 1
        return self._moment(self.act)

    def look(self) -> dict[str, Any]:
        """What is to be seen now."""
        return {
            "frame": data_uri(self.world.observe()[0]),
            "state": self.world.state_to_json(self.world.snapshot()),
        }

    def _moment(self, act: Act) -> Moment:
        return {
            "moment": act.moments,
            **self.look(),
            "patch": act.feed.patch(act.tree),
            "sentence": plan_sentence(act.tree),
            "ended": act.ended,
        }

    def _codes(self, instruction: Instruction) -> Any:
        return self.world.description.vocabulary.encode([instruction])


def _needs(task: Instruction) -> str:
    return {
        "find": f"there must be a {task.item} block in the room",
        "get": f"there must be a {task.item} block in the room, and the hand must be empty",
        "put": f"a {task.item} block must be in the hand",
        "stack": f"there must be two {task.item} blocks, one of them perhaps in the hand",
    }.get(task.skill, "what it needs is not there")
