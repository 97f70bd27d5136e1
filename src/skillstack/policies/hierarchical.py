"""The hierarchical policy of section 3.2 (pi_k with k > 0, figure 2b), without its base policy and its grammar.

At every decision it says whether to CALL the base policy or to ACT (the switch), what the base policy would be told
(the instruction: a skill and an item, independent of each other), and what its own action would be (the augmented
policy). The runner asks the base policy, and the grammar of section 3.3 reshapes switch and instruction.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from skillstack.policies.encoder import HIDDEN_SIZE, Gate, LstmState, RecurrentTrunk, policy_head, value_head


class HierarchicalOutput(NamedTuple):
    """What the heads say; the leading dimensions are (n,) after a step and (t, n) after an unroll."""

    switch: Tensor  # (..., 2), logits of pi_sw(e | s, g), in the order CALL, ACT
    skill: Tensor  # (..., base skills), logits of p_skill(u | s, g)
    item: Tensor  # (..., base items), logits of p_item(u | s, g)
    action: Tensor  # (..., actions), logits of pi_aug(a | s, g)
    value: Tensor  # (...), V(s, g)
    switch_value: Tensor  # (..., 2), V_sw(s, e, g) for e = CALL, ACT


class HierarchicalPolicy(nn.Module):
    """The three policies of a level and its two value functions, each one linear layer on the trunk (appendix B).

    It is told tasks in the words of its own stage and utters words of its base tasks; words are only ever added at the
    end, so a word has the same number in both. Skill and item are chosen apart, so a pair can be uttered that is no
    base task when a stage below brought a new skill and a new item at once.

    V_sw(s, e, g) is a scalar for each e. The LSTM has not seen e when the heads read it, so the layer gives both
    scalars and the one of the chosen e counts: the same as a scalar layer that is also fed e, with weights for each e.
    """

    def __init__(
        self,
        *,
        num_skills: int,
        num_items: int,
        num_base_skills: int,
        num_base_items: int,
        num_actions: int,
        gate: Gate | None = None,
        hidden: int = HIDDEN_SIZE,
    ) -> None:
        super().__init__()
        self.trunk = RecurrentTrunk(num_skills, num_items, gate, hidden)
        self.switch_head = policy_head(2, hidden)
        self.skill_head = policy_head(num_base_skills, hidden)
        self.item_head = policy_head(num_base_items, hidden)
        self.action_head = policy_head(num_actions, hidden)
        self.value_head = value_head(hidden=hidden)
        self.switch_value_head = value_head(2, hidden)

    def step(self, features: Tensor, tasks: Tensor, state: LstmState) -> tuple[HierarchicalOutput, LstmState]:
        """One decision of n runs: features (n, 256), tasks (n, 2). A new run's state is `LstmState.zeros`."""
        hidden, state = self.trunk.step(features, tasks, state)
        return self._heads(hidden), state

    def unroll(self, features: Tensor, tasks: Tensor, there: Tensor | None = None) -> HierarchicalOutput:
        """All decisions of n runs from their start: features (t, n, 256), tasks (n, 2); see `RecurrentTrunk.unroll`."""
        return self._heads(self.trunk.unroll(features, tasks, there))

    def _heads(self, hidden: Tensor) -> HierarchicalOutput:
        return HierarchicalOutput(
            switch=self.switch_head(hidden),
            skill=self.skill_head(hidden),
            item=self.item_head(hidden),
            action=self.action_head(hidden),
            value=self.value_head(hidden).squeeze(-1),
            switch_value=self.switch_value_head(hidden),
        )
