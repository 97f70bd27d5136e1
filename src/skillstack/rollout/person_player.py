"""A person as a player: whatever they decide on is beyond doubt, so their games are recorded as everyone's are."""

from __future__ import annotations

from skillstack.errors import unknown
from skillstack.instructions import Stage, TaskArray, Vocabulary, add_stage
from skillstack.policies.grammar import Grammar
from skillstack.rollout.player import Proposal, certain
from skillstack.worlds.world import Frames, IntArray, WorldDescription


class PersonPlayer:
    """Takes every task with primitive actions alone, like a flat policy; `decide` says which is next."""

    def __init__(self, world: WorldDescription) -> None:
        self.stages: tuple[Stage, ...] = add_stage((), world.vocabulary.skills, world.vocabulary.items)
        self.vocabulary: Vocabulary = world.vocabulary
        self.grammars: list[Grammar | None] = [None]
        self._actions, self._next = world.actions, 0

    def decide(self, action: str) -> None:
        """What to do next."""
        if action not in self._actions:
            raise unknown("action", action, self._actions)
        self._next = self._actions.index(action)

    def set_up(self, num_slots: int) -> None:
        pass

    def begin(self, level: int, slots: IntArray) -> None:
        pass

    def look(self, slots: IntArray, frames: Frames) -> None:
        pass  # that is done by the person

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        return Proposal(certain([self._next] * len(slots), len(self._actions)))
