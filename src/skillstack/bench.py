"""Speed on this machine: the world, and playing and learning relative to the bare network passes that they need."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Literal

import gymnasium
import numpy as np
import torch

import skillstack
from skillstack.instructions import COLOURS, SKILLS, Instruction, TaskArray, add_stage, make_stages
from skillstack.learning.config import PRESETS
from skillstack.learning.learner import A2CLearner
from skillstack.learning.replay import Batch
from skillstack.learning.trainer import Trainer
from skillstack.policies.agent import Agent
from skillstack.policies.encoder import LstmState
from skillstack.rollout.player import AgentPlayer, Proposal
from skillstack.rollout.runner import Runner, RunnerConfig
from skillstack.timing import Timer, Timing
from skillstack.worlds.rooms import ACTIONS, RoomsConfig, RoomsWorld
from skillstack.worlds.world import Frames, IntArray

WORLD_ID = "skillstack/Rooms-v0"
RATIO_GOAL = 0.7
"""What the runner should reach of the speed of the bare forward passes, and learning of the passes both ways."""


@dataclass(frozen=True)
class WorldSpeed:
    """Steps a second of the vector environment, rendering and resets included."""

    num_envs: int
    randomise: bool
    steps_per_second: float
    warm_up_seconds: float
    """Making the world, compiling and drawing the first frame."""


@dataclass(frozen=True)
class RunnerSpeed:
    """Primitive steps a second of the runner, beside the bare forward passes of the same frames and decisions."""

    levels: int
    items: int
    shared_encoder: bool
    steps_per_second: float
    microseconds_per_step: float
    ratio: float
    """Time of the bare forward passes over time of the runner: 1 if nothing else took any."""
    timing: Timing


@dataclass(frozen=True)
class LearningSpeed:
    """Decisions trained a second, beside the bare forward and backward passes of the same batches."""

    encoder: str
    decisions_per_second: float
    ratio: float
    """Time of the bare passes over time of learning: 1 if nothing else took any."""


def measure_world(num_envs: int, randomise: bool = False, seconds: float = 1.0, runs: int = 5) -> WorldSpeed:
    """Random actions in the vector environment; the median of several runs."""
    assert skillstack.__version__, "importing the package registers the world"
    begin = perf_counter()
    env = gymnasium.make_vec(WORLD_ID, num_envs, vectorization_mode="vector_entry_point", randomise=randomise)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(len(ACTIONS), size=(256, num_envs))
    env.step(actions[0])
    warm_up = perf_counter() - begin
    rates = []
    for _ in range(runs):
        begin, steps = perf_counter(), 0
        while perf_counter() - begin < seconds / runs:
            env.step(actions[steps % len(actions)])
            steps += 1
        rates.append(steps * num_envs / (perf_counter() - begin))
    return WorldSpeed(num_envs, randomise, median(rates), warm_up)


FIRST_FRAME = """
from time import perf_counter
begin = perf_counter()
import gymnasium, skillstack
gymnasium.make("skillstack/Rooms-v0").reset(seed=0)
print(perf_counter() - begin)
"""


def measure_first_frame() -> tuple[float, float]:
    """Seconds from the first import to the first frame: with an empty compiler cache, and with that cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", FIRST_FRAME]
        cold, warm = (
            float(subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout)
            for _ in range(2)
        )
    return cold, warm


def measure_runner(
    levels: int = 4,
    items: int = 6,
    shared_encoder: bool = True,
    num_games: int = 64,
    episodes: int = 256,
    runs: int = 3,
) -> RunnerSpeed:
    """Games of an untrained agent, without the penalty so that plans get deep; the run of median ratio."""
    words = COLOURS if items == len(COLOURS) else tuple(f"item{number}" for number in range(items))
    world = RoomsWorld(RoomsConfig(items=words, penalty=False), num_games)
    agent = Agent.create(world.description, _ladder(levels, words), shared_encoder=shared_encoder)
    tasks = agent.stages[-1].tasks.tasks
    games = [tasks[number % len(tasks)] for number in range(episodes)]
    results = [_measure_once(world, agent, games, run) for run in range(runs + 1)][1:]  # the first one warms up
    return sorted(results, key=lambda result: result.ratio)[len(results) // 2]


def _measure_once(world: RoomsWorld, agent: Agent, games: list[Instruction], run: int) -> RunnerSpeed:
    player, timer = _CountingPlayer(agent), Timer("runner")
    runner = Runner(world, player, RunnerConfig(), timer=timer)
    with timer("play"):
        episodes = runner.play(games, range(run * len(games), (run + 1) * len(games)))
    seconds = timer.seconds("play")
    steps = sum(episode.steps for episode in episodes)
    return RunnerSpeed(
        levels=agent.num_levels,
        items=len(agent.vocabulary.items),
        shared_encoder=agent.shared_encoder,
        steps_per_second=steps / seconds,
        microseconds_per_step=1e6 * seconds / steps,
        ratio=_bare_seconds(agent, player) / seconds,
        timing=timer.root.parts["play"],
    )


def _ladder(levels: int, items: tuple[str, ...]) -> tuple[skillstack.Stage, ...]:
    """A ladder of any height: the world has four skills, so higher ladders learn one colour's skills at a time."""
    more = levels - len(SKILLS)
    if more <= 0:
        return make_stages(SKILLS[:levels], items)
    stages = make_stages(SKILLS, items[:-more])
    for item in items[-more:]:
        stages = add_stage(stages, items=[*stages[-1].tasks.items, item])
    return stages


class _CountingPlayer(AgentPlayer):
    """An agent that notes which forward passes it was asked for."""

    def set_up(self, num_slots: int) -> None:
        super().set_up(num_slots)
        self.looks: list[int] = []
        self.proposals: list[tuple[int, int]] = []

    def look(self, slots: IntArray, frames: Frames) -> None:
        self.looks.append(len(slots))
        super().look(slots, frames)

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        self.proposals.append((level, len(slots)))
        return super().propose(level, slots, tasks)


@torch.inference_mode()
def _bare_seconds(agent: Agent, player: _CountingPlayer) -> float:
    """The same forward passes, of the same sizes and in the same order, with nothing around them."""
    most = max(player.looks)
    frames = torch.randint(0, 256, (most, *agent.world.image_shape), dtype=torch.uint8)
    features = agent.encoder_of(0)(frames)
    tasks, state = torch.zeros((most, 2), dtype=torch.int64), LstmState.zeros(most)
    begin = perf_counter()
    if agent.shared_encoder:
        for count in player.looks:
            agent.encoder_of(0)(frames[:count])
    for level, count in player.proposals:
        seen = features[:count] if agent.shared_encoder else agent.encoder_of(level)(frames[:count])
        agent.levels[level].step(seen, tasks[:count], LstmState(state.hidden[:count], state.cell[:count]))
    return perf_counter() - begin


def measure_learning(encoder: Literal["own", "frozen"], updates: int = 200, games: int = 64) -> LearningSpeed:
    """Updates of a level of two by the paper's A2C, each followed by the bare passes of a batch of the same size."""
    config = replace(PRESETS["paper"], stages="find, get", encoder=encoder, games=games, threads=1)
    trainer = Trainer(config, first_stage=1)
    trainer.stage.turn()  # fills the replay, and warms up
    learner, failing, rng = trainer.stage.learner, trainer.stage.curriculum.failing(), np.random.default_rng(0)
    assert isinstance(learner, A2CLearner), "levels above pi_0 learn by A2C"
    learning = bare = decisions = 0.0
    for _ in range(updates):
        before = rng.bit_generator.state
        begin = perf_counter()
        learner.update(rng, failing)
        learning += perf_counter() - begin
        rng.bit_generator.state = before
        batch = learner.replay.batch(learner.replay.draw(rng, learner.config.batch))
        decisions += float(batch.decisions.mask.sum())
        bare += _bare_update_seconds(learner, batch)
    return LearningSpeed(encoder, decisions / learning, bare / learning)


def _bare_update_seconds(learner: A2CLearner, batch: Batch) -> float:
    """Forward and backward through the same networks, with the plainest of losses and nothing around it."""
    seen = learner.replay.states(batch.rows)
    ready = torch.from_numpy(learner.render(seen)) if learner.train_encoder else torch.from_numpy(seen).float()
    begin = perf_counter()
    features = learner.encoder(ready) if learner.train_encoder else ready
    output = learner.policy.unroll(features, batch.tasks, batch.there)
    torch.stack([part.sum() for part in output]).sum().backward()  # type: ignore[no-untyped-call]
    seconds = perf_counter() - begin
    learner.optimizer.zero_grad(set_to_none=True)
    return seconds
