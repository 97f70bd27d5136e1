"""Every loss against numbers worked by hand, and gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.learning.losses import (
    DecisionBatch,
    clipped_gradient,
    decision_entropy,
    entropy,
    final_returns,
    flat_terms,
    generalised_advantages,
    hierarchical_terms,
    imitation_terms,
    judged_terms,
    log_behaviour,
    log_decision,
    masked_mean,
    policy_entropy,
    policy_gradient,
    ppo_terms,
    refusal,
    unevenness,
    v_trace,
)
from skillstack.policies.flat import FlatOutput
from skillstack.policies.hierarchical import HierarchicalOutput


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([1.0, 0.0, -0.5])), min_size=1, max_size=5), st.floats(0.1, 1)
)
def test_returns_are_the_discounted_sums_of_later_rewards(episodes: list[tuple[int, float]], gamma: float) -> None:
    lengths, rewards = zip(*episodes, strict=True)
    mask, returns = final_returns(torch.tensor(rewards), torch.tensor(lengths), gamma)
    for column, (length, reward) in enumerate(episodes):
        every = [0.0] * (length - 1) + [reward]
        for t in range(len(mask)):
            there = t < length
            assert mask[t, column] == float(there)
            expected = sum(gamma**tau * later for tau, later in enumerate(every[t:])) if there else 0.0
            assert returns[t, column].item() == pytest.approx(expected, abs=1e-5)


def logits(*probabilities: float) -> list[float]:
    return [math.log(probability) for probability in probabilities]


def two_decisions() -> tuple[HierarchicalOutput, DecisionBatch]:
    """One episode of two decisions: a call of skill 1, item 0, then the action 2, which achieved the goal.

    gamma is 0.9, so that the returns are 0.9 and 1. V is 0.5 and 0.7; V_sw(call) is 0.4, V_sw(act) is 0.6.
    """
    output = HierarchicalOutput(
        switch=torch.tensor([[logits(0.8, 0.2)], [logits(0.5, 0.5)]]),
        skill=torch.tensor([[logits(0.25, 0.75)], [logits(0.5, 0.5)]]),
        item=torch.tensor([[logits(0.4, 0.6)], [logits(0.5, 0.5)]]),
        action=torch.tensor([[logits(0.2, 0.3, 0.5)], [logits(0.3, 0.6, 0.1)]]),
        value=torch.tensor([[0.5], [0.7]]),
        switch_value=torch.tensor([[[0.4, 9.0]], [[9.0, 0.6]]]),
    )
    mask, returns = final_returns(torch.tensor([1.0]), torch.tensor([2]), 0.9)
    batch = DecisionBatch(
        mask=mask,
        returns=returns,
        action=torch.tensor([[0], [2]]),
        mu_action=torch.tensor([[0.2], [0.2]]),
        switch=torch.tensor([[0], [1]]),
        mu_switch=torch.tensor([[0.4], [0.5]]),
        instruction=torch.tensor([[[1, 0]], [[0, 0]]]),
        mu_instruction=torch.tensor([[0.15], [0.25]]),
    )
    return output, batch


def test_the_five_terms_are_the_numbers_worked_by_hand() -> None:
    losses, numbers = hierarchical_terms(*two_decisions())
    statistics = {name: value.item() for name, value in numbers().items()}
    # omega_sw = 0.8 / 0.4 = 2 and 0.5 / 0.5 = 1; A = 0.9 - 0.5 and 1 - 0.7; the mean is over two decisions.
    assert losses["switch"].item() == pytest.approx(-(2 * math.log(0.8) * 0.4 + 1 * math.log(0.5) * 0.3) / 2)
    # Only the first decision called: pi_inst = 0.75 * 0.4 = 0.3, omega = 0.3 / 0.15 = 2, A = 0.9 - 0.4.
    assert losses["instruction"].item() == pytest.approx(-(2 * math.log(0.3) * 0.5) / 2)
    # Only the second acted: pi_aug = 0.1, omega = 0.1 / 0.2 = 0.5, A = 1 - 0.6.
    assert losses["augmented"].item() == pytest.approx(-(0.5 * math.log(0.1) * 0.4) / 2)
    assert losses["value"].item() == pytest.approx((0.5 * 0.4**2 + 0.5 * 0.3**2) / 2)
    assert losses["switch value"].item() == pytest.approx((0.5 * 0.5**2 + 0.5 * 0.4**2) / 2)
    assert statistics["share of calls"] == pytest.approx(0.5)
    assert statistics["weight of instruction"] == pytest.approx(2.0)


def test_without_the_switch_value_all_advantages_use_v_and_nothing_else_changes() -> None:
    output, batch = two_decisions()
    with_it, without = hierarchical_terms(output, batch), hierarchical_terms(output, batch, use_switch_value=False)
    assert set(with_it.losses) - set(without.losses) == {"switch value"}
    assert without.losses["instruction"].item() == pytest.approx(-(2 * math.log(0.3) * 0.4) / 2)
    assert without.losses["augmented"].item() == pytest.approx(-(0.5 * math.log(0.1) * 0.3) / 2)
    for name in ("switch", "value"):
        assert with_it.losses[name].item() == without.losses[name].item()


def test_decisions_that_are_not_there_count_for_nothing() -> None:
    output, batch = two_decisions()
    padded = HierarchicalOutput(*(torch.cat([part, torch.full_like(part[:1], 3.0)]) for part in output))
    rows = {name: torch.cat([part, part[:1]]) for name, part in batch._asdict().items() if part is not None}
    rows["mask"][2], rows["returns"][2] = 0.0, 5.0
    whole, longer = hierarchical_terms(output, batch), hierarchical_terms(padded, DecisionBatch(**rows))
    for name, loss in whole.losses.items():
        assert longer.losses[name].item() == pytest.approx(loss.item())


def test_importance_weights_can_be_capped_and_are_not_differentiated() -> None:
    log_pi = torch.tensor([math.log(0.8)], requires_grad=True)
    loss, weight = policy_gradient(log_pi, torch.tensor([0.1]), torch.tensor([2.0]), most_weight=3.0)
    loss.sum().backward()
    assert weight.tolist() == [3.0]
    assert log_pi.grad is not None
    assert log_pi.grad.item() == pytest.approx(-3.0 * 2.0)  # -omega * A


def test_an_instruction_that_is_not_carried_out_may_be_as_unlikely_as_it_likes() -> None:
    """Its importance weight would be infinite, and 0 times infinity is NaN."""
    output, batch = two_decisions()
    output = output._replace(item=output.item.clone().requires_grad_())
    unlikely = batch._replace(mu_instruction=torch.tensor([[0.15], [1e-45]]))
    losses, usual = hierarchical_terms(output, unlikely).losses, hierarchical_terms(output, batch).losses
    for name, loss in usual.items():
        assert losses[name].item() == loss.item()
    losses["instruction"].backward()
    assert output.item.grad is not None
    assert bool(output.item.grad.isfinite().all())


def test_the_policy_gradient_equals_finite_differences_of_the_weighted_log_probability() -> None:
    output, batch = two_decisions()
    output = HierarchicalOutput(*(part.double().requires_grad_() for part in output))
    doubles = DecisionBatch(
        *(part.double() if part is not None and part.is_floating_point() else part for part in batch)
    )
    terms = hierarchical_terms(output, doubles).losses
    heads = {"switch": ["switch"], "instruction": ["skill", "item"], "augmented": ["action"]}
    heads |= {"value": ["value"], "switch value": ["switch_value"]}
    for name, parts in heads.items():
        for part in parts:
            tensor = getattr(output, part)
            (gradient,) = torch.autograd.grad(terms[name], tensor, retain_graph=True)
            for index in range(tensor.numel()):
                assert gradient.reshape(-1)[index].item() == pytest.approx(
                    _difference(output, doubles, name, part, index), abs=1e-6
                )


def _difference(output: HierarchicalOutput, batch: DecisionBatch, name: str, part: str, index: int) -> float:
    """A central difference of a term, with weights and advantages held where they are, as the paper's gradient does."""
    step, values = 1e-6, []
    fixed = _weights_and_advantages(output, batch)
    for sign in (1, -1):
        moved = {key: tensor.detach().clone() for key, tensor in output._asdict().items()}
        moved[part].reshape(-1)[index] += sign * step
        values.append(_term(HierarchicalOutput(**moved), batch, name, fixed))
    return (values[0] - values[1]) / (2 * step)


def _logs(output: HierarchicalOutput, batch: DecisionBatch) -> dict[str, torch.Tensor]:
    def of(part: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        return torch.stack([part[t, 0].log_softmax(-1)[choice[t, 0]] for t in range(len(part))])

    assert batch.switch is not None
    assert batch.instruction is not None
    return {
        "switch": of(output.switch, batch.switch),
        "instruction": of(output.skill, batch.instruction[..., 0]) + of(output.item, batch.instruction[..., 1]),
        "augmented": of(output.action, batch.action),
    }


def _weights_and_advantages(output: HierarchicalOutput, batch: DecisionBatch) -> dict[str, torch.Tensor]:
    logs = _logs(output, batch)
    mu = {"switch": batch.mu_switch, "instruction": batch.mu_instruction, "augmented": batch.mu_action}
    own = torch.stack([output.switch_value[t, 0, batch.switch[t, 0]] for t in range(2)])  # type: ignore[index]
    values = {"switch": output.value[:, 0], "instruction": own, "augmented": own}
    return {
        name: (logs[name].exp() / mu[name][:, 0] * (batch.returns[:, 0] - values[name])).detach()  # type: ignore[index]
        for name in logs
    }


def _term(output: HierarchicalOutput, batch: DecisionBatch, name: str, fixed: dict[str, torch.Tensor]) -> float:
    if name == "switch value":
        own = torch.stack([output.switch_value[t, 0, batch.switch[t, 0]] for t in range(2)])  # type: ignore[index]
        return (0.5 * (batch.returns[:, 0] - own) ** 2).mean().item()
    if name == "value":
        return (0.5 * (batch.returns[:, 0] - output.value[:, 0]) ** 2).mean().item()
    assert batch.switch is not None
    counted = {"switch": torch.ones(2), "instruction": 1.0 - batch.switch[:, 0], "augmented": batch.switch[:, 0]}
    return (-fixed[name] * _logs(output, batch)[name] * counted[name]).mean().item()


def flat_decisions() -> tuple[FlatOutput, DecisionBatch]:
    """Two steps: actions 0 and 1 with 0.5 and 0.25; the returns are 0.5 and 1, the values 0.2 and 1.5."""
    output = FlatOutput(torch.tensor([[logits(0.5, 0.5)], [logits(0.75, 0.25)]]), torch.tensor([[0.2], [1.5]]))
    mask, returns = final_returns(torch.tensor([1.0]), torch.tensor([2]), 0.5)
    return output, DecisionBatch(mask, returns, torch.tensor([[0], [1]]), torch.tensor([[0.25], [0.5]]))


def test_the_flat_policy_has_the_third_term_and_the_value() -> None:
    losses, _ = flat_terms(*flat_decisions())
    assert losses["policy"].item() == pytest.approx(-(2 * math.log(0.5) * 0.3 + 0.5 * math.log(0.25) * -0.5) / 2)
    assert losses["value"].item() == pytest.approx((0.5 * 0.3**2 + 0.5 * 0.5**2) / 2)


def test_the_gradient_of_the_flat_policy_is_that_of_finite_differences() -> None:
    output, batch = flat_decisions()
    batch = DecisionBatch(
        *(None if part is None else part.double() if part.is_floating_point() else part for part in batch)
    )
    start = FlatOutput(*(part.double() for part in output))
    chosen = [0, 1]
    weight = [start.action[t, 0].softmax(-1)[chosen[t]] / batch.mu_action[t, 0] for t in range(2)]
    advantage = [batch.returns[t, 0] - start.value[t, 0] for t in range(2)]

    def terms(action: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """With weights and advantages held where they are."""
        logs = [action[t, 0].log_softmax(-1)[chosen[t]] for t in range(2)]
        policy = -sum(weight[t] * advantage[t] * logs[t] for t in range(2)) / 2
        return torch.as_tensor(policy), (0.5 * (batch.returns - value) ** 2).mean()

    moving = FlatOutput(*(part.clone().requires_grad_() for part in start))
    losses = flat_terms(moving, batch).losses
    gradients = torch.autograd.grad(losses["policy"] + losses["value"], list(moving))
    for number, gradient in enumerate(gradients):
        for index in range(gradient.numel()):
            sides = []
            for sign in (1, -1):
                parts = [part.clone() for part in start]
                parts[number].reshape(-1)[index] += sign * 1e-6
                sides.append(sum(terms(*parts)).item())  # type: ignore[union-attr]
            assert gradient.reshape(-1)[index].item() == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=1e-6)


def test_self_imitation_learns_only_from_what_was_better_than_expected() -> None:
    losses, _ = imitation_terms(*flat_decisions())
    assert losses["imitation"].item() == pytest.approx(-math.log(0.5) * 0.3 / 2)
    assert losses["imitation value"].item() == pytest.approx(0.5 * 0.3**2 / 2)


def test_ppo_stops_where_the_ratio_leaves_its_bounds() -> None:
    log_pi, log_mu = torch.tensor([0.6, 0.6]).log(), torch.tensor([0.4, 0.4]).log()
    loss, ratio = clipped_gradient(log_pi, log_mu, torch.tensor([1.0, -1.0]), clip=0.2)
    assert ratio.tolist() == pytest.approx([1.5, 1.5])
    assert loss.tolist() == pytest.approx([-1.2, 1.5])  # the gain is clipped, the loss is not


def test_ppo_advantages_have_unit_spread_over_what_is_there() -> None:
    output, batch = flat_decisions()
    losses, _ = ppo_terms(output, batch, clip=0.2, gamma=0.9, trace=1.0)
    # Advantages 0.3 and -0.5: mean -0.1, spread 0.4, so 1 and -1 (less the guard); ratios 2 and 0.5.
    unit = 0.4 / (0.4 + 1e-3)
    assert losses["policy"].item() == pytest.approx(-(1.2 * unit - 0.8 * unit) / 2, rel=1e-4)


def judged_decisions() -> tuple[FlatOutput, DecisionBatch]:
    """The same two steps, drawn with 0.25 and 0.75 and with 0.5 and 0.5, with what a critic thinks of both actions."""
    output, batch = flat_decisions()
    return output, batch._replace(
        mu_actions=torch.tensor([[[0.25, 0.75]], [[0.5, 0.5]]]),
        advantages=torch.tensor([[[0.3, -0.1]], [[0.2, -0.2]]]),
        surprise=torch.tensor([[0.1], [-0.3]]),
        worth=torch.tensor([[0.3], [1.0]]),
    )


def test_judged_actions_all_count_by_how_likely_they_were_and_the_one_taken_by_what_came_of_it() -> None:
    output, batch = judged_decisions()
    spread = math.sqrt((0.03 + 0.04) / 2) + 1e-3
    # Ratios are 2 and 2/3, then 1.5 and 0.5: gains stop at 1.2, losses at 0.8.
    every = 0.25 * 1.2 * 0.3 - 0.75 * 0.8 * 0.1, 0.5 * 1.2 * 0.2 - 0.5 * 0.8 * 0.2
    taken = 1.2 * 0.1, -0.8 * 0.3
    for weight in (0.0, 1.0):
        losses, _ = judged_terms(output, batch, clip=0.2, beyond=weight)
        expected = -(sum(every) + weight * sum(taken)) / 2 / spread
        assert losses["policy"].item() == pytest.approx(expected, rel=1e-4)
        assert losses["value"].item() == pytest.approx((0.5 * 0.1**2 + 0.5 * 0.5**2) / 2)


def test_one_episodes_luck_is_bounded() -> None:
    output, batch = judged_decisions()
    lucky = batch._replace(surprise=torch.tensor([[1e6], [0.0]]))
    plain = judged_terms(output, batch, clip=0.2, beyond=0.0).losses["policy"].item()
    assert judged_terms(output, lucky, clip=0.2, beyond=1.0).losses["policy"].item() == pytest.approx(
        plain - 5 * 1.2 / 2, rel=1e-4
    )


def test_what_is_never_drawn_has_a_gradient_that_is_finite() -> None:
    output, batch = judged_decisions()
    output.action.requires_grad_()
    certain = batch._replace(mu_actions=torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]))
    judged_terms(output, certain, clip=0.2, beyond=0.5).losses["policy"].backward()
    assert output.action.grad is not None
    assert bool(output.action.grad.isfinite().all())


@pytest.mark.parametrize("turn", ["switch", "instruction", "augmented"])
def test_in_a_turn_there_is_the_term_of_one_policy_and_those_of_the_values(turn: str) -> None:
    output, batch = two_decisions()
    whole, part = hierarchical_terms(output, batch), hierarchical_terms(output, batch, turn=turn)
    assert set(part.losses) == {turn, "value", "switch value"}
    assert all(loss.equal(whole.losses[name]) for name, loss in part.losses.items())
    assert part.numbers().items() >= {"weight of switch": whole.numbers()["weight of switch"]}.items()


def test_the_entropy_of_an_even_choice_is_its_logarithm() -> None:
    assert entropy(torch.zeros(4)).item() == pytest.approx(math.log(4))


def test_the_entropies_of_the_three_policies_are_the_numbers_worked_by_hand() -> None:
    output, _ = two_decisions()
    found = {name: policy_entropy(output, name).flatten().tolist() for name in ("switch", "instruction", "augmented")}
    switch = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    skill = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    item = -(0.4 * math.log(0.4) + 0.6 * math.log(0.6))
    first = -(0.2 * math.log(0.2) + 0.3 * math.log(0.3) + 0.5 * math.log(0.5))
    second = -(0.3 * math.log(0.3) + 0.6 * math.log(0.6) + 0.1 * math.log(0.1))
    assert found["switch"] == pytest.approx([switch, math.log(2)])
    assert found["instruction"] == pytest.approx([skill + item, 2 * math.log(2)])
    assert found["augmented"] == pytest.approx([first, second])
    flat = FlatOutput(output.action, output.value)
    assert policy_entropy(flat, "policy").equal(policy_entropy(output, "augmented"))


def test_the_gradient_of_an_entropy_is_that_of_finite_differences() -> None:
    start = torch.tensor([0.3, -1.2, 0.8], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(entropy(start), start)
    for place in range(3):
        step = torch.zeros(3, dtype=torch.float64)
        step[place] = 1e-6
        difference = (entropy(start.detach() + step) - entropy(start.detach() - step)) / 2e-6
        assert gradient[place].item() == pytest.approx(difference.item(), rel=1e-5)


def test_the_probability_of_a_decision_is_of_the_switch_and_of_what_it_chose() -> None:
    output, batch = two_decisions()
    # The first called skill 1, item 0: 0.8 * 0.75 * 0.4. The second did action 2 itself: 0.5 * 0.1.
    assert log_decision(output, batch).exp().flatten().tolist() == pytest.approx([0.24, 0.05])
    assert log_behaviour(batch).exp().flatten().tolist() == pytest.approx([0.4 * 0.15, 0.5 * 0.2])


def test_the_entropy_of_a_decision_weighs_what_each_switch_leads_to() -> None:
    output, _ = two_decisions()
    even = 0.5 * math.log(4) + 0.5 * entropy(torch.tensor(logits(0.3, 0.6, 0.1))).item()
    assert decision_entropy(output)[1].item() == pytest.approx(math.log(2) + even)


def test_unevenness_is_that_of_the_heads_in_use_and_least_for_even_choices() -> None:
    output, _ = two_decisions()
    own = -(math.log(0.3) + math.log(0.6) + math.log(0.1)) / 3
    # The second decision's other heads choose evenly: between 2 switches, 2 skills and 2 items.
    assert unevenness(output)[1].item() == pytest.approx(math.log(2) + 0.5 * 2 * math.log(2) + 0.5 * own)


def test_unevenness_pushes_most_what_is_least_likely_where_entropy_pushes_it_least() -> None:
    action = torch.tensor([[[5.0, 5.0, -5.0]]], requires_grad=True)
    output = FlatOutput(action, torch.zeros(1, 1))
    even = torch.autograd.grad(unevenness(output).sum(), action)[0].flatten()
    bonus = torch.autograd.grad(decision_entropy(output).sum(), action)[0].flatten()
    assert even.tolist() == pytest.approx([0.5 - 1 / 3, 0.5 - 1 / 3, -1 / 3], abs=1e-4)
    assert abs(bonus[2].item()) < 1e-3


def test_hierarchical_ppo_and_imitation_are_of_whole_decisions() -> None:
    output, batch = two_decisions()
    losses, statistics = ppo_terms(output, batch, clip=0.2, gamma=0.9, trace=1.0)
    # Ratios 0.24 / 0.06 = 4 and 0.05 / 0.1 = 0.5; advantages 0.4 and 0.3, so 1 and -1 (less the guard).
    unit = 0.05 / (0.05 + 1e-3)
    assert losses["policy"].item() == pytest.approx(-(1.2 * unit - 0.8 * unit) / 2, rel=1e-3)
    assert statistics()["share of calls"].item() == pytest.approx(0.5)
    losses, _ = imitation_terms(output, batch)
    assert losses["imitation"].item() == pytest.approx(-(math.log(0.24) * 0.4 + math.log(0.05) * 0.3) / 2)


def test_generalised_advantages_are_the_numbers_worked_by_hand() -> None:
    # Two episodes with gamma 0.5 and lambda 0.5: one of two decisions that succeeds, one of a single one that fails.
    mask, returns = final_returns(torch.tensor([1.0, 0.0]), torch.tensor([2, 1]), 0.5)
    value = torch.tensor([[0.2, 0.3], [0.4, 9.0]])
    # Last: 1 - 0.4 = 0.6. First: 0.5 * 0.4 - 0.2 = 0, and 0.5 * 0.5 * 0.6 of what came after. The other: 0 - 0.3.
    advantages = generalised_advantages(returns, value, mask, 0.5, 0.5)
    assert advantages.flatten().tolist() == pytest.approx([0.15, -0.3, 0.6, 0.0])
    plain = generalised_advantages(returns, value, mask, 0.5, 1.0)
    assert plain.flatten().tolist() == pytest.approx(((returns - value) * mask).flatten().tolist())


def test_v_trace_returns_are_the_numbers_worked_by_hand() -> None:
    output, batch = two_decisions()
    # The whole decisions' ratios are 4, of which 1 is left, and 0.5: half of the last one's surprise, 1 - 0.7, counts.
    traced = v_trace(output, batch, 0.9)
    assert traced.returns.flatten().tolist() == pytest.approx([0.9 * (0.7 + 0.5 * 0.3), 1.0])
    losses, _ = hierarchical_terms(output, traced, most_weight=1.0)
    assert losses["value"].item() == pytest.approx((0.265**2 + 0.5 * 0.3**2) / 2 / 2)
    assert losses["switch"].item() == pytest.approx(-(math.log(0.8) * 0.265 + math.log(0.5) * 0.3) / 2)


def test_v_trace_leaves_the_returns_of_the_policy_of_now_as_they_came() -> None:
    output, batch = two_decisions()
    batch = batch._replace(mu_switch=torch.tensor([[0.8], [0.5]]), mu_instruction=torch.tensor([[0.3], [0.25]]))
    batch = batch._replace(mu_action=torch.tensor([[0.2], [0.1]]))
    torch.testing.assert_close(v_trace(output, batch, 0.9).returns, batch.returns)


def test_v_trace_stops_where_an_episode_does() -> None:
    """Its last return is the reward, whatever value stands behind its end."""
    output, batch = two_decisions()
    short = batch._replace(mask=torch.tensor([[1.0], [0.0]]), returns=torch.tensor([[1.0], [0.0]]))
    assert v_trace(output, short, 0.9).returns.flatten().tolist() == pytest.approx([1.0, 0.0])


def test_refusal_is_of_the_probability_of_what_can_be_carried_out() -> None:
    output, _ = two_decisions()
    # Skills 0.25 and 0.75, items 0.4 and 0.6: 0.25 * 0.6 + 0.75 * 0.4 = 0.45. Then all, and then none.
    executable = torch.tensor([[[False, True, True, False]], [[True] * 4]])
    loss = refusal(output, executable)
    assert loss.shape == (2, 1)
    assert loss.flatten().tolist() == pytest.approx([-math.log(0.45), 0.0], abs=1e-6)
    assert refusal(output, torch.zeros(2, 1, 4, dtype=torch.bool)).abs().max().item() == pytest.approx(0.0, abs=1e-6)


def test_the_gradient_of_refusal_is_that_of_finite_differences() -> None:
    output, _ = two_decisions()
    executable = torch.tensor([[[False, True, False, False]], [[True, False, False, True]]])

    def loss(item: torch.Tensor) -> torch.Tensor:
        return refusal(output._replace(item=item, skill=output.skill.double()), executable).sum()

    assert torch.autograd.gradcheck(loss, output.item.double().requires_grad_())


def test_a_mean_over_nothing_is_nothing() -> None:
    assert masked_mean(torch.ones(2, 2), torch.zeros(2, 2)).item() == 0.0
