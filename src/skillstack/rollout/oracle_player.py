"""The oracle as a player: it knows the world's state, and plans in words as a perfect agent would.

It lets everything that shows plans be checked before anything has learned, and is the yardstick in evaluations.
"""

from __future__ import annotations

import numpy as np

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, Stage, TaskArray
from skillstack.policies.grammar import ACT, CALL, Grammar
from skillstack.rollout.player import Proposal, certain
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.oracle import shortest_path
from skillstack.worlds.world import Frames, IntArray


class OraclePlayer:
    """Calls the skills that a task is made of, where they are below, and walks the shortest way itself where not."""

    def __init__(self, world: RoomGames, stages: tuple[Stage, ...]) -> None:
        if not isinstance(world, RoomGames):
            raise SkillstackError("The oracle only knows the two-room world; choose an agent for other worlds.")
        self.stages = stages
        self.vocabulary = stages[-1].tasks.vocabulary
        self.grammars: list[Grammar | None] = [None] * len(stages)
        self._world = world

    def set_up(self, num_slots: int) -> None:
        pass

    def begin(self, level: int, slots: IntArray) -> None:
        pass

    def look(self, slots: IntArray, frames: Frames) -> None:
        pass  # it looks at the state, when it is asked

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        base = self.stages[level].base
        choices = [
            self._choose(level, slot, self.vocabulary.decode(task))
            for slot, task in zip(slots.tolist(), tasks.tolist(), strict=True)
        ]
        actions = [0 if isinstance(choice, Instruction) else choice for choice in choices]
        log_action = certain(actions, len(self._world.description.actions))
        if not base:
            return Proposal(log_action)
        calls = [choice if isinstance(choice, Instruction) else base.tasks[0] for choice in choices]
        switch = [CALL if isinstance(choice, Instruction) else ACT for choice in choices]
        return Proposal(
            log_action,
            certain(switch, 2),
            certain([base.skills.index(call.skill) for call in calls], len(base.skills)),
            certain([base.items.index(call.item) for call in calls], len(base.items)),
        )

    def _choose(self, level: int, slot: int, task: Instruction) -> Instruction | int:
        """What to utter, or the number of the action to take."""
        base = self.stages[level].base
        wanted = task if task in base else self._next_part(slot, task)
        if wanted is not None and wanted in base and self._holds(slot, wanted, executable=True):
            return wanted
        return self._first_step(slot, task)

    def _next_part(self, slot: int, task: Instruction) -> Instruction | None:
        """The part of a new skill that is to be done now; None if it is a single action."""
        find, get, put = (Instruction(skill, task.item) for skill in ("find", "get", "put"))
        faces, holds = self._holds(slot, find), self._holds(slot, get)
        if task.skill == "get":
            return None if faces else find
        if task.skill == "stack":
            if not holds:
                return get
            return put if faces else find
        return None

    def _holds(self, slot: int, task: Instruction, executable: bool = False) -> bool:
        words = self._world.description.vocabulary.encode([task])
        ask = self._world.executable if executable else self._world.achieved
        return bool(ask(words, np.array([slot]))[0])

    def _first_step(self, slot: int, task: Instruction) -> int:
        """The first action of the shortest way; to "find" one only walks, so that what is in the hand stays there."""
        (state,) = self._world.snapshot(np.array([slot]))
        pair = self._world.description.vocabulary.encode(task)
        path = shortest_path(state, pair, hands=task.skill != "find")
        return int(path[0]) if len(path) else 0
