"""The whole stack: policies pi_0 ... pi_K with their grammars (section 3), saved as a folder and loaded back.

Nothing that is loaded can run code: weights are safetensors, all else is JSON. There is one file for each level, so
that a new level on top leaves the files of the lower ones byte for byte the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from skillstack import __version__
from skillstack.disk import write_folder
from skillstack.errors import SkillstackError
from skillstack.instructions import Stage, TaskSet, Vocabulary, add_stage, stages_from_words, stages_to_words
from skillstack.policies.encoder import HIDDEN_SIZE, Gate, VisualEncoder
from skillstack.policies.flat import FlatPolicy
from skillstack.policies.grammar import Grammar
from skillstack.policies.hierarchical import HierarchicalPolicy
from skillstack.worlds.world import WorldDescription

Level = FlatPolicy | HierarchicalPolicy

FORMAT = "skillstack-agent"
FORMAT_VERSION = 1
MANIFEST = "agent.json"
ENCODER_FILE = "encoder.safetensors"
DTYPES = {"float32": torch.float32, "float16": torch.float16}
"""What weights may be on disk; in memory they are always float32."""


@dataclass(eq=False)
class Agent:
    """Levels 0 to K. The top level runs every task by default, and any level can be run by itself.

    Tasks are given to every level in the word numbers of `vocabulary`, which need not be those of the world.
    """

    world: WorldDescription
    stages: tuple[Stage, ...]
    shared_encoder: bool
    """Whether all levels see through one visual encoder, or each through its own, as in the paper."""
    levels: list[Level]
    encoders: list[VisualEncoder]
    """One, or one a level; `encoder_of` knows which."""
    grammars: list[Grammar | None]
    """One a level; the terminal level has none."""
    gated: bool = False
    """Whether words gate what is seen, or stand beside it, as in the paper."""
    lstm: int = HIDDEN_SIZE
    """Hidden units of each level's LSTM."""

    @classmethod
    def create(
        cls,
        world: WorldDescription,
        stages: Sequence[Stage],
        *,
        shared_encoder: bool = False,
        gated: bool = False,
        lstm: int = HIDDEN_SIZE,
        seed: int = 0,
        smoothing: float = 0.0,
    ) -> Agent:
        """An agent that has learned nothing. A level's weights depend on the seed and the level, not on the others."""
        _check(world, stages)
        agent = cls(world, (), shared_encoder, [], [], [], gated, lstm)
        for stage in stages:
            agent = agent._with(stage, seed, smoothing)
        return agent

    @property
    def num_levels(self) -> int:
        return len(self.levels)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words the agent knows, in their order of acquisition; lower levels know the first of them."""
        return self.stages[-1].tasks.vocabulary

    def encoder_of(self, level: int) -> VisualEncoder:
        """What a level sees through. Levels with the same encoder have the same features of a frame: encode it once."""
        return self.encoders[0 if self.shared_encoder else level]

    def truncated(self, level: int) -> Agent:
        """The agent of the levels 0 to `level`, made of the same modules."""
        if not 0 <= level < self.num_levels:
            raise SkillstackError(f"The agent has the levels 0 to {self.num_levels - 1}, and no level {level}.")
        end = level + 1
        return replace(
            self,
            stages=self.stages[:end],
            levels=self.levels[:end],
            encoders=self.encoders[:end],
            grammars=self.grammars[:end],
        )

    def extended(
        self, skills: Sequence[str] = (), items: Sequence[str] = (), *, seed: int = 0, smoothing: float = 0.0
    ) -> Agent:
        """An agent with one more level on top, for new skills, new items or both; the lower modules are the same."""
        stages = add_stage(self.stages, skills, items)
        _check(self.world, stages)
        return self._with(stages[-1], seed, smoothing)

    def _with(self, stage: Stage, seed: int, smoothing: float) -> Agent:
        with seeded(seed, stage.level):
            gate = Gate(self.world.image_shape) if self.gated else None
            level = _make_level(stage, len(self.world.actions), gate, self.lstm)
            needs_encoder = not (self.shared_encoder and self.encoders)
            encoders = [VisualEncoder(self.world.image_shape, gated=self.gated)] if needs_encoder else []
        grammar = Grammar(stage.tasks, stage.base, smoothing) if stage.base else None
        return replace(
            self,
            stages=(*self.stages, stage),
            levels=[*self.levels, level],
            encoders=[*self.encoders, *encoders],
            grammars=[*self.grammars, grammar],
        )

    def inherit(self, level: int) -> None:
        """Let a new level start with what the one below has learned to see and to remember; its heads start anew."""
        self.levels[level].trunk.inherit(self.levels[level - 1].trunk)
        if not self.shared_encoder:
            self.encoder_of(level).load_state_dict(self.encoder_of(level - 1).state_dict())

    def save(self, path: str | os.PathLike[str], *, half: bool = False) -> None:
        """Write the agent as a folder, in place of an agent that is there, whole or not at all.

        `half` halves its size: float16, with about three digits of each weight.
        """
        folder = Path(path).resolve()
        try:
            _check_replaceable(folder)
            write_folder(folder, _files(self, half=half), ours=_OUR_FILES)
        except OSError as error:
            raise SkillstackError(
                f"The agent cannot be saved to {folder} ({error.strerror}); choose a folder that can be written."
            ) from error

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Agent:
        """The agent saved in a folder; whatever is wrong with the folder is said in one sentence."""
        folder = Path(path)
        try:
            _check_is_agent_folder(folder)
            return _Reader(folder).agent()
        except OSError as error:
            raise SkillstackError(
                f"{error.filename} cannot be read ({error.strerror}); give the folder of a saved agent that can."
            ) from error


# Making


def _check(world: WorldDescription, stages: Sequence[Stage]) -> None:
    """Whether the stages build on one another, in a world that knows their words."""
    if not world.actions:
        raise SkillstackError(f'The world "{world.name}" has no actions; an agent needs at least one.')
    if not stages:
        raise SkillstackError("An agent needs at least one stage.")
    base = TaskSet()
    for level, stage in enumerate(stages):
        if stage.level != level or stage.base != base or stage.tasks == base:
            raise SkillstackError(
                f"Stage {level} of an agent must have level {level}, build on the tasks below it, and add a task."
            )
        for task in stage.novel:
            world.vocabulary.check(task)
        base = stage.tasks


def _make_level(stage: Stage, num_actions: int, gate: Gate | None, hidden: int) -> Level:
    skills, items = len(stage.tasks.skills), len(stage.tasks.items)
    if not stage.base:
        return FlatPolicy(num_skills=skills, num_items=items, num_actions=num_actions, gate=gate, hidden=hidden)
    return HierarchicalPolicy(
        num_skills=skills,
        num_items=items,
        num_base_skills=len(stage.base.skills),
        num_base_items=len(stage.base.items),
        num_actions=num_actions,
        gate=gate,
        hidden=hidden,
    )


@contextmanager
def seeded(seed: int, level: int) -> Iterator[None]:
    """Draw from a generator of this seed and level inside, and leave PyTorch's own as it was.

    One thread makes the weights: how orthogonal ones are rounded depends on the number of threads.
    """
    if seed < 0:
        raise SkillstackError(f"A seed is a whole number from 0 upwards, not {seed}.")
    (state,) = np.random.SeedSequence((seed, level)).generate_state(1, np.uint64).tolist()
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(state)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


# Saving


def _level_file(level: int) -> str:
    return f"level_{level}.safetensors"


def _grammar_file(level: int) -> str:
    return f"grammar_{level}.json"


_OUR_FILES = re.compile(r"agent\.json|encoder\.safetensors|level_\d+\.safetensors|grammar_\d+\.json")


def _modules_of_files(agent: Agent) -> dict[str, nn.ModuleDict]:
    """Which modules' weights are in which file."""
    modules: dict[str, nn.ModuleDict] = {}
    for level, policy in enumerate(agent.levels):
        own: dict[str, nn.Module] = {} if agent.shared_encoder else {"encoder": agent.encoder_of(level)}
        modules[_level_file(level)] = nn.ModuleDict({**own, "policy": policy})
    if agent.shared_encoder:
        modules[ENCODER_FILE] = nn.ModuleDict({"encoder": agent.encoders[0]})
    return modules


def _files(agent: Agent, *, half: bool) -> dict[str, bytes]:
    """The contents of all files of an agent, the manifest last."""
    files = {name: _pack(modules, name, half=half) for name, modules in _modules_of_files(agent).items()}
    for level, grammar in enumerate(agent.grammars):
        if grammar is not None:
            files[_grammar_file(level)] = _to_json(grammar.to_json())
    files[MANIFEST] = _to_json(_manifest(agent, files, half=half))
    return files


def _pack(modules: nn.ModuleDict, name: str, *, half: bool) -> bytes:
    dtype = torch.float16 if half else torch.float32
    tensors = {key: tensor.to("cpu", dtype).contiguous() for key, tensor in modules.state_dict().items()}
    broken = _not_finite(tensors)
    if broken:
        raise SkillstackError(
            f"The agent was not saved, as {broken} of {name} is not finite{' in float16' if half else ''}; "
            f"save it {'in float32' if half else 'before learning diverges'}."
        )
    return safetensors.torch.save(tensors)


def _not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of a tensor with NaN or infinity in it."""
    return next((name for name, tensor in tensors.items() if not tensor.isfinite().all()), None)


def _to_json(data: object) -> bytes:
    return (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _checksum(manifest: Mapping[str, object]) -> str:
    """Of all the manifest's fields but the checksum itself, however they are laid out."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return _sha256(json.dumps(rest, sort_keys=True).encode())


def _manifest(agent: Agent, files: Mapping[str, bytes], *, half: bool) -> dict[str, object]:
    world = agent.world
    manifest: dict[str, object] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skillstack_version": __version__,
        "world": {
            "name": world.name,
            "skills": world.vocabulary.skills,
            "items": world.vocabulary.items,
            "actions": world.actions,
            "image_shape": world.image_shape,
        },
        "stages": stages_to_words(agent.stages),
        "shared_encoder": agent.shared_encoder,
        "gated": agent.gated,
        "lstm": agent.lstm,
        "weights": "float16" if half else "float32",
        "files": {name: _sha256(data) for name, data in files.items()},
    }
    return {**manifest, "checksum": _checksum(manifest)}


def _check_replaceable(folder: Path) -> None:
    """Only an agent, or an empty folder, may give way to an agent."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        manifest = None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise SkillstackError(f"{folder} is there already and is not an agent; save to a new folder, or move it away.")


# Loading


def _check_is_agent_folder(folder: Path) -> None:
    if folder.is_file():
        raise SkillstackError(f"{folder} is a file; give the folder of a saved agent.")
    if not folder.exists():
        raise SkillstackError(f"{folder} does not exist; give the folder of a saved agent.")
    if not (folder / MANIFEST).exists():
        raise SkillstackError(f"{folder} is not an agent, as it has no {MANIFEST}; give the folder of a saved agent.")


@dataclass(frozen=True)
class _Reader:
    """Reads a folder that may be damaged, foreign or newer, and trusts nothing in it."""

    folder: Path

    def agent(self) -> Agent:
        manifest = self._manifest()
        agent = self._empty_agent(manifest)
        dtype = DTYPES[self._field(manifest, "weights", " or ".join(DTYPES), lambda value: value in tuple(DTYPES))]
        hashes = self._field(manifest, "files", "an object", lambda value: isinstance(value, dict))
        for name, modules in _modules_of_files(agent).items():
            self._load_weights(modules, name, self._file(name, hashes), dtype)
        for stage in agent.stages[1:]:
            name = _grammar_file(stage.level)
            agent.grammars[stage.level] = self._grammar(stage, name, self._file(name, hashes))
        return agent

    def _manifest(self) -> dict[str, Any]:
        """The fields of agent.json, once it is known to be ours, of our version and undamaged."""
        manifest = self._json(MANIFEST, self._bytes(MANIFEST))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise SkillstackError(
                f'{self.folder} is not an agent, as its {MANIFEST} does not say "format": "{FORMAT}"; '
                "give the folder of a saved agent."
            )
        version = self._field(manifest, "format_version", "a whole number from 1", lambda v: type(v) is int and v >= 1)
        if version > FORMAT_VERSION:
            raise SkillstackError(
                f"The agent {self.folder} has format version {version}, and Skillstack {__version__} reads up to "
                f"{FORMAT_VERSION}; load it with a newer Skillstack."
            )
        if manifest.get("checksum") != _checksum(manifest):
            raise self._damaged(MANIFEST, "does not have its checksum")
        return manifest

    def _empty_agent(self, manifest: Mapping[str, Any]) -> Agent:
        """The agent that the manifest describes, without memory for its weights until they are known to fit."""
        shared_encoder, gated = (
            self._field(manifest, name, "true or false", lambda value: isinstance(value, bool))
            for name in ("shared_encoder", "gated")
        )
        world_fields = self._field(manifest, "world", "an object", lambda value: isinstance(value, dict))
        name = self._field(world_fields, "name", "a name", lambda value: isinstance(value, str))
        skills, items, actions = (
            tuple(self._field(world_fields, kind, "a list of words", _are_words))
            for kind in ("skills", "items", "actions")
        )
        shape = tuple(self._field(world_fields, "image_shape", "three numbers from 1 to 16384", _is_image_shape))
        tasks = self._field(manifest, "stages", "lists of tasks", _are_stages)
        # Agents of before had one size and did not say it.
        lstm = self._field({"lstm": HIDDEN_SIZE, **manifest}, "lstm", "a number from 1 to 16384", _is_size)
        try:
            world = WorldDescription(name, Vocabulary(skills, items), actions, shape)
            with torch.device("meta"):
                stages = stages_from_words(tasks)
                return Agent.create(world, stages, shared_encoder=shared_encoder, gated=gated, lstm=lstm)
        except SkillstackError as error:
            raise self._damaged(MANIFEST, f"describes what cannot be ({_first_sentence(error)})") from error

    def _field(self, fields: Mapping[str, Any], name: str, what: str, fits: Callable[[Any], bool]) -> Any:
        value = fields.get(name)
        if not fits(value):
            raise self._damaged(MANIFEST, f'does not have {what} for "{name}"')
        return value

    def _file(self, name: str, hashes: Mapping[str, Any]) -> bytes:
        """A file's bytes, if they are the ones that were saved. The names are ours, never the manifest's."""
        data = self._bytes(name)
        if hashes.get(name) != _sha256(data):
            raise self._damaged(name, f"does not have the SHA-256 that {MANIFEST} gives")
        return data

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except FileNotFoundError as error:
            raise SkillstackError(
                f"{name} is missing from the agent {self.folder}; copy the whole folder again, or save the agent again."
            ) from error

    def _json(self, name: str, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._damaged(name, "is not JSON") from error

    def _load_weights(self, modules: nn.ModuleDict, name: str, data: bytes, dtype: torch.dtype) -> None:
        try:
            tensors = safetensors.torch.load(data)
        except (SafetensorError, ValueError, KeyError) as error:
            raise self._damaged(name, "is not a safetensors file") from error
        self._check_tensors(name, tensors, modules.state_dict(), dtype)
        copies = {key: tensor.to(torch.float32, copy=True) for key, tensor in tensors.items()}
        modules.load_state_dict(copies, assign=True)

    def _check_tensors(
        self, name: str, tensors: Mapping[str, Tensor], expected: Mapping[str, Tensor], dtype: torch.dtype
    ) -> None:
        odd = min(tensors.keys() ^ expected.keys(), default=None)
        if odd is not None:
            raise self._mismatched(name, f"{'has' if odd in tensors else 'lacks'} a tensor {odd}")
        for key, tensor in tensors.items():
            shape, fitting = tuple(tensor.shape), tuple(expected[key].shape)
            if shape != fitting:
                raise self._mismatched(name, f"has {key} of shape {shape}, and {fitting} would fit")
            if tensor.dtype != dtype:
                raise self._mismatched(name, f"has {key} as {tensor.dtype}, and {dtype} would fit")
        broken = _not_finite(tensors)
        if broken:
            raise self._damaged(name, f"has NaN or infinity in {broken}")

    def _grammar(self, stage: Stage, name: str, data: bytes) -> Grammar:
        try:
            grammar = Grammar.from_json(self._json(name, data))
        except SkillstackError as error:
            raise self._damaged(name, f"is not a grammar ({_first_sentence(error)})") from error
        if (grammar.tasks, grammar.base) != (stage.tasks, stage.base):
            raise self._mismatched(name, f"is a grammar of other tasks than those of stage {stage.level}")
        return grammar

    def _damaged(self, name: str, what: str) -> SkillstackError:
        return SkillstackError(
            f"The agent {self.folder} is damaged, as {name} {what}; copy the whole folder again, or save it again."
        )

    def _mismatched(self, name: str, what: str) -> SkillstackError:
        return SkillstackError(
            f"{name} does not belong to the agent {self.folder}, as it {what}; take the file that was saved with it."
        )


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _are_stages(value: object) -> bool:
    return isinstance(value, list) and all(
        _are_words(tasks) and all(len(task.split()) == 2 for task in tasks) for tasks in value
    )


def _is_image_shape(value: object) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(_is_size(side) for side in value)


def _is_size(value: object) -> bool:
    return type(value) is int and 1 <= value <= 16384


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].rstrip(".")
