"""Algorithm 1 of the paper, transcribed as it stands: recursive, one game at a time, nothing batched.

The runner is tested against this. It shares the player (which gives the plain policies' probabilities), the world, the
random numbers and the grammar's own q and rho with the runner, and nothing else: the equations that reshape policies by
them, and the drawing, are written out here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skillstack.policies.grammar import ACT, CALL
from skillstack.randomness import mix, uniforms
from skillstack.rollout.player import Player, Proposal
from skillstack.rollout.runner import RunnerConfig
from skillstack.worlds.world import World

SLOT = np.array([0])


@dataclass
class Game:
    """One game under way, and everything that was decided in it at any level."""

    world: World
    player: Player
    config: RunnerConfig
    top: int
    seed: int
    steps: int = 0
    drawn: int = 0
    log: list[tuple[Any, ...]] = field(default_factory=list)
    """(level, task, step, switch, instruction, action) of each decision, in order of time."""
    chances: list[dict[str, Any]] = field(default_factory=list)
    """Of each decision of the top level: the plain policies, and with what probability its choices were made."""

    def draws(self) -> np.ndarray:
        self.drawn += 1
        return uniforms(mix(self.seed, 1), np.arange(8) + 8 * (self.drawn - 1))


def play(world: World, player: Player, config: RunnerConfig, top: int, task: tuple[int, int], seed: int) -> tuple:
    """One game; returns its outcome, the top level's rewards, its steps, the log of all decisions, and the chances."""
    game = Game(world, player, config, top, seed)
    player.set_up(1)
    world.reset(in_world(game, task)[None], np.array([seed], dtype=np.uint64))
    outcome, rewards = run(game, top, task)
    return outcome, rewards, game.steps, game.log, game.chances


def run(game: Game, level: int, task: tuple[int, int]) -> tuple[str, list[float]]:
    """RUN(k, g)."""
    game.player.begin(level, SLOT)
    grammar = game.player.grammars[level]
    previous = grammar.start_state if grammar else None
    limit = game.config.limits.decisions if level > 0 else game.config.limits.flat
    rewards: list[float] = []
    while True:
        game.player.look(SLOT, game.world.observe())
        proposal = game.player.propose(level, SLOT, np.array([task]))
        draws = game.draws()
        epsilon = game.config.epsilon if level == game.top else 0.0
        plain = np.exp(proposal.log_action[0].astype(float))
        action = pick(plain, draws[2], draws[5], epsilon, game.config.greedy)
        chances = {"mu_action": plain, "behaviour_action": chance(plain, action, epsilon, game.config.greedy)}
        refused = False
        if level == game.top:
            game.chances.append(chances)
        if level == 0:
            game.log.append((level, task, game.steps, None, None, action))
            execute(game, action)
        else:
            switch, instruction = decide(game, level, task, previous, proposal, draws, epsilon, chances)
            game.log.append((level, task, game.steps, switch, instruction, action))
            if grammar:
                previous = (
                    grammar.act_state if switch == ACT else instruction[0] * len(grammar.base.items) + instruction[1]
                )
            if switch == ACT:
                execute(game, action)
            elif executable(game, level, instruction):
                if not (game.config.at_once and game.world.achieved(in_world(game, instruction)[None])[0]):
                    run(game, level - 1, instruction)
            else:
                refused = True
        achieved = not refused and bool(game.world.achieved(in_world(game, task)[None])[0])
        reward = 1.0 if achieved else game.world.rewards.refused if refused else 0.0
        rewards.append(reward)
        if reward > 0:
            return "achieved", rewards
        if reward < 0:
            return "not executable", rewards
        if game.steps >= game.config.limits.episode:
            return "cut off", rewards
        if len(rewards) >= limit:
            return "limit", rewards


def decide(
    game: Game, level: int, task: Any, previous: Any, proposal: Any, draws: Any, epsilon: float, chances: dict
) -> tuple:
    """e_t and g'_t as in section 3.3, in plain probabilities."""
    switch_policy = np.exp(proposal.log_switch[0].astype(float))
    skill, item = np.exp(proposal.log_skill[0].astype(float)), np.exp(proposal.log_item[0].astype(float))
    instruction_policy = np.outer(skill, item).ravel()
    chances.update(mu_switch=switch_policy, mu_skill=skill, mu_item=item)
    grammar = game.player.grammars[level]
    if grammar and game.config.grammar and (game.config.top_grammar or level < game.top):
        prior = grammar.prior(np.array([task]), np.array([previous]))
        switch_policy = product(switch_policy, prior.switch[0])
        instruction_policy = product(instruction_policy, prior.instruction[0])
    switch = pick(switch_policy, draws[0], draws[3], epsilon, game.config.greedy)
    number = pick(instruction_policy, draws[1], draws[4], epsilon, game.config.greedy)
    assert switch in (CALL, ACT)
    greedy = game.config.greedy
    chances["behaviour_switch"] = chance(switch_policy, switch, epsilon, greedy)
    chances["behaviour_instruction"] = chance(instruction_policy, number, epsilon, greedy)
    return switch, (number // len(item), number % len(item))


def product(policy: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Proportional to policy times prior; the policy alone where they have no overlap."""
    both = policy * prior
    return both / both.sum() if both.sum() > 0 else policy


def pick(probabilities: np.ndarray, unit: float, coin: float, epsilon: float, greedy: bool) -> int:
    """Draw by walking through the probabilities; with chance epsilon draw evenly instead."""
    if coin < epsilon:
        return min(int(coin / epsilon * len(probabilities)), len(probabilities) - 1)
    if greedy:
        return int(np.argmax(probabilities))
    mark = unit * float(probabilities.astype(float).sum())
    for number, probability in enumerate(probabilities.astype(float)):
        mark -= probability
        if mark < 0:
            return number
    return len(probabilities) - 1


def chance(probabilities: np.ndarray, choice: int, epsilon: float, greedy: bool) -> float:
    """With what probability `pick` makes this choice."""
    alone = float(choice == np.argmax(probabilities)) if greedy else float(probabilities[choice])
    return (1 - epsilon) * alone + epsilon / len(probabilities)


def execute(game: Game, action: int) -> None:
    game.world.step(np.array([action]))
    game.steps += 1


def executable(game: Game, level: int, instruction: tuple[int, int]) -> bool:
    words = game.player.vocabulary.decode(instruction)
    taught = words in game.player.stages[level].base
    return taught and bool(game.world.executable(in_world(game, instruction)[None])[0])


def in_world(game: Game, task: tuple[int, int]) -> np.ndarray:
    return game.world.description.vocabulary.encode(game.player.vocabulary.decode(task))


class ToyPlayer:
    """A player as the networks are, in small: it sees frames, remembers within a run, and costs next to nothing."""

    def __init__(self, agent: Any) -> None:
        self.stages, self.vocabulary, self.grammars = agent.stages, agent.vocabulary, agent.grammars
        rng = np.random.default_rng(11)
        self._see = rng.normal(size=(12, 16))
        self._hear = rng.normal(size=(len(self.stages), *map(len, (self.vocabulary.skills, self.vocabulary.items)), 16))
        self._say = rng.normal(size=(16, 64))

    def set_up(self, num_slots: int) -> None:
        self._memory = np.zeros((num_slots, len(self.stages), 16))
        self._seen = np.zeros((num_slots, 16))

    def begin(self, level: int, slots: np.ndarray) -> None:
        self._memory[slots, level] = 0.0

    def look(self, slots: np.ndarray, frames: np.ndarray) -> None:
        patches = frames[:, ::18, ::18].reshape(len(frames), -1) / 255.0  # (n, 12)
        for slot, patch in zip(slots, patches, strict=True):  # one by one, so that batching cannot change a bit
            self._seen[slot] = (patch[:, None] * self._see).sum(axis=0)

    def propose(self, level: int, slots: np.ndarray, tasks: np.ndarray) -> Proposal:
        heard = self._hear[level, tasks[:, 0], tasks[:, 1]]
        memory = np.tanh(self._seen[slots] + heard + self._memory[slots, level])
        self._memory[slots, level] = memory
        logits = np.stack([(row[:, None] * self._say).sum(axis=0) for row in memory])
        base = self.stages[level].base
        sizes = (8, 2, len(base.skills), len(base.items)) if base else (8,)
        starts = np.cumsum((0, *sizes))
        parts = [logits[:, start : start + size] for start, size in zip(starts, sizes, strict=False)]
        return Proposal(*(part - np.log(np.exp(part).sum(axis=1, keepdims=True)) for part in parts))
