"""Records plan trees while games are played: one open run a level and slot, closed in the runner's order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.instructions import Instruction, TaskArray
from skillstack.policies.grammar import CALL, Grammar
from skillstack.rollout.choices import Choices, joint
from skillstack.rollout.plan import START, Chances, Odds, PlanDecision, PlanRun, PlanTree
from skillstack.rollout.player import Floats, Player
from skillstack.worlds.world import IntArray, Snapshots, ToldWorld, World

SWITCH_WORDS = ("call", "act")


class PlanRecorder:
    """The plans of the games under way."""

    def __init__(self, world: World, player: Player, top: int, settings: dict[str, Any]) -> None:
        """`settings` are written into every plan."""
        self._world, self._player, self._top, self._settings = world, player, top, settings
        self._open: list[dict[int, PlanRun]] = [{} for _ in range(world.num_games)]  # by slot, then level
        self._seeds = [0] * world.num_games
        self._starts: list[dict[str, Any] | None] = [None] * world.num_games

    def begin_games(self, slots: IntArray, seeds: npt.NDArray[np.uint64], starts: Sequence[Snapshots | None]) -> None:
        """A start that is not the seed's own is written down, where the world can: a plan needs it for its pictures."""
        for slot, seed, start in zip(slots.tolist(), seeds.tolist(), starts, strict=True):
            self._open[slot] = {}
            self._seeds[slot] = seed
            self._starts[slot] = None
            if start is not None and isinstance(self._world, ToldWorld):
                self._starts[slot] = self._world.state_to_json(start)

    def begin_runs(self, level: int, slots: IntArray, tasks: TaskArray, steps: IntArray) -> None:
        for slot, task, step in zip(slots.tolist(), tasks.tolist(), steps.tolist(), strict=True):
            run = PlanRun(level, self._player.vocabulary.decode(task), step)
            if level < self._top:
                self._open[slot][level + 1].decisions[-1].run = run
            self._open[slot][level] = run

    def decide(
        self,
        level: int,
        slots: IntArray,
        choices: Choices,
        grammar: Grammar | None,
        tasks: TaskArray,
        previous: IntArray,
        steps: IntArray,
    ) -> None:
        odds = self._odds(level, choices, grammar, tasks, previous)
        for row, slot in enumerate(slots.tolist()):
            decision = PlanDecision(int(steps[slot]), odds=odds[row])
            if choices.switch is not None and choices.instruction is not None and choices.switch[row] == CALL:
                decision.utterance = self._player.vocabulary.decode(choices.instruction[row])
            else:
                decision.action = self._world.description.actions[choices.action[row]]
            self._open[slot][level].decisions.append(decision)

    def reward(self, level: int, slot: int, reward: float) -> None:
        self._open[slot][level].decisions[-1].reward = reward

    def end_run(self, level: int, slot: int, outcome: str, step: int) -> None:
        run = self._open[slot][level]
        run.outcome, run.last_step = outcome, step

    def tree(self, slot: int) -> PlanTree:
        start = self._starts[slot]
        settings = self._settings if start is None else {**self._settings, START: start}
        return PlanTree(self._world.description.name, self._seeds[slot], self._open[slot][self._top], settings)

    def _odds(
        self, level: int, choices: Choices, grammar: Grammar | None, tasks: TaskArray, previous: IntArray
    ) -> list[dict[str, Odds]]:
        """The probabilities behind each row's decision, by word."""
        proposal = choices.proposal
        actions = _named(self._world.description.actions, np.exp(proposal.log_action))
        if proposal.log_switch is None or proposal.log_skill is None or proposal.log_item is None:
            return [{"action": Odds(policy)} for policy in actions]
        words: Sequence[Instruction] = self._player.stages[level].base.vocabulary.tasks
        instruction_words = [str(word) for word in words]
        switch = _named(SWITCH_WORDS, np.exp(proposal.log_switch))
        instruction = _named(instruction_words, np.exp(joint(proposal.log_skill, proposal.log_item)))
        none: list[Any] = [None] * len(actions)
        switch_prior, switch_reshaped, instruction_prior, instruction_reshaped = none, none, none, none
        if grammar is not None and choices.log_switch is not None and choices.log_instruction is not None:
            prior = grammar.prior(tasks, previous)
            switch_prior, switch_reshaped = (
                _named(SWITCH_WORDS, prior.switch),
                _named(SWITCH_WORDS, np.exp(choices.log_switch)),
            )
            instruction_prior = _named(instruction_words, prior.instruction)
            instruction_reshaped = _named(instruction_words, np.exp(choices.log_instruction))
        return [
            {
                "switch": Odds(switch[row], switch_prior[row], switch_reshaped[row]),
                "instruction": Odds(instruction[row], instruction_prior[row], instruction_reshaped[row]),
                "action": Odds(actions[row]),
            }
            for row in range(len(actions))
        ]


def _named(words: Sequence[str], probabilities: Floats) -> list[Chances]:
    return [dict(zip(words, row, strict=True)) for row in probabilities.astype(np.float64).tolist()]
