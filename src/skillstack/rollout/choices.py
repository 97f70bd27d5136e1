"""Drawing a decision: switch, instruction and action from the policies, reshaped by the grammar (section 3.3)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skillstack.instructions import TaskArray
from skillstack.policies.grammar import Grammar
from skillstack.rollout.player import Floats, Proposal
from skillstack.worlds.world import IntArray

DRAWS = 8
"""Numbers in [0, 1) that a decision may use; fixed, so that a game's draws do not depend on its level."""
_SWITCH, _INSTRUCTION, _ACTION = range(3)  # places among a decision's draws; 3 further on is the coin of exploration


class Exploration(NamedTuple):
    """How far the drawing may stray from the policies."""

    greedy: bool = False
    """Take the likeliest."""
    epsilon: float = 0.0
    """How often each choice is made at random. Each has a coin of its own, so that behaviour stays a product."""


class Choices(NamedTuple):
    """What n games decided at one level, and the probabilities behind it."""

    action: IntArray  # (n,)
    behaviour_action: Floats  # (n,): with which the action was in truth drawn
    proposal: Proposal
    switch: IntArray | None = None  # (n,)
    instruction: TaskArray | None = None  # (n, 2)
    behaviour_switch: Floats | None = None  # (n,)
    behaviour_instruction: Floats | None = None  # (n,)
    log_switch: Floats | None = None  # (n, 2): after the grammar
    log_instruction: Floats | None = None  # (n, n_base): after the grammar


def choose(
    proposal: Proposal,
    grammar: Grammar | None,
    tasks: TaskArray,
    previous: IntArray,
    draws: npt.NDArray[np.float64],
    exploration: Exploration,
) -> Choices:
    """Draw the decisions of n games; `draws` is (n, DRAWS)."""
    action, behaviour_action = _pick(proposal.log_action, draws, _ACTION, exploration)
    if proposal.log_switch is None or proposal.log_skill is None or proposal.log_item is None:
        return Choices(action, behaviour_action, proposal)
    log_switch: Floats = proposal.log_switch
    log_instruction: Floats = joint(proposal.log_skill, proposal.log_item)
    if grammar is not None:
        log_switch, log_instruction = grammar.reshape(
            tasks, previous, proposal.log_switch, proposal.log_skill, proposal.log_item
        )
    switch, behaviour_switch = _pick(log_switch, draws, _SWITCH, exploration)
    number, behaviour_instruction = _pick(log_instruction, draws, _INSTRUCTION, exploration)
    return Choices(
        action, behaviour_action, proposal,
        switch, np.stack(np.divmod(number, proposal.log_item.shape[1]), axis=1),
        behaviour_switch, behaviour_instruction, log_switch, log_instruction,
    )  # fmt: skip


def joint(log_skill: Floats, log_item: Floats) -> Floats:
    """pi_inst over all pairs, skills outermost: (n, S) and (n, I) to (n, S * I)."""
    return (log_skill[:, :, None] + log_item[:, None, :]).reshape(len(log_skill), -1)


def _pick(
    log_probability: Floats, draws: npt.NDArray[np.float64], which: int, exploration: Exploration
) -> tuple[IntArray, Floats]:
    """One choice in each row, and the probability with which it was made."""
    probability: npt.NDArray[Any] = np.exp(log_probability.astype(np.float64))  # (n, m)
    number = probability.shape[1]
    if exploration.greedy:
        probability = np.eye(number)[probability.argmax(axis=1)]
    reach = probability.cumsum(axis=1)
    chosen = (reach <= draws[:, which, None] * reach[:, -1:]).sum(axis=1)
    if exploration.epsilon > 0:
        coin = draws[:, which + 3]
        at_random = np.minimum((coin / exploration.epsilon * number).astype(np.int64), number - 1)
        chosen = np.where(coin < exploration.epsilon, at_random, chosen)
        probability = (1 - exploration.epsilon) * probability + exploration.epsilon / number
    return chosen, np.take_along_axis(probability, chosen[:, None], axis=1)[:, 0]
