"""Learning from episodes: off-policy A2C with alternating updates (Algorithm 2), or PPO with hindsight or a critic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from skillstack.errors import DivergedError
from skillstack.learning.config import A2CConfig, PPOConfig
from skillstack.learning.critic import Critic, Judgement
from skillstack.learning.losses import (
    Output,
    Terms,
    decision_entropy,
    flat_terms,
    hierarchical_terms,
    imitation_terms,
    judged_terms,
    masked_mean,
    policy_entropy,
    ppo_terms,
    refusal,
    unevenness,
    v_trace,
)
from skillstack.learning.packing import load_optimizer_state, optimizer_state
from skillstack.learning.replay import Batch, Replay
from skillstack.learning.rmsprop import RMSprop
from skillstack.policies.agent import Agent
from skillstack.policies.flat import FlatOutput, FlatPolicy
from skillstack.rollout.episode import Episode
from skillstack.timing import Timer
from skillstack.worlds.world import Frames

Render = Callable[[Any], Frames]
"""Frames of the states that episodes keep."""

Played = Sequence[tuple[Episode, Any, Judgement | None]]
"""Fresh episodes, each with its frozen features and with what a critic thinks of it, if there are such."""

Spans = npt.NDArray[np.int64]
"""Numbers of spans in a replay."""

Shares = npt.NDArray[np.float32]
"""Of tasks, (skills, items)."""

ROTATION = ("switch", "instruction", "augmented")
"""The order in which the three policies take turns."""

RARE = 0.1
"""A skill is rare if fewer of a turn's games of it are achieved: its successes are kept and imitated again. Only until
it is found: later, what succeeded by chance is no longer worth imitating."""
KEPT_SPANS, AGAIN_SPANS = 1_000, 16
"""So many are kept, the newest, and so many of them are imitated in each update."""


class LevelLearner:
    """What both learners share: a level's networks, an optimiser, and steps down a loss."""

    def __init__(self, agent: Agent, level: int, *, train_encoder: bool, render: Render, timer: Timer) -> None:
        self.policy, self.encoder = agent.levels[level], agent.encoder_of(level)
        self.train_encoder, self.render, self.timer = train_encoder, render, timer
        modules: list[nn.Module] = [self.policy, self.encoder] if train_encoder else [self.policy]
        self.parameters = [parameter for module in modules for parameter in module.parameters()]
        self.optimizer: torch.optim.Optimizer
        self.critic: Critic | None = None

    def features(self, seen: Any) -> Tensor:
        """What the level sees: of states, or of frozen features that replay has in their place, (m, features)."""
        return self._encode(seen) if self.train_encoder else torch.from_numpy(seen).float()

    @torch.inference_mode()
    def frozen_features(self, episodes: Sequence[Episode]) -> Sequence[Any]:
        """Of all decisions of each episode, if the encoder is frozen, else None for each.

        In half precision: the maps of a gated encoder are twelve times as many as its features.
        """
        if self.train_encoder:
            return [None] * len(episodes)
        features = self._encode(np.concatenate([episode.decisions.states for episode in episodes])).half().numpy()
        return np.split(features, np.cumsum([len(episode) for episode in episodes])[:-1])

    def _encode(self, states: Any) -> Tensor:
        with self.timer("render"):
            frames = torch.from_numpy(self.render(states))
        with self.timer("forward"):
            features: Tensor = self.encoder(frames)
        return features

    def descend(self, losses: Mapping[str, Tensor]) -> None:
        """One step down the sum of the losses, which must be finite."""
        parts = torch.stack(list(losses.values()))
        if not bool(parts.detach().isfinite().all()):
            name, loss = next((name, loss) for name, loss in losses.items() if not bool(loss.isfinite()))
            raise DivergedError(
                f"The {name} loss is {loss.item()}, so learning was stopped before it spoils the weights."
            )
        with self.timer("backward"):
            self.optimizer.zero_grad(set_to_none=True)
            parts.sum().backward()  # type: ignore[no-untyped-call]
        try:
            with self.timer("optimizer"):
                self.step()
        except FloatingPointError as error:
            raise DivergedError(
                f"The losses are finite, but {error}, so learning was stopped before it spoils the weights."
            ) from error

    def step(self) -> None:
        """Move the weights by their gradients, if these are finite; else it is a FloatingPointError."""
        self.optimizer.step()


class A2CLearner(LevelLearner):
    """Algorithm 2's inner loop: after each episode, Poisson-many updates on batches from replay, in rotation."""

    def __init__(
        self, agent: Agent, level: int, config: A2CConfig, *, train_encoder: bool, render: Render, timer: Timer
    ) -> None:
        super().__init__(agent, level, train_encoder=train_encoder, render=render, timer=timer)
        self.config = config
        self.optimizer = RMSprop(self.parameters, config.learning_rate, config.gradient_norm)
        self.replay = Replay(config.replay, config.gamma, behaviour=config.true_probabilities)
        self.updates = 0

    @property
    def turn(self) -> str | None:
        """The policy whose turn it is; None where all are trained at once."""
        if not self.config.alternation:
            return None
        return ROTATION[self.updates // self.config.rotation % len(ROTATION)]

    def learn(
        self, episodes: Sequence[Episode], rng: np.random.Generator, before: int = 0, failing: Shares | None = None
    ) -> dict[str, float]:
        """Keep the episodes and do the updates that they bring, however many episodes of the phase came before.

        `failing` is the share of each task's last games that were lost, (skills, items).
        """
        for episode, features in zip(episodes, self.frozen_features(episodes), strict=True):
            self.replay.add(episode, features)
        terms: Terms | None = None
        for _ in range(int(rng.poisson(self.config.updates, size=len(episodes)).sum())):
            terms = self.update(rng, failing)
        return terms.numbers() if terms else {}

    def update(self, rng: np.random.Generator, failing: Shares | None = None) -> Terms:
        """One mini-batch update."""
        with self.timer("batch"):
            batch = self.replay.batch(self.replay.draw(rng, self.config.batch))
            seen = self.replay.states(batch.rows)
        features = self.features(seen)
        with self.timer("forward"):
            terms = self._terms(batch, features, failing)
        self.descend(terms.losses)
        self.updates += 1
        return terms

    def _terms(self, batch: Batch, features: Tensor, failing: Shares | None) -> Terms:
        config = self.config
        most_weight = math.inf if config.most_weight is None else config.most_weight
        output, decisions = self.policy.unroll(features, batch.tasks, batch.there), batch.decisions
        if config.v_trace:
            decisions, most_weight = v_trace(output, decisions, config.gamma), min(most_weight, 1.0)
        if isinstance(output, FlatOutput):
            terms = flat_terms(output, decisions, most_weight=most_weight)
        else:
            terms = hierarchical_terms(
                output,
                decisions,
                turn=self.turn,
                use_switch_value=config.switch_value,
                most_weight=most_weight,
            )
        if config.entropy:
            trained = [policy_entropy(output, name) for name in terms.losses if name in (*ROTATION, "policy")]
            bonus = torch.stack(trained).sum(0)  # (t, n)
            if config.entropy_by_failure:
                assert failing is not None, "the trainer says what fails"
                bonus = bonus * torch.from_numpy(failing)[batch.tasks[:, 0], batch.tasks[:, 1]]
            terms.losses["entropy"] = -config.entropy * masked_mean(bonus, decisions.mask)
        return terms

    def state(self) -> dict[str, Any]:
        return {"optimizer": optimizer_state(self.optimizer), "replay": self.replay.state(), "updates": self.updates}

    def load_state(self, state: Mapping[str, Any]) -> None:
        load_optimizer_state(self.optimizer, state["optimizer"])
        self.replay.load_state(state["replay"])
        self.updates = state["updates"]


class PPOLearner(LevelLearner):
    """A few passes over fresh episodes. A frame is encoded once for all the tasks it is learned for."""

    def __init__(
        self,
        agent: Agent,
        level: int,
        config: PPOConfig,
        *,
        most_episodes: int,
        train_encoder: bool,
        render: Render,
        timer: Timer,
        critic: Critic | None = None,
        beyond: float = 0.5,
    ) -> None:
        """With a critic it learns from its judgement, and by the weight `beyond` from what that did not foresee."""
        super().__init__(agent, level, train_encoder=train_encoder, render=render, timer=timer)
        self.config, self._most_episodes, self.critic, self._beyond = config, most_episodes, critic, beyond
        self.optimizer = torch.optim.Adam(self.parameters, lr=config.learning_rate, eps=1e-5)
        self.updates = 0
        self._tasks = agent.vocabulary.encode(agent.stages[level].tasks)
        # The grammar that guides a hierarchical level's choices is left out of its probabilities, as in the paper:
        # with it, PPO's clipping would keep the level from unlearning what the grammar is too sure of.
        self._behaviour = isinstance(self.policy, FlatPolicy)
        self._kept = Replay(KEPT_SPANS, config.gamma, behaviour=self._behaviour)
        self._rare_spans: Spans = np.zeros(0, np.int64)  # of what is kept, those of skills that are rare in this turn

    def learn(
        self, episodes: Sequence[Episode], rng: np.random.Generator, before: int = 0, failing: Shares | None = None
    ) -> dict[str, float]:
        """Learn from fresh episodes; so many others came before them in this phase. What fails is not looked at."""
        last, most = self.config.last, self.config.decay * self._most_episodes
        left = max(1.0 - (1.0 - last) * before / most, last)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * left
        terms: Terms | None = None
        played = list(zip(episodes, self.frozen_features(episodes), self._judge(episodes, rng), strict=True))
        self._keep_rare(played, rng)
        for _ in range(self.config.epochs):
            order = rng.permutation(len(played))
            for part in np.array_split(order, max(1, len(played) // self.config.batch)):
                terms = self.update([played[number] for number in part.tolist()], rng, left)
        return terms.numbers() if terms else {}

    def _judge(self, episodes: Sequence[Episode], rng: np.random.Generator) -> Sequence[Judgement | None]:
        """What the critic thinks of the episodes, if there is one; it learns from them afterwards."""
        if self.critic is None:
            return [None] * len(episodes)
        with self.timer("critic"):
            judged = self.critic.judge(episodes)
            self.critic.learn(rng)
        return judged

    def update(self, played: Played, rng: np.random.Generator, left: float = 1.0) -> Terms:
        """One step on some of the fresh episodes, with what is left of the bonuses."""
        config = self.config
        fresh = self._fresh(played, rng)
        features = self.features(fresh.states(slice(None)))
        meant = fresh.batch(fresh.spans(hindsight=False))
        with self.timer("forward"):
            output = self._output(features, meant)
            if isinstance(output, FlatOutput) and self.critic is not None:
                terms = judged_terms(output, meant.decisions, clip=config.clip, beyond=self._beyond)
            else:
                terms = ppo_terms(output, meant.decisions, clip=config.clip, gamma=config.gamma, trace=config.trace)
            losses = dict(terms.losses)
            losses["value"] = config.value * losses["value"]
            if config.entropy:
                bonus = masked_mean(decision_entropy(output), meant.decisions.mask)
                losses["entropy"] = -config.entropy * left * bonus
            if config.even:
                uneven = masked_mean(unevenness(output), meant.decisions.mask)
                losses["unevenness"] = config.even * left * uneven
            if config.refusal and not isinstance(output, FlatOutput):
                assert meant.decisions.executable is not None, "the runner was not asked what is executable"
                refused = masked_mean(refusal(output, meant.decisions.executable), meant.decisions.mask)
                losses["refusal"] = config.refusal * refused
            losses |= self._imitation(fresh, fresh.spans(hindsight=True), features, "imitation")
            again = rng.choice(self._rare_spans, min(AGAIN_SPANS, len(self._rare_spans)), replace=False)
            losses |= self._imitation(self._kept, again, None, "imitation again")
        self.descend(losses)
        self.updates += 1
        return Terms(losses, terms.statistics)

    def step(self) -> None:
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_norm).item()
        if not math.isfinite(norm):
            raise FloatingPointError(f"the norm of the gradient is {norm}")
        super().step()

    def _fresh(self, played: Played, rng: np.random.Generator) -> Replay:
        """The episodes as they were meant, and what they achieved in hindsight."""
        with self.timer("batch"):
            fresh = Replay(2**30, self.config.gamma, behaviour=self._behaviour)
            for episode, frozen, judged in played:
                fresh.add(episode, frozen, _columns(episode, judged))
                if self.config.hindsight:
                    fresh.add_hindsight(episode, self._tasks, 1.0, self.config.hindsight_steps, rng)
        return fresh

    def _keep_rare(self, played: Played, rng: np.random.Generator) -> None:
        """Keep what was achieved of rare skills: what is won once in a hundred games is else forgotten until then."""
        if isinstance(self.policy, FlatPolicy) or not self.config.hindsight:
            return
        tried, won = Counter[int](), Counter[int]()
        for episode, *_ in played:
            tried[int(episode.task[0])] += 1
            won[int(episode.task[0])] += episode.success
        skills = np.array([skill for skill in tried if won[skill] < RARE * tried[skill]], np.int64)
        rare = np.isin(self._tasks[:, 0], skills)
        for episode, frozen, _ in played:
            assert episode.reached is not None, "the runner was not asked for hindsight"
            if (episode.reached[1:] & ~episode.reached[:-1])[:, rare].any():
                self._kept.add(episode, frozen)
                self._kept.add_hindsight(episode, self._tasks, 1.0, self.config.hindsight_steps, rng)
        self._rare_spans = self._kept.spans_of(skills)

    def _imitation(self, replay: Replay, spans: Spans, features: Tensor | None, name: str) -> dict[str, Tensor]:
        """Losses of imitating some spans; of their own features, or of those of all rows."""
        if not len(spans):
            return {}
        batch, weight = replay.batch(spans), self.config.hindsight
        if features is None:
            output = self.policy.unroll(self.features(replay.states(batch.rows)), batch.tasks, batch.there)
        else:
            output = self._output(features, batch)
        losses = imitation_terms(output, batch.decisions).losses
        return {
            name: weight * losses["imitation"],
            f"{name} value": weight * self.config.value * losses["imitation value"],
        }

    def _output(self, features: Tensor, batch: Batch) -> Output:
        """Of a batch, with the features of all rows."""
        return self.policy.unroll(features[torch.from_numpy(batch.rows)], batch.tasks, batch.there)

    def state(self) -> dict[str, Any]:
        critic = {"critic": self.critic.state()} if self.critic is not None else {}
        kept = {"kept": self._kept.state()} if len(self._kept) else {}
        return {"optimizer": optimizer_state(self.optimizer), "updates": self.updates, **kept, **critic}

    def load_state(self, state: Mapping[str, Any]) -> None:
        load_optimizer_state(self.optimizer, state["optimizer"])
        self.updates = state["updates"]
        if "kept" in state:
            self._kept.load_state(state["kept"])
        if self.critic is not None:
            self.critic.load_state(state["critic"])


def _columns(episode: Episode, judged: Judgement | None) -> dict[str, Any]:
    """The fields of a `DecisionBatch` that fresh episodes alone have: what could be carried out, and a judgement."""
    decisions, found = episode.decisions, {}
    if decisions.executable is not None:
        found["executable"] = decisions.executable
    if judged is not None:
        found |= {"mu_actions": decisions.mu_action.astype(np.float32), **judged._asdict()}
    return found
