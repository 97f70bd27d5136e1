"""Stable-Baselines3 contrib's RecurrentPPO on our Gymnasium environment: the peer of `learning.py`.

Runs in an environment of its own (the extra `bench`, with our sources on its path), is told its terms as one line of
JSON on standard input, and prints one line of JSON. What both learners share stands here too: the terms, and the race.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

PEER = "RecurrentPPO"
NOTE_SECONDS = 5.0
"""How often a point of the curve is noted."""
NO_END = 10**12
"""Frames; the race ends earlier."""


@dataclass(frozen=True)
class PeerConfig:
    """RecurrentPPO's settings. A field without a remark is SB3's default; none was tuned beyond what is said here."""

    n_steps: int = 32
    """Steps of each game between updates: with 64 games about as many frames as 64 whole games have; the default of 128
    is for a few games at once."""
    batch_size: int = 256
    """Frames in a mini-batch; twice the default, as there are many games at once."""
    n_epochs: int = 4
    """Passes over the frames, as usual with pictures; with the default of 10 a frame costs more than twice the time."""
    learning_rate: float = 3e-4
    gamma: float = 0.95
    """Ours."""
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.01
    """Usual with pictures; the default is none. Ours has a bonus of the same weight that keeps choices even."""
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    fusion: Literal["concatenate", "gate"] = "concatenate"
    """How words and pictures meet: the paper's concatenation, or the gate of our network."""


@dataclass(frozen=True)
class Terms:
    """What both learners have in common."""

    world: dict[str, Any]
    """Of `RoomsConfig`, as JSON."""
    stages: str
    """Skills in their order; the first stage is learned."""
    max_steps: int
    """Of a game."""
    games: int
    """At once."""
    window: int
    """Success is the share of the last so many games of each task."""
    target: float
    minutes: float
    frames: int
    """The race ends unfinished after so many minutes or frames."""
    threads: int
    seed: int
    peer: dict[str, Any] = field(default_factory=dict)
    """Of `PeerConfig`, for the peer alone."""


@dataclass(frozen=True)
class Point:
    """How far a learner was at some moment."""

    seconds: float
    frames: int
    games: int
    success: float


@dataclass(frozen=True)
class Result:
    """How a learner did; the one line that it prints."""

    name: str
    reached: bool
    """Whether it came to the target before the race was broken off."""
    seconds: float
    """Of playing and learning. Imports and compiling are not in it."""
    frames: int
    games: int
    success: float
    """The share of successes at the end."""
    set_up_seconds: float
    parameters: int
    versions: dict[str, str]
    curve: list[Point]


class Race:
    """Counts games and frames of one learner until the target or the end."""

    def __init__(self, terms: Terms, games: Any) -> None:
        """`games` is the `Curriculum` that the learner's games are recorded in, the same code for both."""
        self.terms, self._games = terms, games
        self.frames = self.games = 0
        self.curve: list[Point] = []
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._begin = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin

    @property
    def success(self) -> float:
        """Over the last games of each task."""
        return float(np.mean([self._games.success(skill) or 0.0 for skill in self._games.stage.tasks.skills]))

    @property
    def reached(self) -> bool:
        return self._games.all_windows_full() and self.success >= self.terms.target

    @property
    def over(self) -> bool:
        return self.reached or self.seconds >= 60 * self.terms.minutes or self.frames >= self.terms.frames

    def count(self, frames: int, games: int) -> None:
        """So many there were by now, all together; from time to time this is a point of the curve."""
        self.frames, self.games = frames, games
        if not self.curve or self.seconds - self.curve[-1].seconds >= NOTE_SECONDS:
            self.curve.append(Point(self.seconds, frames, games, self.success))

    def result(self, name: str, set_up_seconds: float, parameters: int, versions: dict[str, str]) -> Result:
        end = Point(self.seconds, self.frames, self.games, self.success)
        return Result(name, self.reached, *asdict(end).values(), set_up_seconds, parameters, versions, self.curve)


def warm_up(terms: Terms) -> None:
    """Compile what our world needs, so that neither learner waits for it."""
    env = make_env(terms)
    env.reset(seed=0)
    env.step(np.zeros(terms.games, dtype=np.int64))


def make_env(terms: Terms) -> Any:
    """Our vector environment on these terms; a game that has ended starts anew in the same step, as SB3 wants it."""
    import gymnasium
    from gymnasium.vector import AutoresetMode

    from skillstack import make_stages
    from skillstack.worlds.rooms import RoomsConfig

    config = RoomsConfig.from_json(terms.world)
    return gymnasium.make_vec(
        "skillstack/Rooms-v0",
        num_envs=terms.games,
        vectorization_mode="vector_entry_point",
        task=list(make_stages(terms.stages, config.items)[0].tasks),
        max_steps=terms.max_steps,
        autoreset_mode=AutoresetMode.SAME_STEP,
        **vars(config),
    )


def adapt(env: Any, seed: int) -> Any:
    """Our vector environment as SB3 knows them: it has a class of its own for many games at once."""
    from stable_baselines3.common.vec_env import VecEnv

    class Adapted(VecEnv):
        def __init__(self) -> None:
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
            self.ended: list[tuple[str, bool]] = []  # task and success of the games that the last step ended

        def reset(self) -> Any:
            return env.reset(seed=seed)[0]

        def step_async(self, actions: Any) -> None:
            self._actions = actions

        def step_wait(self) -> Any:
            observation, reward, terminated, truncated, found = env.step(self._actions)
            done = terminated | truncated
            infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            self.ended = []
            for game in np.flatnonzero(done):
                self.ended.append((found["final_info"]["task"][game], bool(terminated[game])))
                infos[game] = {
                    "terminal_observation": found["final_obs"][game],
                    "TimeLimit.truncated": bool(truncated[game]),
                }
            return observation, reward, done, infos

        def close(self) -> None:
            env.close()

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(env, attr_name, None)] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise NotImplementedError

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            raise NotImplementedError

    return Adapted()


def make_extractor() -> type:
    """Our network up to its LSTM, as SB3's features extractor; SB3 starts its layers orthogonal, as we do."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import Tensor

    from skillstack.policies.encoder import FUSED_SIZE, Gate, InstructionEncoder, VisualEncoder

    class Extractor(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any, image_shape: tuple[int, int, int], gated: bool) -> None:
            super().__init__(observation_space, FUSED_SIZE)
            self.counts = observation_space["instruction"].nvec.tolist()  # of skills and items
            self.visual = VisualEncoder(image_shape, gated=gated)
            self.gate = Gate(image_shape) if gated else None
            self.instruction = InstructionEncoder(*self.counts)

        def forward(self, observation: dict[str, Tensor]) -> Tensor:
            # SB3 puts channels first and gives words as ones and zeros; our encoders want channels last and numbers.
            seen = self.visual(observation["image"].permute(0, 2, 3, 1))
            numbers = [ones.argmax(dim=-1) for ones in observation["instruction"].split(self.counts, dim=-1)]
            words = self.instruction(torch.stack(numbers, dim=-1))  # (n, 128)
            return torch.cat([seen if self.gate is None else self.gate(seen, words), words], dim=-1)  # (n, 384)

    return Extractor


def make_model(terms: Terms, env: Any) -> Any:
    """RecurrentPPO with the paper's sizes: one LSTM of 256 for both heads, and no layers between."""
    from sb3_contrib import RecurrentPPO

    from skillstack.policies.encoder import HIDDEN_SIZE

    settings = dict(terms.peer)
    gated = settings.pop("fusion") == "gate"
    shape = env.observation_space["image"].shape
    return RecurrentPPO(
        "MultiInputLstmPolicy",
        env,
        seed=terms.seed,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": make_extractor(),
            "features_extractor_kwargs": {"image_shape": shape, "gated": gated},
            "normalize_images": False,  # our encoder does it
            "net_arch": [],
            "lstm_hidden_size": HIDDEN_SIZE,
            "shared_lstm": True,
            "enable_critic_lstm": False,
        },
        **settings,
    )


def measure_peer(terms: Terms) -> Result:
    """Let RecurrentPPO learn until the race is over."""
    start = time.perf_counter()
    import sb3_contrib
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback

    from skillstack import Instruction, make_stages
    from skillstack.learning.curriculum import Curriculum

    torch.set_num_threads(terms.threads)
    warm_up(terms)
    stage = make_stages(terms.stages, terms.world["items"])[0]
    games = Curriculum(stage, threshold=1.0, window=terms.window)
    env = adapt(make_env(terms), terms.seed)
    model = make_model(terms, env)
    race = Race(terms, games)

    class Count(BaseCallback):
        def _on_step(self) -> bool:
            for task, success in env.ended:
                games.record(Instruction.parse(task, stage.tasks.vocabulary), float(success))
            race.count(self.num_timesteps, race.games + len(env.ended))
            return not race.over

    set_up = time.perf_counter() - start
    race.begin()
    model.learn(NO_END, callback=Count())
    parameters = sum(weights.numel() for weights in model.policy.parameters())
    modules = (torch, stable_baselines3, sb3_contrib)
    return race.result(PEER, set_up, parameters, {module.__name__: module.__version__ for module in modules})


def main() -> None:
    """Race on the terms that are given, or say in a sentence why not."""
    terms = Terms(**json.loads(sys.stdin.readline()))
    try:
        line: dict[str, Any] = asdict(measure_peer(terms))
    except ModuleNotFoundError as error:
        line = {"error": f"{error}: install the extra `bench` for this Python."}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
