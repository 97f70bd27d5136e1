"""The flat baseline of the paper's figure 3: one flat policy for all tasks, fine-tuned from the one for fewer tasks."""

from __future__ import annotations

import torch
from torch import nn

from skillstack.instructions import Stage, TaskSet
from skillstack.policies.agent import Agent


def flat_agent(agent: Agent, tasks: TaskSet, seed: int) -> Agent:
    """A one-level agent for these tasks that starts from the given agent's terminal level.

    All weights are the same; words that it did not know get rows of their own, drawn by the seed.
    """
    start = agent.truncated(0)
    if start.stages[0].tasks == tasks:
        return start
    stage = Stage(0, TaskSet(), tasks)
    flat = Agent.create(
        agent.world, (stage,), shared_encoder=agent.shared_encoder, gated=agent.gated, lstm=agent.lstm, seed=seed
    )
    _copy_known(start.levels[0], flat.levels[0])
    _copy_known(start.encoders[0], flat.encoders[0])
    return flat


@torch.no_grad()
def _copy_known(source: nn.Module, target: nn.Module) -> None:
    """Copy all weights; a table of words that has grown keeps its new rows."""
    known = dict(source.named_parameters())
    for name, parameter in target.named_parameters():
        parameter[: len(known[name])] = known[name]
