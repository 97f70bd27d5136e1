"""The losses of section 4.1 and of PPO, as pure functions of tensors, all means over the valid decisions of a batch.

Shapes are (t, n): t decisions of n episodes, `mask` telling which are there. Advantages are the paper's: the empirical
return (or what `v_trace` and `generalised_advantages` make of it) minus a value, through which no gradient flows; in
`judged_terms` they are a critic's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from skillstack.policies.flat import FlatOutput
from skillstack.policies.grammar import ACT, CALL
from skillstack.policies.hierarchical import HierarchicalOutput

Output = FlatOutput | HierarchicalOutput


class DecisionBatch(NamedTuple):
    """What was decided, and what it led to; the fields that a terminal level lacks are None."""

    mask: Tensor  # (t, n), 1 where there is a decision
    returns: Tensor  # (t, n), discounted sum of the rewards from there on
    action: Tensor  # (t, n)
    mu_action: Tensor  # (t, n), probability of the action when it was drawn, as for the others
    switch: Tensor | None = None  # (t, n)
    mu_switch: Tensor | None = None  # (t, n)
    instruction: Tensor | None = None  # (t, n, 2)
    mu_instruction: Tensor | None = None  # (t, n)
    executable: Tensor | None = None  # (t, n, skills * items of the base), which instructions could be carried out
    value_weight: Tensor | None = None  # (t, n), how much each decision counts for the values; 1 where it is None
    mu_actions: Tensor | None = None  # (t, n, actions), of all actions; this and what follows where a critic judges
    advantages: Tensor | None = None  # (t, n, actions), how much better than average each action would have been
    surprise: Tensor | None = None  # (t, n), how much better it went than was thought of the action that was taken
    worth: Tensor | None = None  # (t, n), what the states turned out to be worth


class Terms(NamedTuple):
    """The parts of a loss, each a scalar to be minimised, and numbers worth a look."""

    losses: dict[str, Tensor]
    statistics: Callable[[], dict[str, Tensor]]
    """Worked out only when somebody looks: they cost as much as the losses."""

    def numbers(self) -> dict[str, float]:
        """Losses and statistics for the metrics."""
        with torch.no_grad():
            parts = {**self.statistics(), **{f"loss of {name}": loss for name, loss in self.losses.items()}}
        return {name: part.item() for name, part in parts.items()}


def final_returns(rewards: Tensor, lengths: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
    """Masks and returns (t, n) of n episodes whose last decision alone has a reward.

    The return is the sum over tau of gamma^tau * r_{t+tau}, which is the last reward, discounted.

    >>> final_returns(torch.tensor([1.0, 1.0]), torch.tensor([3, 1]), 0.5)[1].tolist()
    [[0.25, 1.0], [0.5, 0.0], [1.0, 0.0]]
    """
    left = lengths - 1 - torch.arange(int(lengths.max())).unsqueeze(1)  # (t, n), decisions still to come
    mask = (left >= 0).float()
    return mask, rewards * gamma ** left.clamp(min=0) * mask


def generalised_advantages(returns: Tensor, value: Tensor, mask: Tensor, gamma: float, trace: float) -> Tensor:
    """Advantages (t, n) that trust the values: the return is mixed with what is expected on the way (Schulman 2016).

    `trace` 1 gives the plain return minus the value, 0 looks one decision ahead.

    >>> returns, value = torch.tensor([[0.5], [1.0]]), torch.tensor([[0.25], [0.75]])
    >>> generalised_advantages(returns, value, torch.ones(2, 1), 0.5, 0.0).tolist()
    [[0.125], [0.25]]
    """
    value = value.detach() * mask
    surprise = returns + gamma * _next(value - returns) - value  # reward and the next value, minus this one
    advantages = torch.zeros_like(value)
    running = torch.zeros_like(value[0])
    for t in range(len(value) - 1, -1, -1):
        running = (surprise[t] + gamma * trace * running) * mask[t]
        advantages[t] = running
    return advantages


def v_trace(output: Output, batch: DecisionBatch, gamma: float) -> DecisionBatch:
    """The batch with the returns that the policy of now would have had (Espeholt et al. 2018, all bounds 1).

    Where it is less likely to decide so than the policy that did, what came after counts less, and the value stands in.
    Weights are of whole decisions here; in the policy gradient each head has its own, as in the paper.
    """
    with torch.no_grad():
        weight = (log_decision(output, batch) - log_behaviour(batch)).exp().clamp(max=1.0)
        rewards, returns = batch.returns - gamma * _next(batch.returns), torch.zeros_like(batch.returns)
        ahead = torch.zeros_like(batch.returns[0])
        for t in range(len(returns) - 1, -1, -1):
            returns[t] = rewards[t] + gamma * ahead
            ahead = torch.lerp(output.value[t], returns[t], weight[t]) * batch.mask[t]
    return batch._replace(returns=returns, value_weight=weight)


def _next(values: Tensor) -> Tensor:
    """What there is one decision later, 0 after the last."""
    return torch.cat([values[1:], torch.zeros_like(values[:1])])


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over the decisions that are there."""
    return (values * mask).sum() / mask.sum().clamp(min=1.0)


def chosen(log_probability: Tensor, choice: Tensor) -> Tensor:
    """The log-probabilities of what was chosen: (t, n, m) and (t, n) to (t, n)."""
    return log_probability.gather(-1, choice.unsqueeze(-1)).squeeze(-1)


def _log(mu: Tensor) -> Tensor:
    """Of probabilities, finite even where one is too small for its type.

    An instruction that was not carried out may be that unlikely, and infinity times the 0 of a mask is NaN.
    """
    return mu.clamp(min=torch.finfo(mu.dtype).tiny).log()


def policy_gradient(log_pi: Tensor, mu: Tensor, advantage: Tensor, most_weight: float) -> tuple[Tensor, Tensor]:
    """-omega * log pi * A for each decision, and omega = pi / mu, which is not differentiated.

    `most_weight` caps omega; infinity is the paper's letter.
    """
    weight = (log_pi.detach() - _log(mu)).exp().clamp(max=most_weight)
    return -weight * log_pi * advantage.detach(), weight


def clipped_gradient(log_pi: Tensor, log_mu: Tensor, advantage: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """PPO's clipped surrogate for each decision, and the ratio pi / mu."""
    ratio = (log_pi - log_mu).exp()
    advantage = advantage.detach()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage), ratio.detach()


def value_loss(value: Tensor, batch: DecisionBatch) -> Tensor:
    """(1/2) (return - value)^2, the weighted mean over the decisions."""
    loss = 0.5 * (batch.returns - value) ** 2
    return masked_mean(loss if batch.value_weight is None else batch.value_weight * loss, batch.mask)


def hierarchical_terms(
    output: HierarchicalOutput,
    batch: DecisionBatch,
    *,
    turn: str | None = None,
    use_switch_value: bool = True,
    most_weight: float = float("inf"),
) -> Terms:
    """The three policy-gradient terms and the two value terms of the paper; with a `turn`, that policy's and these.

    Without the switch's value the second and third advantage use V(s, g) too, and V_sw is not learned.
    """
    assert batch.switch is not None, "a hierarchical level has a switch"
    assert batch.mu_switch is not None, "a hierarchical level has a switch"
    assert batch.mu_instruction is not None, "a hierarchical level has an instruction"
    calls, acts = (batch.switch == CALL).float() * batch.mask, (batch.switch == ACT).float() * batch.mask
    switch_value = output.switch_value.gather(-1, batch.switch.unsqueeze(-1)).squeeze(-1)
    own_value = switch_value if use_switch_value else output.value
    parts = {  # for each policy: the value behind its advantage, mu, and the decisions that it has a part in
        "switch": (output.value, batch.mu_switch, batch.mask),
        "instruction": (own_value, batch.mu_instruction, calls),
        "augmented": (own_value, batch.mu_action, acts),
    }
    assert turn is None or turn in parts, f"there is no policy {turn}"

    def gradient(name: str) -> tuple[Tensor, Tensor]:
        value, mu, _ = parts[name]
        return policy_gradient(_log_policy(output, batch, name), mu, batch.returns - value, most_weight)

    losses = {
        name: masked_mean(gradient(name)[0] * decisions, batch.mask)
        for name, (_, _, decisions) in parts.items()
        if turn in (None, name)
    }
    losses["value"] = value_loss(output.value, batch)
    if use_switch_value:
        losses["switch value"] = value_loss(switch_value, batch)
    return Terms(
        losses,
        lambda: {
            "weight of switch": masked_mean(gradient("switch")[1], batch.mask),
            "weight of instruction": masked_mean(gradient("instruction")[1], calls),
            "weight of action": masked_mean(gradient("augmented")[1], acts),
            **_hierarchical_statistics(output, batch),
        },
    )


def _log_policy(output: HierarchicalOutput, batch: DecisionBatch, name: str) -> Tensor:
    """The log-probabilities, by one of the three policies, of what was chosen: (t, n)."""
    assert batch.switch is not None, "a hierarchical level has a switch"
    assert batch.instruction is not None, "a hierarchical level has an instruction"
    if name == "switch":
        return chosen(output.switch.log_softmax(-1), batch.switch)
    if name == "augmented":
        return chosen(output.action.log_softmax(-1), batch.action)
    skill, item = batch.instruction.unbind(-1)
    return chosen(output.skill.log_softmax(-1), skill) + chosen(output.item.log_softmax(-1), item)


def flat_terms(output: FlatOutput, batch: DecisionBatch, *, most_weight: float = float("inf")) -> Terms:
    """Off-policy A2C for a flat policy: the third term and the value alone."""
    log_action = chosen(output.action.log_softmax(-1), batch.action)
    policy, weight = policy_gradient(log_action, batch.mu_action, batch.returns - output.value, most_weight)
    losses = {
        "policy": masked_mean(policy, batch.mask),
        "value": value_loss(output.value, batch),
    }
    return Terms(losses, lambda: _flat_statistics(output, batch, weight))


def ppo_terms(output: Output, batch: DecisionBatch, *, clip: float, gamma: float, trace: float) -> Terms:
    """PPO on whole decisions, with advantages of unit spread; V_sw has no part in it."""
    log_pi, log_mu = log_decision(output, batch), log_behaviour(batch)
    advantage = generalised_advantages(batch.returns, output.value, batch.mask, gamma, trace)
    mean = masked_mean(advantage, batch.mask)
    spread = masked_mean((advantage - mean) ** 2, batch.mask).sqrt()
    policy, ratio = clipped_gradient(log_pi, log_mu, (advantage - mean) / (spread + 1e-3), clip)
    losses = {
        "policy": masked_mean(policy, batch.mask),
        "value": value_loss(output.value, batch),
    }
    if isinstance(output, FlatOutput):
        return Terms(losses, lambda: _flat_statistics(output, batch, ratio))
    return Terms(losses, lambda: _hierarchical_statistics(output, batch))


MOST_SURPRISE = 5.0
"""One episode's luck counts at most so many times the spread of the advantages."""


def judged_terms(output: FlatOutput, batch: DecisionBatch, *, clip: float, beyond: float) -> Terms:
    """PPO's clipped surrogate of all actions, as a critic judges them, and not only of the one that was taken.

    What came of the one that was taken, beyond the critic's judgement of it, counts by the weight `beyond`: a critic
    that knows the state does not know what the policy remembers, and is wrong about that. The policy's own value learns
    what the critic thinks, which is less a matter of luck than how a game ended.
    """
    assert batch.mu_actions is not None, "a critic judges all actions"
    assert batch.advantages is not None, "a critic judges all actions"
    assert batch.surprise is not None, "a critic judges all actions"
    assert batch.worth is not None, "a critic judges all states"
    spread = masked_mean((batch.mu_actions * batch.advantages**2).sum(-1), batch.mask).sqrt() + 1e-3
    log_pi, log_mu = output.action.log_softmax(-1), _log(batch.mu_actions)
    every, ratio = clipped_gradient(log_pi, log_mu, batch.advantages / spread, clip)  # (t, n, actions)
    surprise = (beyond * batch.surprise / spread).clamp(-MOST_SURPRISE, MOST_SURPRISE)
    taken, _ = clipped_gradient(chosen(log_pi, batch.action), _log(batch.mu_action), surprise, clip)  # (t, n)
    losses = {
        "policy": masked_mean((batch.mu_actions * every).sum(-1) + taken, batch.mask),
        "value": masked_mean(0.5 * (batch.worth - output.value) ** 2, batch.mask),
    }
    return Terms(losses, lambda: _flat_statistics(output, batch, chosen(ratio, batch.action)))


def imitation_terms(output: Output, batch: DecisionBatch) -> Terms:
    """Self-imitation of successes in hindsight: -log pi * (R - V)+ and (1/2) (R - V)+^2 (Oh et al. 2018)."""
    better = (batch.returns - output.value).clamp(min=0.0)
    losses = {
        "imitation": masked_mean(-log_decision(output, batch) * better.detach(), batch.mask),
        "imitation value": masked_mean(0.5 * better**2, batch.mask),
    }
    return Terms(losses, lambda: {"better than expected": masked_mean(better, batch.mask)})


def log_decision(output: Output, batch: DecisionBatch) -> Tensor:
    """The log-probability of each decision as a whole: of the switch, and of the instruction or the action it chose."""
    log_action = chosen(output.action.log_softmax(-1), batch.action)
    if isinstance(output, FlatOutput):
        return log_action
    assert batch.switch is not None, "a hierarchical level has a switch"
    assert batch.instruction is not None, "a hierarchical level has an instruction"
    log_switch = chosen(output.switch.log_softmax(-1), batch.switch)
    log_skill = chosen(output.skill.log_softmax(-1), batch.instruction[..., 0])
    log_item = chosen(output.item.log_softmax(-1), batch.instruction[..., 1])
    return log_switch + torch.where(batch.switch == CALL, log_skill + log_item, log_action)


def log_behaviour(batch: DecisionBatch) -> Tensor:
    """The same of the policy that made the decisions."""
    if batch.switch is None:
        return _log(batch.mu_action)
    assert batch.mu_switch is not None, "a hierarchical level has a switch"
    assert batch.mu_instruction is not None, "a hierarchical level has an instruction"
    return _log(batch.mu_switch) + _log(torch.where(batch.switch == CALL, batch.mu_instruction, batch.mu_action))


def refusal(output: HierarchicalOutput, executable: Tensor) -> Tensor:
    """-log of the probability that an instruction could be carried out if one was given, for each decision: (t, n).

    It teaches about all instructions at every decision, where a reward of -0.5 teaches about the one that was uttered.
    """
    log_skill, log_item = output.skill.log_softmax(-1), output.item.log_softmax(-1)
    log_instruction = (log_skill.unsqueeze(-1) + log_item.unsqueeze(-2)).flatten(-2)  # (t, n, skills * items)
    none = ~executable.any(-1, keepdim=True)  # then nothing is better than anything else
    return -log_instruction.masked_fill(~(executable | none), -math.inf).logsumexp(-1)


def policy_entropy(output: Output, name: str) -> Tensor:
    """Of one of the policies that A2C trains, by itself, in nats, with a gradient."""
    heads = {"switch": ("switch",), "instruction": ("skill", "item"), "augmented": ("action",), "policy": ("action",)}
    return torch.stack([entropy(getattr(output, head)) for head in heads[name]]).sum(0)


def decision_entropy(output: Output) -> Tensor:
    """Of each decision as a whole, in nats, with a gradient."""
    own = entropy(output.action)
    if isinstance(output, FlatOutput):
        return own
    call, act = output.switch.softmax(-1).unbind(-1)
    return entropy(output.switch) + call * (entropy(output.skill) + entropy(output.item)) + act * own


def unevenness(output: Output) -> Tensor:
    """How far each decision is from choosing evenly: the mean of -log pi over the choices of the heads in use."""
    own = _unevenness(output.action)
    if isinstance(output, FlatOutput):
        return own
    call, act = output.switch.detach().softmax(-1).unbind(-1)
    return _unevenness(output.switch) + call * (_unevenness(output.skill) + _unevenness(output.item)) + act * own


def _unevenness(logits: Tensor) -> Tensor:
    return -logits.log_softmax(-1).mean(-1)


def entropy(logits: Tensor) -> Tensor:
    """Of the distribution along the last dimension, in nats."""
    log_probability = logits.log_softmax(-1)
    return -(log_probability.exp() * log_probability).sum(-1)


def _flat_statistics(output: FlatOutput, batch: DecisionBatch, weight: Tensor) -> dict[str, Tensor]:
    return {
        "weight of action": masked_mean(weight, batch.mask),
        "entropy of action": masked_mean(entropy(output.action), batch.mask),
        "return": masked_mean(batch.returns, batch.mask),
    }


def _hierarchical_statistics(output: HierarchicalOutput, batch: DecisionBatch) -> dict[str, Tensor]:
    return {
        "entropy of switch": masked_mean(entropy(output.switch), batch.mask),
        "entropy of instruction": masked_mean(entropy(output.skill) + entropy(output.item), batch.mask),
        "entropy of action": masked_mean(entropy(output.action), batch.mask),
        "share of calls": masked_mean((batch.switch == CALL).float(), batch.mask),  # type: ignore[union-attr]
        "return": masked_mean(batch.returns, batch.mask),
    }
