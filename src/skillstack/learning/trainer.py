"""Algorithm 2 of the paper: stage by stage, play, count into the grammar, learn, and move on when the stage is learned.

With N games at once, N episodes are played with the same weights and then bring N draws of updates, so the amount of
learning for each episode is the paper's; an episode's weights are at most N episodes' updates old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from torch import nn

from skillstack.instructions import Instruction, Stage, TaskSet, stages_from_words, stages_to_words
from skillstack.learning.baseline import flat_agent
from skillstack.learning.config import PPOConfig, TrainConfig
from skillstack.learning.critic import Critic
from skillstack.learning.curriculum import Curriculum
from skillstack.learning.hard import HardGames
from skillstack.learning.learner import A2CLearner, PPOLearner
from skillstack.policies.agent import Agent
from skillstack.policies.grammar import Grammar
from skillstack.randomness import mix
from skillstack.rollout.episode import Episode
from skillstack.rollout.player import AgentPlayer
from skillstack.rollout.runner import Runner, RunnerConfig
from skillstack.timing import Timer
from skillstack.worlds.making import make_world
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.world import OpenWorld

Metrics = dict[str, Any]

PRACTICE = "practice"
"""The phase of the terminal policy after it has learned to see."""


@dataclass(frozen=True)
class Progress:
    """Where a run is, for people to look at."""

    level: int
    num_levels: int
    stage: str
    phase: str
    episodes: int
    most_episodes: int
    success: dict[str, float]
    """Of each skill, over the last episodes of its tasks."""
    steps_per_second: float
    seconds_left: float
    """Of the stage, if it takes all its episodes."""


class StageTrainer:
    """One stage: the loop of Algorithm 2, in turns of one batch of games."""

    def __init__(self, config: TrainConfig, agent: Agent, stage: Stage, world: RoomGames, timer: Timer) -> None:
        """The agent's level of this stage learns; of a flat baseline, its only level."""
        self.config, self.stage, self.timer = config, stage, timer
        self.level = 0 if config.flat else stage.level
        self.agent = agent.truncated(self.level)
        self.terminal = not stage.base
        settings = config.level
        self.curriculum = Curriculum(
            self.stage,
            threshold=settings.threshold,
            window=settings.window,
            enabled=settings.curriculum,
            each=settings.each,
            novel=settings.novel,
            left_out=config.left_out(),
        )
        self.hard = HardGames()
        self.rng = np.random.default_rng((config.seed, stage.level))
        self.episodes = self.steps = self.phase_began = 0
        self._fresh_steps, self._fresh_episodes, self._fresh_seconds = 0, 0, 0.0  # since this object was made
        self._world = world
        self.learner = self._make_learner()
        hindsight = isinstance(self.learner, PPOLearner)
        runner = RunnerConfig(config.limits)
        self._runner = Runner(
            world,
            AgentPlayer(self.agent),
            runner,
            hindsight=hindsight,
            executable=hindsight and config.ppo.refusal > 0,
            timer=timer,
        )
        own_grammar = self.agent.grammars[self.level]
        if own_grammar is not None and not settings.grammar:
            own_grammar.clear()  # what was counted before, where the run goes on from another

    def _make_learner(self) -> A2CLearner | PPOLearner:
        terminal = self.config.terminal
        train_encoder = not self.practising if self.terminal else self.config.encoder != "frozen"
        parts: dict[str, Any] = {"train_encoder": train_encoder, "render": self._world.render, "timer": self.timer}
        method = terminal.method if self.terminal else self.config.level.method
        if method == "ppo":
            settings, most = self.config.ppo, self.most_episodes
            if self.practising:
                settings, most = terminal.practice, most - terminal.seeing
            elif self.terminal:
                settings, most = terminal.ppo, min(most, terminal.seeing)
            critic = self._make_critic(settings) if self.practising else None
            parts |= {"critic": critic, "beyond": terminal.beyond}
            return PPOLearner(self.agent, self.level, settings, most_episodes=most, **parts)
        return A2CLearner(self.agent, self.level, self.config.a2c, **parts)

    def _make_critic(self, settings: PPOConfig) -> Critic | None:
        """The critic that pi_0 practises with, if there is to be one and the world shows it anything."""
        terminal = self.config.terminal
        if not terminal.critic or not isinstance(self._world, OpenWorld):
            return None
        return Critic(self._world, settings.gamma, settings.trace, self.config.seed)

    @property
    def most_episodes(self) -> int:
        return self.config.terminal.episodes if self.terminal else self.config.level.episodes

    @property
    def epsilon(self) -> float:
        """Above the terminal policy it comes down from its first value to 0 in a line, in each phase anew."""
        if self.terminal:
            return self.config.terminal.epsilon
        return self.config.level.epsilon * self._exploring

    @property
    def _exploring(self) -> float:
        """The share of epsilon, and of the grammar's doubt, that is left in this phase."""
        return max(1.0 - (self.episodes - self.phase_began) / max(self.config.level.epsilon_episodes, 1), 0.0)

    @contextmanager
    def _doubting(self) -> Iterator[None]:
        """The level's own grammar with what is left of its doubt, while games are played to learn from."""
        grammar = self._grammar
        if grammar is None:
            yield
            return
        grammar.doubt = self.config.level.doubt * self._exploring
        try:
            yield
        finally:
            grammar.doubt = 0.0

    @property
    def _grammar(self) -> Grammar | None:
        """Of the level that learns, if there is one in use."""
        return self.agent.grammars[self.level] if self.config.level.grammar else None

    @property
    def guided(self) -> bool:
        """Whether the level plays its next turn with its own grammar; levels below always have theirs."""
        if not self.config.level.grammar:
            return False
        turn, share = self.episodes // self.config.games, self.config.level.unguided
        # Turns without it are spread evenly: with 0.5 it is every other one.
        return int((turn + 1) * share) == int(turn * share)

    @property
    def finished(self) -> bool:
        return self.episodes >= self.most_episodes or self._learned

    @property
    def _learned(self) -> bool:
        target = self.config.terminal.target if self.terminal else self.config.level.target
        skills = [self.curriculum.success(skill) for skill in self.stage.tasks.skills]
        return self.curriculum.all_windows_full() and all(share is not None and share >= target for share in skills)

    @property
    def practising(self) -> bool:
        """Whether the terminal policy has learned to see, and practises with its encoder frozen."""
        settings = self.config.terminal
        learns_to_see = self.terminal and settings.method == "ppo" and settings.seeing < self.most_episodes
        return learns_to_see and self.episodes >= settings.seeing

    def _begin_practice(self) -> None:
        """Go on with a learner that leaves the encoder as it is; with a critic, with the policy of the beginning."""
        updates = self.learner.updates
        self.learner = self._make_learner()
        self.learner.updates = updates
        if self.learner.critic is not None and not self.config.tune:
            beginner = _make_agent(self.config, self.agent.stages)
            self.agent.levels[self.level].load_state_dict(beginner.levels[self.level].state_dict())
            self.curriculum.forget()
            self.hard = HardGames()

    @property
    def phase(self) -> str:
        return PRACTICE if self.practising else self.curriculum.phase

    def turn(self) -> Metrics:
        """Play a batch of games and learn from it."""
        begin, busy = perf_counter(), process_time()
        if self.episodes == 0:
            self._start_level()
        count = self.config.games
        tasks, seeds, again = self._choose_games()
        epsilon, phase, practised, guided = self.epsilon, self.phase, self.practising, self.guided
        with self.timer("play"), self._doubting():
            episodes = self._runner.play(tasks, seeds, self.level, epsilon, top_grammar=guided)
        self.episodes += count
        new = episodes[again:]
        self.hard.note(tasks, seeds, episodes, again)
        steps = sum(episode.steps for episode in episodes)
        self.steps += steps
        switched = self._record(tasks, episodes, again)
        if switched:
            self.phase_began = self.episodes
        with self.timer("learn"):
            before = max(self.episodes - count - self.phase_began, 0)
            statistics = self.learner.learn(episodes, self.rng, before, self.curriculum.failing())
        windows = self.windows
        if self.practising and not practised:
            self._begin_practice()
            self.phase_began = self.episodes
        seconds = perf_counter() - begin
        self._fresh_steps, self._fresh_episodes = self._fresh_steps + steps, self._fresh_episodes + count
        self._fresh_seconds += seconds
        return {
            "event": "turn",
            "level": self.stage.level,
            "phase": phase,
            "episodes": self.episodes,
            "steps": self.steps,
            "steps of turn": steps,
            "updates": self.learner.updates,
            "reward": float(np.mean([episode.rewards[-1] for episode in new])),
            "success": float(np.mean([episode.success for episode in new])),
            **({"success of hard games": np.mean([episode.success for episode in episodes[:again]])} if again else {}),
            "windows": windows,
            "epsilon": epsilon,
            **({"guided": guided} if self._grammar else {}),
            "not executable": _share(episodes, "refusals", "calls"),
            "length": float(np.mean([len(episode) for episode in new])),
            "novel phase begins": switched,
            **statistics,
            "seconds": seconds,
            "core seconds": process_time() - busy,
        }

    def _start_level(self) -> None:
        """What a level is given before the first game of its stage; a flat policy learns new words, too."""
        settings = self.config.level
        if self.config.tune:
            return  # it goes on with what it has
        if settings.inherit and self.level > 0:
            self.agent.inherit(self.level)
        if settings.silent and not self.terminal:
            self.agent.levels[self.level].trunk.silence(len(self.stage.base.skills))

    def _choose_games(self) -> tuple[list[Instruction], list[int], int]:
        """Tasks and seeds of a turn's games; the first of them, so many, went badly before."""
        count = self.config.games
        tasks = [self.curriculum.draw(self.rng) for _ in range(count)]
        numbers = np.arange(self.episodes, self.episodes + count)
        seeds = mix(mix(self.config.seed, self.stage.level), numbers).tolist()
        share = self.config.level.again
        if self.terminal:
            share = self.config.terminal.again if self.practising else 0.0
        once_more = self.hard.draw(int(share * count), self.rng)
        for place, (task, seed) in enumerate(once_more):
            tasks[place], seeds[place] = task, seed
        return tasks, seeds, len(once_more)

    def _record(self, tasks: list[Instruction], episodes: list[Episode], again: int) -> bool:
        """Count into the curriculum's windows and, the positive ones, into the grammar; so many are played again."""
        grammar, switched = self._grammar, False
        for number, (task, episode) in enumerate(zip(tasks, episodes, strict=True)):
            if number >= again:
                switched |= self.curriculum.record(task, float(episode.rewards[-1]))
            decisions = episode.decisions
            if episode.success and grammar and decisions.switch is not None and decisions.instruction is not None:
                grammar.update(episode.task, grammar.states(decisions.switch, decisions.instruction))
        return switched

    @property
    def steps_per_second(self) -> float:
        """Of this stage, since it was begun or resumed."""
        return self._fresh_steps / self._fresh_seconds if self._fresh_seconds else 0.0

    @property
    def seconds_left(self) -> float:
        """Until the stage has taken all its episodes, by what they took so far."""
        left = max(self.most_episodes - self.episodes, 0)
        return left * self._fresh_seconds / self._fresh_episodes if self._fresh_episodes else 0.0

    @property
    def windows(self) -> dict[str, float]:
        shares = {skill: self.curriculum.success(skill) for skill in self.stage.tasks.skills}
        return {skill: share for skill, share in shares.items() if share is not None}

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on as if nothing had happened."""
        return {
            "episodes": self.episodes,
            "steps": self.steps,
            "phase_began": self.phase_began,
            "rng": self.rng.bit_generator.state,
            "curriculum": self.curriculum.state(),
            "hard": self.hard.state(),
            "learner": self.learner.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.episodes, self.steps, self.phase_began = state["episodes"], state["steps"], state["phase_began"]
        self.rng.bit_generator.state = state["rng"]
        self.curriculum.load_state(state["curriculum"])
        self.hard.load_state(state.get("hard", state.get("lost", [])))  # they were the lost ones alone
        if self.practising:
            self.learner = self._make_learner()
        self.learner.load_state(state["learner"])


def _share(episodes: list[Episode], part: str, whole: str) -> float:
    total = sum(getattr(episode, whole) for episode in episodes)
    return sum(getattr(episode, part) for episode in episodes) / total if total else 0.0


class Trainer:
    """A whole run: all stages of a ladder, each on top of the finished ones."""

    def __init__(self, config: TrainConfig, agent: Agent | None = None, first_stage: int = 0) -> None:
        """With an `agent`, what it learned before the first stage is taken as it is."""
        self.config = config
        self.timer = Timer("training")
        self.world = make_world(config.world_name, config.world(), config.games, server=config.server)
        if agent is None:
            stages = config.make_stages()
            agent = _make_agent(config, stages[:1] if config.flat else stages)
        self.agent = agent
        self.stages = config.make_stages() if config.flat else agent.stages
        self.turns_taken, self.finished = 0, False
        self._begin(first_stage)

    def _begin(self, number: int) -> None:
        stage = self.stages[number]
        if self.config.flat:
            self.agent = flat_agent(self.agent, stage.tasks, self.config.seed)
        self.stage = StageTrainer(self.config, self.agent, stage, self.world, self.timer)

    @property
    def number(self) -> int:
        """Of the stage that is learned now."""
        return self.stage.stage.level

    @property
    def total_episodes(self) -> int:
        """Of all stages of this run."""
        return self.turns_taken * self.config.games

    def turns(self) -> Iterator[Metrics]:
        """Learn, one batch of games at a time, until the top stage is finished."""
        while not self.finished:
            if self.stage.finished:
                yield self._move_on()
            else:
                self.turns_taken += 1
                yield self.stage.turn()

    def _move_on(self) -> Metrics:
        """The stage is learned: begin the next one, if there is one."""
        event = {"event": "stage learned", "level": self.number, "episodes": self.stage.episodes}
        if self.number + 1 == len(self.stages):
            self.finished = True
        else:
            self._begin(self.number + 1)
        return event

    @property
    def learned(self) -> Agent:
        """What is worth keeping: all finished levels, and the one that is learned now if it has begun."""
        if self.config.flat:
            return self.agent
        begun = self.stage.episodes > 0 or self.number == 0 or self.config.tune
        return self.agent.truncated(self.number if begun else self.number - 1)

    def progress(self) -> Progress:
        stage = self.stage
        return Progress(
            level=self.number,
            num_levels=len(self.stages),
            stage=", ".join(stage.stage.novel.skills),
            phase=stage.phase,
            episodes=stage.episodes,
            most_episodes=stage.most_episodes,
            success=stage.windows,
            steps_per_second=stage.steps_per_second,
            seconds_left=stage.seconds_left,
        )

    def state(self) -> dict[str, Any]:
        """The whole run, for a checkpoint."""
        return {
            "turns": self.turns_taken,
            "finished": self.finished,
            "stages": stages_to_words(self.agent.stages),
            "level": self.number,
            "weights": {name: dict(module.state_dict()) for name, module in _modules(self.agent).items()},
            "grammars": [None if grammar is None else grammar.to_json() for grammar in self.agent.grammars],
            "stage": self.stage.state(),
        }

    @classmethod
    def from_state(cls, config: TrainConfig, state: Mapping[str, Any]) -> Trainer:
        """The run as it was when its state was taken."""
        agent = _make_agent(config, stages_from_words(state["stages"]))
        for name, module in _modules(agent).items():
            module.load_state_dict(state["weights"][name])
        for level, grammar in enumerate(state["grammars"]):
            agent.grammars[level] = None if grammar is None else Grammar.from_json(grammar)
        trainer = cls(config, agent, state["level"])
        trainer.turns_taken, trainer.finished = state["turns"], state["finished"]
        trainer.stage.load_state(state["stage"])
        return trainer


def _make_agent(config: TrainConfig, stages: tuple[Stage, ...]) -> Agent:
    return Agent.create(
        config.world().description,
        stages,
        shared_encoder=config.encoder != "own",
        gated=config.fusion == "gate",
        lstm=config.lstm,
        seed=config.seed,
        smoothing=config.level.smoothing,
    )


def count_parameters(config: TrainConfig) -> int:
    """Of all levels that a run from nothing comes to have, or of its one flat policy for all tasks, with encoders."""
    stages = config.make_stages()
    if config.flat:
        stages = (Stage(0, TaskSet(), stages[-1].tasks),)
    with torch.device("meta"):  # shapes alone
        agent = _make_agent(config, stages)
    return sum(parameter.numel() for module in _modules(agent).values() for parameter in module.parameters())


def _modules(agent: Agent) -> dict[str, nn.Module]:
    """All networks of an agent, by name."""
    levels: dict[str, nn.Module] = {f"level {number}": level for number, level in enumerate(agent.levels)}
    return {**levels, **{f"encoder {number}": encoder for number, encoder in enumerate(agent.encoders)}}
