"""The flat policy of section 3.2 (pi_0, figure 2a): features and an instruction to a primitive action.

It is the terminal policy of every agent, and by itself the paper's flat baseline.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from skillstack.policies.encoder import HIDDEN_SIZE, Gate, LstmState, RecurrentTrunk, policy_head, value_head


class FlatOutput(NamedTuple):
    """What the heads say; the leading dimensions are (n,) after a step and (t, n) after an unroll."""

    action: Tensor  # (..., actions), logits of pi_0(a | s, g)
    value: Tensor  # (...), V(s, g)


class FlatPolicy(nn.Module):
    """pi_0(a | s, g) and V(s, g), each one linear layer on the trunk (appendix B)."""

    def __init__(
        self,
        *,
        num_skills: int,
        num_items: int,
        num_actions: int,
        gate: Gate | None = None,
        hidden: int = HIDDEN_SIZE,
    ) -> None:
        super().__init__()
        self.trunk = RecurrentTrunk(num_skills, num_items, gate, hidden)
        self.action_head = policy_head(num_actions, hidden)
        self.value_head = value_head(hidden=hidden)

    def step(self, features: Tensor, tasks: Tensor, state: LstmState) -> tuple[FlatOutput, LstmState]:
        """One decision of n runs: features (n, 256), tasks (n, 2). A new run's state is `LstmState.zeros`."""
        hidden, state = self.trunk.step(features, tasks, state)
        return self._heads(hidden), state

    def unroll(self, features: Tensor, tasks: Tensor, there: Tensor | None = None) -> FlatOutput:
        """All decisions of n runs from their start: features (t, n, 256), tasks (n, 2); see `RecurrentTrunk.unroll`."""
        return self._heads(self.trunk.unroll(features, tasks, there))

    def _heads(self, hidden: Tensor) -> FlatOutput:
        return FlatOutput(self.action_head(hidden), self.value_head(hidden).squeeze(-1))
