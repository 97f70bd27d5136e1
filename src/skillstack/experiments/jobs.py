"""What is trained and measured, each thing once however many experiments need it.

A job's name is its place under the folder of runs. It is finished when its last file is there, and a job that was
interrupted goes on from what it left.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import process_time
from typing import Any, Literal, Protocol

from rich.console import Console

from skillstack import __version__
from skillstack.disk import make_folder, remove_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.learning.checkpoint import Checkpoints
from skillstack.learning.config import A2CConfig, LevelConfig, PPOConfig, TrainConfig
from skillstack.learning.run_folder import AGENT_FOLDER, CHECKPOINTS_FOLDER, CONFIG_FILE, read_config, read_metrics
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.world import Limits

FINISHED_FILE = "finished.json"
"""In the folder of a run that came to its end: what it took."""

COST = ("episodes", "steps", "seconds")

KEPT_OF_TURNS = ("level", "phase", "episodes", "steps of turn", "reward", "success", "windows", "novel phase begins")
"""What a record has of each turn: enough to draw its curve, and to say when its skills were learned."""

SECONDS_PER_GAME = 0.02
"""Of an evaluation, as seen on one busy core; only for estimates before anything was measured."""


class Job(Protocol):
    """Something that takes long, and is done once."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The jobs that must be finished before."""
        ...

    @property
    def expected_seconds(self) -> float: ...

    @property
    def asked(self) -> dict[str, Any]:
        """What is to be done, as JSON has it."""
        ...

    def is_asked(self, asked: dict[str, Any]) -> bool:
        """Whether that is what is to be done."""
        ...

    @property
    def recorded(self) -> tuple[str, ...]:
        """What every record of it has."""
        ...

    def record(self, runs: Path) -> dict[str, Any]:
        """What is worth keeping of it once it is finished, as JSON has it."""
        ...

    def finished(self, runs: Path) -> bool: ...

    def share_done(self, runs: Path) -> float:
        """How much of it is done, from 0 to 1."""
        ...

    def check(self, runs: Path) -> None:
        """Refuse to go on with what was begun with other settings."""
        ...

    def run(self, runs: Path, console: Console) -> bool:
        """Do it, or go on with it; returns whether it came to its end."""
        ...


@dataclass(frozen=True)
class Start:
    """What training starts from."""

    job: str
    how: Literal["add", "flat", "fork"]
    """A new level on its agent; its agent's flat policy; or its state when its novel phase began."""
    skill: str = ""
    """What the new level brings."""


@dataclass(frozen=True)
class Training:
    """One run of Algorithm 2, for one stage, or for pi_0."""

    name: str
    config: TrainConfig
    start: Start | None = None
    kept: bool = False
    """Whether its agent is kept with its record, as other runs start from it."""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.start.job,) if self.start else ()

    @property
    def most_episodes(self) -> int:
        first = self.config.terminal.episodes if self.start is None else 0
        return first + self._stages_above * self.config.level.episodes

    @property
    def expected_seconds(self) -> float:
        first = self.config.expected_seconds(terminal=True) if self.start is None else 0.0
        return first + self._stages_above * self.config.expected_seconds(terminal=False)

    @property
    def _stages_above(self) -> int:
        return len(self.config.make_stages()) - 1 if self.start is None else 1

    @property
    def asked(self) -> dict[str, Any]:
        return _as_json({"settings": self.config.to_json(), "start": asdict(self.start) if self.start else None})

    def is_asked(self, asked: dict[str, Any]) -> bool:
        """Settings that there were not yet count as if they had been left as they are."""
        same_start = asked.get("start") == self.asked["start"]
        return same_start and self._is_set(asked["settings"])

    def _is_set(self, settings: dict[str, Any]) -> bool:
        return _that_count(TrainConfig.from_json(settings)) == _that_count(self.config)

    @property
    def recorded(self) -> tuple[str, ...]:
        return (*COST, "agent", "turns")

    def is_whole(self, record: dict[str, Any]) -> bool:
        """Whether a record has all that is kept of turns now; pi_0 is not drawn, so its first ones will do."""
        return self.start is None or set(KEPT_OF_TURNS) <= set(record["turns"])

    def record(self, runs: Path) -> dict[str, Any]:
        """What it took, and how it learned, turn by turn."""
        took = self._took(runs)
        if "turns" in took:  # it was made elsewhere
            return {name: took[name] for name in (*COST, "skillstack", "turns")}
        metrics = read_metrics(runs / self.name)
        turns = [line for line in metrics if line["event"] == "turn"]
        return {
            **cost_of(metrics, self.config.games),
            "skillstack": __version__,
            "turns": {name: [_rounded(line[name]) for line in turns] for name in KEPT_OF_TURNS},
        }

    def finished(self, runs: Path) -> bool:
        return (runs / self.name / FINISHED_FILE).exists()

    def share_done(self, runs: Path) -> float:
        if self.finished(runs):
            return 1.0
        if not self._begun(runs):
            return 0.0
        turns = [line for line in read_metrics(runs / self.name) if line["event"] == "turn"]
        return min(len(turns) * self.config.games / self.most_episodes, 1.0)

    def _took(self, runs: Path) -> dict[str, Any]:
        """What was noted when it was finished; where only its agent was kept, its record."""
        data: dict[str, Any] = json.loads((runs / self.name / FINISHED_FILE).read_bytes())
        return data

    def check(self, runs: Path) -> None:
        folder = runs / self.name
        if (folder / CONFIG_FILE).exists():
            same = self._is_set(read_config(folder))
        else:
            same = not self.finished(runs) or self.is_asked(self._took(runs)["made"]["asked"])
        if not same:
            raise SkillstackError(
                f"{folder} was begun with other settings; move it away, or choose another folder with --runs."
            )

    def _begun(self, runs: Path) -> bool:
        """Whether there is something to go on from."""
        return bool(Checkpoints(runs / self.name / CHECKPOINTS_FOLDER).numbers())

    def run(self, runs: Path, console: Console) -> bool:
        from skillstack.learning import run

        folder = runs / self.name
        ended = run.resume(folder, console) if self._begun(runs) else self._begin(runs, folder, console)
        if ended:
            self._finish(runs)
        return ended

    def _begin(self, runs: Path, folder: Path, console: Console) -> bool:
        from skillstack.learning import run

        make_folder(folder.parent)
        if self.start is None:
            return run.begin(self.config, folder, console)
        source = runs / self.start.job
        if self.start.how == "fork":
            return run.fork(source, self.config, folder, console)
        if self.start.how == "flat":
            return run.begin(self.config, folder, console, run.flat_from(source / AGENT_FOLDER, self.config))
        config, agent = run.add_stage(source / AGENT_FOLDER, [self.start.skill], (), self.config)
        assert config == self.config, "a job's settings are whole, so that a run can be compared with them"
        return run.begin(config, folder, console, agent)

    def _finish(self, runs: Path) -> None:
        """Note what it took, and drop the checkpoints: agent and metrics stay, and they are hundreds of megabytes."""
        folder = runs / self.name
        data = {
            **cost_of(read_metrics(folder), self.config.games),
            "settings": self.config.to_json(),
            "skillstack": __version__,
        }
        write_file(folder / FINISHED_FILE, (json.dumps(data, indent=1) + "\n").encode())
        remove_folder(folder / CHECKPOINTS_FOLDER)


def _that_count(config: TrainConfig) -> TrainConfig:
    """Settings that a run looks at: one of pi_0 alone looks at none of the levels above but for the windows."""
    if len(config.make_stages()) > 1 or config.terminal.method != "ppo":
        return config
    return replace(config, level=LevelConfig(window=config.level.window), a2c=A2CConfig(), ppo=PPOConfig())


def cost_of(metrics: Sequence[dict[str, Any]], games: int) -> dict[str, float]:
    """What a run took by itself: episodes, primitive steps, and seconds of one core.

    Where a run did not note these yet it is by the clock, and a pause counts.
    """
    turns = [line for line in metrics if line["event"] == "turn"]
    episodes, steps = len(turns) * games, sum(line["steps of turn"] for line in turns)
    seconds = sum(line.get("core seconds", line["seconds"]) for line in turns)
    return dict(zip(COST, (episodes, steps, seconds), strict=True))


@dataclass(frozen=True)
class Test:
    """One measurement of an agent."""

    label: str
    room: RoomsConfig
    limits: Limits
    games: int
    """Of each skill."""
    level: int | None = None
    """That is given the tasks; the top one by default."""
    skills: tuple[str, ...] = ()
    """All that the level knows by default."""


@dataclass(frozen=True)
class Looking(ABC):
    """A look at one trained agent, kept in one JSON file together with what was asked for."""

    name: str
    agent: str
    """The job that trained it."""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.agent,)

    @property
    @abstractmethod
    def expected_seconds(self) -> float: ...

    @abstractmethod
    def look(self, runs: Path) -> dict[str, Any]:
        """What there is to be seen, as JSON has it."""

    def file(self, runs: Path) -> Path:
        return runs / f"{self.name}.json"

    def finished(self, runs: Path) -> bool:
        return self.file(runs).exists() and self.is_asked(self.record(runs).get("asked", {}))

    def share_done(self, runs: Path) -> float:
        return float(self.finished(runs))

    def check(self, runs: Path) -> None:  # noqa: B027 - nothing to refuse
        """What was asked otherwise is looked at again: that takes minutes."""

    @property
    @abstractmethod
    def recorded(self) -> tuple[str, ...]: ...

    @property
    def asked(self) -> dict[str, Any]:
        return _as_json(asdict(self))

    def is_asked(self, asked: dict[str, Any]) -> bool:
        return asked == self.asked

    def record(self, runs: Path) -> dict[str, Any]:
        """All of it."""
        data: dict[str, Any] = json.loads(self.file(runs).read_bytes())
        return data

    def run(self, runs: Path, console: Console) -> bool:
        begin = process_time()
        data = {"asked": self.asked, **self.look(runs), "seconds": process_time() - begin}
        make_folder(self.file(runs).parent)
        write_file(self.file(runs), (json.dumps(data, indent=1) + "\n").encode())
        console.print(f"Looked at {self.name}.", highlight=False)
        return True


@dataclass(frozen=True)
class Measuring(Looking):
    """Some tests of one agent."""

    tests: tuple[Test, ...] = field(default=())

    @property
    def recorded(self) -> tuple[str, ...]:
        return ("asked", "of", "evaluations")

    @property
    def expected_seconds(self) -> float:
        return sum(4 * test.games for test in self.tests) * SECONDS_PER_GAME

    def look(self, runs: Path) -> dict[str, Any]:
        return {"evaluations": list(self._evaluations(runs))}

    def _evaluations(self, runs: Path) -> Iterator[dict[str, Any]]:
        import torch

        from skillstack.evaluation import evaluate
        from skillstack.rollout.casting import find_candidate
        from skillstack.rollout.runner import RunnerConfig

        torch.set_num_threads(1)
        candidate = find_candidate(str(runs / self.agent / AGENT_FOLDER))
        for test in self.tests:
            world, player = candidate.play_in(test.room, min(64, test.games))
            yield evaluate(
                world, player, RunnerConfig(test.limits), test.games, level=test.level, skills=test.skills,
                agent=self.agent,
            ).to_json()  # fmt: skip


def _as_json(data: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a file: with lists where there were tuples."""
    back: dict[str, Any] = json.loads(json.dumps(data))
    return back


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return round(value, 4) if isinstance(value, float) else value


def room_of(config: TrainConfig, **changes: Any) -> RoomsConfig:
    """The world that a run was trained in, or one a little different."""
    return replace(config.world(), **changes)


def in_order(jobs: Sequence[Job]) -> list[Job]:
    """Each job once, after those that it needs, else as they came."""
    known: dict[str, Job] = {}
    for job in jobs:
        if known.setdefault(job.name, job) != job:
            raise AssertionError(f"two jobs are named {job.name}")
    ordered: dict[str, Job] = {}

    def put(job: Job) -> None:
        for need in job.needs:
            put(known[need])
        ordered.setdefault(job.name, job)

    for job in known.values():
        put(job)
    return list(ordered.values())
