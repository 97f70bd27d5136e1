"""The two-room world as Gymnasium environments, one game or many at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, TaskArray
from skillstack.randomness import mix
from skillstack.worlds.rooms.layout import RoomsConfig
from skillstack.worlds.rooms.looks import Randomisation
from skillstack.worlds.rooms.world import RoomsWorld
from skillstack.worlds.world import Frames, IntArray, Limits

Observation = dict[str, npt.NDArray[Any]]
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10, "autoreset_mode": AutoresetMode.NEXT_STEP}


class RoomsEnv(gymnasium.Env[Observation, np.int64]):
    """One game: `gymnasium.make("skillstack/Rooms-v0", task="stack blue")`.

    `task` is an instruction, a list of them to draw from, or None for all. Other keywords are the fields of
    `RoomsConfig`; `randomise=True` is short for the usual randomisation.
    """

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        task: str | Instruction | Sequence[str | Instruction] | None = None,
        max_steps: int = Limits.episode,
        render_mode: str | None = None,
        **config: Any,
    ) -> None:
        self._games = _Games(1, task, max_steps, render_mode, config)
        self.world = self._games.world
        self.render_mode = render_mode
        self.observation_space = self._games.observation_space
        self.action_space = spaces.Discrete(len(self.world.description.actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self._games.seed([seed], self.np_random)
        self._games.start(np.array([0]))
        return self._first(self._games.observe()), self._info(success=False)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        reward, terminated, truncated = self._games.step(np.array([action]))
        done = bool(terminated[0])
        return self._first(self._games.observe()), float(reward[0]), done, bool(truncated[0]), self._info(success=done)

    def render(self) -> npt.NDArray[np.uint8] | None:
        """The egocentric view."""
        return None if self.render_mode is None else self.world.observe()[0]

    def map_picture(self, size: int = 336) -> npt.NDArray[np.uint8]:
        """The room from above, some `size` pixels high."""
        return self.world.map_picture(0, size)

    def _first(self, observation: Observation) -> Observation:
        return {name: values[0] for name, values in observation.items()}

    def _info(self, success: bool) -> dict[str, Any]:
        return {"task": self._games.names()[0], "success": success}


class RoomsVectorEnv(VectorEnv[Observation, IntArray, npt.NDArray[Any]]):
    """Many games in one call: `gymnasium.make_vec("skillstack/Rooms-v0", 64, vectorization_mode="vector_entry_point")`.

    Game i, seeded with `seed`, is the game of a `RoomsEnv` seeded with `seed + i`. A game that has ended starts anew at
    the next step, whatever action is given for it (Gymnasium's `AutoresetMode.NEXT_STEP`), or at once with
    `AutoresetMode.SAME_STEP`: then the infos have its last observation and info under "final_obs" and "final_info".
    """

    metadata: dict[str, Any] = METADATA

    def __init__(
        self,
        num_envs: int = 1,
        task: str | Instruction | Sequence[str | Instruction] | None = None,
        max_steps: int = Limits.episode,
        render_mode: str | None = None,
        threads: int = 1,
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        **config: Any,
    ) -> None:
        if autoreset_mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
            raise SkillstackError("Games start anew at the next step or at the same step; they cannot be left ended.")
        self.metadata = {**METADATA, "autoreset_mode": autoreset_mode}
        self._games = _Games(num_envs, task, max_steps, render_mode, config, threads)
        self.world = self._games.world
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = self._games.observation_space
        self.single_action_space = spaces.Discrete(len(self.world.description.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        first = seed if isinstance(seed, int) or seed is None else seed[0]
        super().reset(seed=first)
        count = range(self.num_envs)
        seeds = [None if seed is None else seed + i for i in count] if isinstance(seed, int | None) else list(seed)
        self._games.seed(seeds, self.np_random)
        self._games.start(np.arange(self.num_envs))
        self._ended[:] = False
        return self._games.observe(), self._infos(success=self._ended.copy())

    def step(
        self, actions: IntArray
    ) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        ended = self._ended
        reward, terminated, truncated = self._games.step(actions, skip=ended)
        if ended.any():
            self._games.start(np.flatnonzero(ended))
        done = terminated | truncated
        if self.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP:
            self._ended = done
            return self._games.observe(), reward, terminated, truncated, self._infos(success=terminated.copy())
        final = self._start_anew(done, terminated) if done.any() else {}
        infos = {**final, **self._infos(success=np.zeros_like(done))}
        return self._games.observe(), reward, terminated, truncated, infos

    def _start_anew(self, done: npt.NDArray[np.bool_], success: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Start the games that are done; how each of them ended, as Gymnasium batches it."""
        last, names = self._games.observe(), self._games.names()
        observations = np.full(self.num_envs, None, dtype=object)
        for game in np.flatnonzero(done):
            observations[game] = {name: values[game] for name, values in last.items()}
        names[~done] = None
        info = {"task": names, "_task": done.copy(), "success": success & done, "_success": done.copy()}
        self._games.start(np.flatnonzero(done))
        return {"final_obs": observations, "_final_obs": done.copy(), "final_info": info, "_final_info": done.copy()}

    def render(self) -> tuple[npt.NDArray[np.uint8], ...] | None:
        """The egocentric views."""
        return None if self.render_mode is None else tuple(self.world.observe())

    def _infos(self, success: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """The games' infos as Gymnasium batches them: with each key a mask of the games that have it, here all."""
        infos = {"task": self._games.names(), "success": success}
        return infos | {f"_{key}": np.ones(self.num_envs, dtype=np.bool_) for key in infos}


class _Games:
    """What the single and the vector environment share: tasks, seeds, step limits and rewards of a batch of games."""

    def __init__(
        self,
        num_games: int,
        task: str | Instruction | Sequence[str | Instruction] | None,
        max_steps: int,
        render_mode: str | None,
        config: dict[str, Any],
        threads: int = 1,
    ) -> None:
        if render_mode not in (None, *METADATA["render_modes"]):
            raise SkillstackError(f'Unknown render mode "{render_mode}". Known: {", ".join(METADATA["render_modes"])}.')
        self.max_steps = Limits(episode=max_steps).episode
        self.world = RoomsWorld(make_config(**config), num_games, threads)
        vocabulary = self.world.description.vocabulary
        texts = [task] if isinstance(task, str | Instruction) else task
        chosen = vocabulary.tasks if texts is None else [Instruction.parse(str(text), vocabulary) for text in texts]
        if not chosen:
            raise SkillstackError("Give at least one task, or None for all of them.")
        self._choices: TaskArray = vocabulary.encode(chosen)
        words = [str(instruction) for instruction in vocabulary.tasks]
        self._names = np.array(words, dtype=object).reshape(len(vocabulary.skills), len(vocabulary.items))
        self._tasks = np.zeros((num_games, 2), dtype=np.int64)
        self._steps = np.zeros(num_games, dtype=np.int64)
        self._streams = np.zeros(num_games, dtype=np.uint64)  # each game's own sequence of seeds
        self._played = np.zeros(num_games, dtype=np.uint64)
        self._seeded = False

    @property
    def observation_space(self) -> spaces.Space[Any]:
        vocabulary, shape = self.world.description.vocabulary, self.world.description.image_shape
        return spaces.Dict(
            {
                "image": spaces.Box(0, 255, shape, np.uint8),
                "instruction": spaces.MultiDiscrete([len(vocabulary.skills), len(vocabulary.items)]),
            }
        )

    def names(self) -> npt.NDArray[np.object_]:
        """Each game's task in words."""
        return self._names[self._tasks[:, 0], self._tasks[:, 1]]

    def seed(self, seeds: Sequence[int | None], fresh: np.random.Generator) -> None:
        """Begin new sequences of games where there is a seed, and where there never was one."""
        if len(seeds) != self.world.num_games:
            raise SkillstackError(f"There must be one seed for each of {self.world.num_games} games, not {len(seeds)}.")
        for game, seed in enumerate(seeds):
            if seed is not None or not self._seeded:
                self._streams[game] = fresh.integers(2**63) if seed is None else seed % 2**64
                self._played[game] = 0
        self._seeded = True

    def start(self, games: IntArray) -> None:
        seeds = mix(self._streams[games], self._played[games])
        self._played[games] += np.uint64(1)
        self._steps[games] = 0
        self._tasks[games] = self._choices[(seeds % np.uint64(len(self._choices))).astype(np.int64)]
        self.world.reset(self._tasks[games], seeds, games)

    def step(
        self, actions: IntArray, skip: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Rewards, achieved, out of time; nothing of the kind in the games to skip."""
        playing = np.ones(self.world.num_games, dtype=np.bool_) if skip is None else ~skip
        self.world.step(actions)  # games to skip are about to be replaced, so acting in them does no harm
        self._steps += 1
        achieved = self.world.achieved(self._tasks) & playing
        late = (self._steps >= self.max_steps) & ~achieved & playing
        return self.world.rewards.of(achieved, np.zeros_like(achieved)), achieved, late

    def observe(self) -> dict[str, Frames | TaskArray]:
        return {"image": self.world.observe(), "instruction": self._tasks.copy()}


def make_config(randomise: bool | Randomisation | None = None, **fields: Any) -> RoomsConfig:
    """A `RoomsConfig` from keywords, with a clear error for one that does not exist."""
    unknown_fields = set(fields) - set(RoomsConfig.__dataclass_fields__)
    if unknown_fields:
        raise SkillstackError(
            f'The world has no setting "{min(unknown_fields)}". Its settings are: '
            f"{', '.join(RoomsConfig.__dataclass_fields__)}."
        )
    if isinstance(randomise, bool):
        randomise = Randomisation() if randomise else None
    if "items" in fields:
        fields["items"] = tuple(fields["items"])
    return RoomsConfig(randomise=randomise, **fields)
