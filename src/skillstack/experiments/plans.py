"""Appendix C: plans of real episodes, searched among games: no call at all, two calls in a row, and each skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillstack.experiments.jobs import SECONDS_PER_GAME, Looking
from skillstack.instructions import SKILLS, Instruction
from skillstack.learning.run_folder import AGENT_FOLDER
from skillstack.rollout.plan import PlanTree
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.world import Limits

IN_FRONT, TWICE = "already in front", "found at the second call"
AT_ONCE, CALLED_TWICE = SHARES = ("acted at once", "called twice")
"""How often pi_1 plans so, in the notes of a record."""
FIND, GET = SKILLS[:2]


@dataclass(frozen=True)
class Planning(Looking):
    """The search for plans among games of one agent."""

    room: RoomsConfig
    limits: Limits
    games: int

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("of", "plans", "notes")

    @property
    def expected_seconds(self) -> float:
        return 2 * self.games * SECONDS_PER_GAME

    def look(self, runs: Path) -> dict[str, Any]:
        episodes = list(self._play(runs, GET, level=1, count=self.games))
        plans = {
            IN_FRONT: next((tree for tree, faced in episodes if faced and _acted_at_once(tree)), None),
            TWICE: next((tree for tree, _ in episodes if _found_at_the_second_call(tree)), None),
        }
        for level, skill in enumerate(SKILLS):
            played = self._play(runs, skill, level=len(SKILLS) - 1, count=64)
            plans[skill] = _typical([tree for tree, _ in played], level)
        found = [{"kind": kind, "plan": _bare(tree)} for kind, tree in plans.items() if tree is not None]
        return {"plans": found, "notes": _shares(episodes)}

    def _play(self, runs: Path, skill: str, level: int, count: int) -> Iterator[tuple[PlanTree, bool]]:
        """Plans of games of a skill, each with whether the agent faced the block at the start."""
        import torch

        from skillstack.evaluation import game_seed
        from skillstack.rollout.casting import find_candidate
        from skillstack.rollout.runner import Runner, RunnerConfig

        torch.set_num_threads(1)
        size = min(64, count)
        world, player = find_candidate(str(runs / self.agent / AGENT_FOLDER)).play_in(self.room, size)
        runner = Runner(world, player, RunnerConfig(self.limits), plans=True)
        items, words = world.description.vocabulary.items, world.description.vocabulary
        for begin in range(0, count - size + 1, size):
            tasks = [Instruction(skill, items[number % len(items)]) for number in range(begin, begin + size)]
            seeds = [game_seed(0, task, begin + number) for number, task in enumerate(tasks)]
            world.reset(words.encode(tasks), seeds)
            faced = world.achieved(words.encode([Instruction(FIND, task.item) for task in tasks]))
            for episode, faces in zip(runner.play(tasks, seeds, level), faced.tolist(), strict=True):
                assert episode.plan is not None, "plans were asked for"
                yield episode.plan, bool(faces)


def _acted_at_once(tree: PlanTree) -> bool:
    """Achieved without a call."""
    return tree.success and all(decision.action is not None for decision in tree.root.decisions)


def _found_at_the_second_call(tree: PlanTree) -> bool:
    """Achieved after "find x" twice in a row: the first call did not get there."""
    find = Instruction(FIND, tree.root.instruction.item)
    calls = [decision.utterance for decision in tree.root.decisions[:2]]
    return tree.success and calls == [find, find]


def _typical(trees: Sequence[PlanTree], level: int) -> PlanTree | None:
    """A success that goes as deep as its skill may, with the fewest steps among those."""
    won = [tree for tree in trees if tree.success]
    return min(won, key=lambda tree: (-min(tree.root.depth, level + 1), tree.steps), default=None)


def _shares(episodes: Sequence[tuple[PlanTree, bool]]) -> dict[str, float]:
    """How often pi_1 plans so."""
    twice = sum(_found_at_the_second_call(tree) for tree, _ in episodes)
    in_front = [_acted_at_once(tree) for tree, faced in episodes if faced]
    shares = {CALLED_TWICE: twice / len(episodes), "games searched": float(len(episodes))}
    return {**shares, AT_ONCE: sum(in_front) / len(in_front)} if in_front else shares


def _bare(tree: PlanTree) -> dict[str, Any]:
    """Without the odds, which would be most of it."""

    def strip(run: dict[str, Any]) -> None:
        for decision in run["decisions"]:
            decision["odds"] = {}
            if decision["run"] is not None:
                strip(decision["run"])

    data = tree.to_json()
    strip(data["root"])
    return data
