"""A training run from the outside: its folder, its checkpoints, its display, and how it ends."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import torch
from rich.console import Console

from skillstack import instructions, provenance
from skillstack.errors import DivergedError, SkillstackError
from skillstack.instructions import Vocabulary
from skillstack.learning.checkpoint import Checkpoints
from skillstack.learning.config import PRESETS, LevelConfig, TerminalConfig, TrainConfig
from skillstack.learning.display import Display
from skillstack.learning.packing import pack, unpack
from skillstack.learning.run_folder import COMMAND_FILE, RunFolder, read_config
from skillstack.learning.trackers import curves, open_trackers
from skillstack.learning.trainer import Trainer, count_parameters
from skillstack.policies.agent import Agent
from skillstack.rollout.casting import check_fits
from skillstack.timing import most_memory

FORK_FOLDER = "novel-phase"
"""Where a run keeps its state of the moment at which a novel phase began, numbered by the stage."""

FORK_FIELDS = ("stages", "items", "encoder", "fusion", "lstm", "flat", "leave_out", "image_size", "world_name")
"""What a run that goes on from another's state must have in common with it."""


def begin(config: TrainConfig, path: Path, console: Console, agent: Agent | None = None, command: str = "") -> bool:
    """Begin a run in a new folder; returns whether it came to its end.

    With an `agent`, all its levels but the top one are finished, and the top one is learned. `command` is what people
    would type to do the same again.
    """
    config = _resolved(config)
    with RunFolder.create(path, config.to_json()) as folder:
        _note(path, command)
        first = 0 if agent is None else first_stage(config, agent)
        return _train(Trainer(config, agent, first), folder, console)


def _resolved(config: TrainConfig) -> TrainConfig:
    """With a number of threads, where it was one a core: another number rounds otherwise, and the run would differ."""
    return replace(config, threads=config.num_threads)


def _warner(console: Console) -> Callable[[str], None]:
    return lambda sentence: console.print(sentence, style="yellow", highlight=False, markup=False)


def _note(path: Path, command: str) -> None:
    """Keep the command with the run that it began, and what it was typed at."""
    if command:
        (path / COMMAND_FILE).write_text(f"{command}  # {provenance.source()}\n", encoding="utf-8")


def first_stage(config: TrainConfig, agent: Agent) -> int:
    """Which stage is learned first on top of an agent: its top one; by a flat policy the first it does not know."""
    if not config.flat:
        return agent.num_levels - 1
    return next(stage.level for stage in config.make_stages() if stage.base == agent.stages[0].tasks)


def resume(path: Path, console: Console) -> bool:
    """Go on with a run from its newest valid checkpoint, bit for bit as if it had not stopped."""
    warn = _warner(console)
    with RunFolder.open(path, warn) as folder:
        config = TrainConfig.from_json(folder.config)
        found = folder.checkpoints.load_newest(warn)
        if found is None:
            raise SkillstackError(f"The run {path} ended before its first checkpoint: begin it anew, by --run {path}.")
        state = unpack(found[1])
        folder.truncate_metrics(state["metrics"], warn)
        trainer = Trainer.from_state(config, state["trainer"])
        console.print(f"Going on with {path} after {trainer.turns_taken} turns.", highlight=False)
        if config.threads > (os.cpu_count() or 1):
            console.print(
                f"It was begun with {config.threads} threads, and goes on with as many to be the same run; there are "
                f"{os.cpu_count()} cores here, so it will be slow.",
                style="yellow", highlight=False,
            )  # fmt: skip
        return _train(trainer, folder, console)


def fork(source: Path, config: TrainConfig, path: Path, console: Console, command: str = "") -> bool:
    """Begin a run from the state that another kept when its last novel phase began; how it learns on may differ."""
    theirs = TrainConfig.from_json(read_config(source))
    for name in FORK_FIELDS:
        if getattr(theirs, name) != getattr(config, name):
            raise SkillstackError(
                f'A run that goes on from {source} must have its "{name}", {getattr(theirs, name)}, and not '
                f"{getattr(config, name)}."
            )
    if theirs.a2c.true_probabilities != config.a2c.true_probabilities:
        raise SkillstackError(
            f"The episodes that {source} has kept are weighted in another way than --true-weights or --v-trace ask for."
        )
    if config.level.grammar and theirs.level.smoothing != config.level.smoothing:
        raise SkillstackError(
            f"The grammar that {source} has kept is smoothed by {theirs.level.smoothing:g} counts: say --smoothing "
            f"{theirs.level.smoothing:g}, too."
        )
    if theirs.level.method != config.level.method:
        raise SkillstackError(
            f"{source} learns by {theirs.level.method}, and what it has kept is for that alone: say --method "
            f"{theirs.level.method}, too."
        )
    kept = Checkpoints(source / FORK_FOLDER).load_newest(_warner(console))
    if kept is None:
        raise SkillstackError(
            f"{source} has kept no state to go on from: none of its novel phases has begun, or it was trained without "
            "--fork-points."
        )
    config = _resolved(config)
    with RunFolder.create(path, config.to_json()) as folder:
        _note(path, command)
        return _train(Trainer.from_state(config, unpack(kept[1])["trainer"]), folder, console)


def add_stage(
    path: Path, skills: Sequence[str], items: Sequence[str], config: TrainConfig, level: int | None = None
) -> tuple[TrainConfig, Agent]:
    """A finished agent, or its levels up to one, with one more on top, ready to learn, and the settings that fit it."""
    agent = _load(path, level)
    if config.encoder == "shared" and agent.num_levels == 1:
        raise SkillstackError(
            "A shared encoder that goes on learning would change what the agent knows already: say --encoder own or "
            "--encoder frozen."
        )
    stages = instructions.add_stage(agent.stages, skills, [*agent.vocabulary.items, *items] if items else ())
    config, agent = _fit(config, agent, stages[-1].tasks.vocabulary)
    added = stages[-1].novel
    extended = agent.extended(added.skills, added.items, seed=config.seed, smoothing=config.level.smoothing)
    return config, extended


def tune(path: Path, config: TrainConfig, level: int | None = None) -> tuple[TrainConfig, Agent]:
    """A finished agent whose top level, or this one, goes on learning, with all its tasks at once, and the settings."""
    agent = _load(path, level)
    config, agent = _fit(config, agent, agent.vocabulary)
    return replace(config, tune=True, level=replace(config.level, curriculum=False)), agent


def _load(path: Path, level: int | None) -> Agent:
    agent = Agent.load(path)
    return agent if level is None else agent.truncated(level)


def _fit(config: TrainConfig, agent: Agent, vocabulary: Vocabulary) -> tuple[TrainConfig, Agent]:
    """The settings with the sizes that an agent has and with these words, and the agent in their world."""
    config = replace(
        config,
        stages=", ".join(vocabulary.skills),
        items=vocabulary.items,
        encoder=config.encoder if agent.num_levels == 1 else "frozen" if agent.shared_encoder else "own",
        fusion="gate" if agent.gated else "concatenate",
        lstm=agent.lstm,
        image_size=agent.world.image_shape[0],
    )
    # A terminal level alone can be seen either way: it has one encoder.
    return config, replace(agent, world=config.world().description, shared_encoder=config.encoder != "own")


def flat_from(path: Path, config: TrainConfig) -> Agent:
    """The terminal level of a finished agent, or a flat policy for fewer tasks, for the flat baseline to start from."""
    agent = replace(Agent.load(path).truncated(0), shared_encoder=config.encoder != "own")
    stages, world, mine = config.make_stages(), config.world().description, agent.stages[0].tasks
    if mine not in [stage.base for stage in stages[1:]] or (agent.world, agent.lstm) != (world, config.lstm):
        raise SkillstackError(
            f"The flat baseline starts from an agent whose first stage is {', '.join(stages[0].tasks.skills)} with "
            "these items, frames and LSTM, or from a flat policy for its first stages; that one's is another."
        )
    return agent


def describe(config: TrainConfig, preset: str, agent: Agent | None = None, source: Path | None = None) -> str:
    """The plan of a run in words: stages, tasks, sizes, what differs from the preset, and what it may take.

    It starts from an agent, from the state that the run `source` has kept, or from nothing.
    """
    stages = config.make_stages() if config.flat or agent is None else agent.stages
    stages = stages[first_stage(config, agent) if agent else _kept_stage(source) if source else 0 :]
    lines = []
    for stage in stages:
        settings: LevelConfig | TerminalConfig = config.level if stage.base else config.terminal
        method = settings.method.upper() + (f", {config.encoder} encoder" if stage.base else "")
        if not stage.base and config.terminal.critic and config.terminal.method == "ppo":
            shown = config.world_name == "rooms"
            method += ", practising with a critic that sees states" if shown else ", without a critic in this world"
        method += ", one flat policy" if config.flat else ""
        what = str(stage).replace("learn", "learn on with", 1) if config.tune else str(stage)
        lines.append(
            f"{what.capitalize()}: {len(stage.tasks)} tasks, by {method}, at most {settings.episodes:,} episodes."
        )
    lines.append(
        f"Frames of {config.image_size} x {config.image_size} pixels, rooms of {config.room_width} x "
        f"{config.room_depth} cells, an LSTM of {config.lstm} units at each level, "
        f"{count_parameters(config) / 1e6:.1f} million weights in all."
    )
    usual, mine = _flattened(PRESETS[preset].to_json()), _flattened(config.to_json())
    changes = [f"{name} {value}" for name, value in mine.items() if usual[name] != value]
    lines.append(f'Other than in the preset "{preset}": {", ".join(changes) or "nothing"}.')
    seconds = sum(config.expected_seconds(terminal=not stage.base) for stage in stages)
    time = f"At most some {seconds / 60:.0f} minutes" if seconds >= 90 else "A minute or less"
    lines.append(
        f"{config.games} games at once, threads: {config.num_threads}, seed {config.seed}. {time}, by what such stages "
        "took before."
    )
    return "\n".join(lines)


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings of all groups by their names: "ppo.gamma" and the like."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flattened(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found


def _kept_stage(source: Path) -> int:
    """The stage in whose novel phase a run kept its state."""
    return max(Checkpoints(source / FORK_FOLDER).numbers(), default=0)


def _train(trainer: Trainer, folder: RunFolder, console: Console) -> bool:
    torch.set_num_threads(trainer.config.num_threads)
    check_fits(trainer.agent, trainer.world)
    saved = monotonic()
    finished = True
    trackers = open_trackers(trainer.config, folder.path, trainer.total_episodes)
    with Display(console, trainer) as display, trackers as tracked, _interruptible() as stop:
        if not folder.checkpoints.numbers():
            _save(trainer, folder)  # so that there is something to go on from, whatever happens
        try:
            for metrics in trainer.turns():
                if metrics["event"] != "turn":
                    metrics |= {"most memory": most_memory()}
                folder.append(metrics)
                display.show(metrics)
                if metrics["event"] == "turn":
                    for tracker in tracked:
                        tracker.write(curves(metrics), trainer.total_episodes)
                if trainer.config.fork_points and metrics.get("novel phase begins"):
                    _keep_fork_point(trainer, folder)
                if stop.asked:
                    finished = False
                    break
                if metrics["event"] != "turn" or monotonic() - saved > 60 * trainer.config.checkpoint_minutes:
                    _save(trainer, folder)
                    saved = monotonic()
        except DivergedError as error:
            raise DivergedError(
                f"{error} The last good checkpoint and its agent are kept in {folder.path}. Resumed, it would come to "
                f"the same end; with --from {folder.agent_path} and --tune, or --add where the agent does not have the "
                "level yet, it can go on with a smaller learning rate."
            ) from error
        _save(trainer, folder)
    lines = [*trainer.timer.root.lines(), f"most memory: {most_memory() / 2**30:.2f} GiB"]
    console.print("\n".join(lines), style="dim", highlight=False)
    if finished:
        console.print(f"The agent is in {folder.agent_path}.", highlight=False, markup=False, soft_wrap=True)
    else:
        command = shlex.join(["skillstack", "train", "--resume", str(folder.path)])
        console.print(f"Stopped. To go on: {command}", highlight=False, markup=False, soft_wrap=True)
    return finished


def _save(trainer: Trainer, folder: RunFolder) -> None:
    """A checkpoint, and the newest agent for all commands to load."""
    number = trainer.turns_taken + trainer.number + trainer.finished  # moving on to a stage counts, too
    if not folder.checkpoints.is_whole(number):
        state = pack({"trainer": trainer.state(), "metrics": folder.metrics_position()})
        folder.checkpoints.save(number, {**state, **folder.config_files()})
    trainer.learned.save(folder.agent_path)


def _keep_fork_point(trainer: Trainer, folder: RunFolder) -> None:
    """The state in which the novel phase of a stage begins; a resumed run that comes here again has it already."""
    points = Checkpoints(folder.path / FORK_FOLDER)
    if trainer.number not in points.numbers():
        points.save(trainer.number, pack({"trainer": trainer.state()}))


class _Stop:
    asked = False


@contextmanager
def _interruptible() -> Iterator[_Stop]:
    """The first Ctrl-C, or SIGTERM, asks to stop after the turn under way; a second one stops at once."""
    stop = _Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        sys.stderr.write("\nStopping after this turn; once more to stop at once.\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
