"""How well an agent plays: success of each skill and item with intervals, path lengths beside the optimum, plan depth.

A game's seed is made of the evaluation's seed, the task's words and the game's number alone. So every agent plays the
same games, and the figures do not depend on how many games run at once or on what else is evaluated. (Networks round
a little differently in batches of other sizes, which changes a drawn choice about once in a million.)
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import sqrt
from statistics import fmean
from typing import Any
from zlib import crc32

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from skillstack import __version__
from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import Instruction, TaskArray, TaskSet, Vocabulary
from skillstack.policies.grammar import CALL
from skillstack.randomness import mix
from skillstack.rollout.episode import Episode
from skillstack.rollout.plan import ACHIEVED, OUTCOMES
from skillstack.rollout.player import Player, Proposal
from skillstack.rollout.runner import Assignment, Runner, RunnerConfig
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.oracle import shortest_paths
from skillstack.worlds.world import Frames, IntArray, World

FORMAT = "skillstack-evaluation"
FORMAT_VERSION = 1

Progress = Callable[[int, int], None]
"""Is told after each game how many are played, and how many there are in all."""


@dataclass(frozen=True)
class Game:
    """What an evaluation keeps of a game."""

    task: Instruction
    outcome: str
    """How it ended, one of `plan.OUTCOMES`."""
    steps: int
    """Primitive steps, whoever took them."""
    calls: int
    """Utterances at all levels, executable or not."""
    refusals: int
    """Those that could not be executed."""
    depth: int
    """How many levels were active at the deepest point."""
    optimum: int | None
    """The fewest steps from the game's start; None in a world that has no oracle."""
    uttered: frozenset[str] = frozenset()
    """The skills that the level which was given the task called."""

    @property
    def success(self) -> bool:
        return self.outcome == ACHIEVED

    @property
    def spl(self) -> float | None:
        """Success weighted by path length (Anderson et al. 2018): the optimum's share of the steps, 0 for a failure."""
        if self.optimum is None:
            return None
        return self.optimum / max(self.steps, self.optimum) if self.success else 0.0


@dataclass(frozen=True)
class Figures:
    """The figures of one task's games, or of all games of a skill. None where there is nothing to take a mean of."""

    skill: str
    item: str | None
    """None for all items together."""
    games: int
    successes: int
    success: float
    """Share of the games that succeeded."""
    success_low: float
    """The 95 % interval of the share, after Wilson."""
    success_high: float
    steps: float
    """Mean primitive steps of all games."""
    steps_of_successes: float | None
    """Mean primitive steps of the games that succeeded."""
    shortest: float | None
    """Mean optimum of the games that succeeded."""
    ratio: float | None
    """Mean of steps over the optimum, of the games that succeeded."""
    spl: float | None
    """Mean of success times optimum / max(steps, optimum)."""
    depth: float
    """Mean number of levels that were active at the deepest point."""
    calls: int
    """Utterances at all levels, executable or not."""
    refusals: int
    """Those that could not be executed."""
    refused: float | None
    """Their share."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """How many games ended in which way, for each of `plan.OUTCOMES`."""
    uttered: dict[str, float | None] = field(default_factory=dict)
    """In which share of the games that succeeded the level called each of the skills that it can call."""

    @property
    def label(self) -> str:
        return self.skill if self.item is None else f"{self.skill} {self.item}"


@dataclass(frozen=True)
class Evaluation:
    """Figures for each skill and for each task, with everything they depend on."""

    agent: str
    """Who played: a folder, or a name."""
    world: str
    room: str | None
    """The "small" or the "big" one; None in other worlds than the two rooms."""
    level: int
    """The level that was given the tasks."""
    seed: int
    episodes_per_skill: int
    config: RunnerConfig
    world_settings: dict[str, Any]
    """All settings of the two-room world; of other worlds, what success and refused utterances are worth."""
    skills: tuple[Figures, ...]
    tasks: tuple[Figures, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What the figures depend on, flat."""
        return {
            "agent": self.agent,
            "world": self.world,
            "room": self.room,
            "level": self.level,
            "seed": self.seed,
            "episodes_per_skill": self.episodes_per_skill,
            "greedy": self.config.greedy,
            "grammar": self.config.grammar,
            "epsilon": self.config.epsilon,
            "flat_limit": self.config.limits.flat,
            "decision_limit": self.config.limits.decisions,
            "episode_limit": self.config.limits.episode,
            "skillstack": __version__,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "settings": {**self.settings, "world_settings": self.world_settings},
            "skills": [asdict(figures) for figures in self.skills],
            "tasks": [asdict(figures) for figures in self.tasks],
        }

    def to_csv(self, header: bool = True) -> str:
        """A line for each skill, whose item is empty, and each task; every line states the settings."""
        rows = [{**self.settings, **_flat(figures)} for figures in (*self.skills, *self.tasks)]
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
        if header:
            writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def ways(skills: Iterable[Figures]) -> tuple[float, float] | None:
    """Mean steps of games that succeeded, and of the shortest ways there, over skills of equal weight, if all have any.

    Their ratio says how much longer ways are on the whole; the mean of ratios counts short ways as much as long ones.
    """
    taken = [(figures.steps_of_successes, figures.shortest) for figures in skills]
    known = [(steps, shortest) for steps, shortest in taken if steps is not None and shortest is not None]
    if not known or len(known) < len(taken):
        return None
    return fmean(steps for steps, _ in known), fmean(shortest for _, shortest in known)


def dump_json(evaluations: Iterable[Evaluation]) -> str:
    """Several evaluations as the text of one JSON file: a list."""
    return json.dumps([evaluation.to_json() for evaluation in evaluations], indent=1) + "\n"


def dump_csv(evaluations: Iterable[Evaluation]) -> str:
    """Several evaluations as the text of one CSV file."""
    return "".join(evaluation.to_csv(header=number == 0) for number, evaluation in enumerate(evaluations))


def evaluate(
    world: World,
    player: Player,
    config: RunnerConfig,
    episodes_per_skill: int,
    seed: int = 0,
    level: int | None = None,
    progress: Progress | None = None,
    *,
    skills: Sequence[str] | None = None,
    agent: str = "",
) -> Evaluation:
    """Play games of each skill that a level knows, the top one by default, evenly over the skill's items.

    `skills` leaves out all others; `agent` is the name that the result states.
    """
    level = _check(player, level, episodes_per_skill, seed)
    known, callable_skills = player.stages[level].tasks, player.stages[level].base.skills
    chosen = _choose_skills(known, skills)
    tasks = [task for skill in chosen for task in _tasks_of(skill, known, episodes_per_skill)]
    played: dict[int, Game] = {}
    for number, game in _play(world, player, config, level, tasks, _seeds(seed, tasks)):
        played[number] = game
        if progress:
            progress(len(played), len(tasks))
    games = [played[number] for number in range(len(tasks))]  # so that sums do not depend on which game ended first
    return Evaluation(
        agent=agent,
        world=world.description.name,
        room=("big" if world.config.big else "small") if isinstance(world, RoomGames) else None,
        level=level,
        seed=seed,
        episodes_per_skill=episodes_per_skill,
        config=config,
        world_settings=asdict(world.config) if isinstance(world, RoomGames) else {"rewards": asdict(world.rewards)},
        skills=tuple(
            summarise(skill, None, [game for game in games if game.task.skill == skill], callable_skills)
            for skill in chosen
        ),
        tasks=tuple(
            summarise(task.skill, task.item, [game for game in games if game.task == task], callable_skills)
            for task in dict.fromkeys(tasks)
        ),
    )


def wilson(successes: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share; z = 1.96 makes it the 95 % interval. Nothing seen leaves everything possible.

    >>> low, high = wilson(5, 10)
    >>> f"{low:.3f} {high:.3f}"
    '0.237 0.763'
    """
    if not 0 <= successes <= n:
        raise SkillstackError(f"Successes are from 0 to the number of games, not {successes} of {n}.")
    if n == 0:
        return 0.0, 1.0
    share, extra = successes / n, z * z / n
    middle = (share + extra / 2) / (1 + extra)
    half = z * sqrt(share * (1 - share) / n + extra / (4 * n)) / (1 + extra)
    # At the ends the formula gives 0 and 1 up to rounding.
    return 0.0 if successes == 0 else middle - half, 1.0 if successes == n else middle + half


def summarise(skill: str, item: str | None, games: Sequence[Game], callable_skills: Sequence[str] = ()) -> Figures:
    """The figures of a skill's games with an item, or with all items together; at least one game."""
    won = [game for game in games if game.success]
    low, high = wilson(len(won), len(games))
    calls, refusals = sum(game.calls for game in games), sum(game.refusals for game in games)
    endings = Counter(game.outcome for game in games)
    return Figures(
        skill=skill,
        item=item,
        games=len(games),
        successes=len(won),
        success=len(won) / len(games),
        success_low=low,
        success_high=high,
        steps=fmean(game.steps for game in games),
        steps_of_successes=_mean(game.steps for game in won),
        shortest=_mean(game.optimum for game in won if game.optimum is not None),
        ratio=_mean(game.steps / game.optimum for game in won if game.optimum),
        spl=_mean(game.spl for game in games if game.spl is not None),
        depth=fmean(game.depth for game in games),
        calls=calls,
        refusals=refusals,
        refused=refusals / calls if calls else None,
        outcomes={outcome: endings[outcome] for outcome in OUTCOMES},
        uttered={name: _mean(float(name in game.uttered) for game in won) for name in callable_skills},
    )


def game_seed(seed: int, task: Instruction, number: int) -> int:
    """The seed of a task's game of that number: of the words themselves, not of their places in a vocabulary."""
    mixed: Any = seed
    for part in (crc32(task.skill.encode()), crc32(task.item.encode()), number):
        mixed = mix(mixed, part)
    return int(mixed)


def results_table(evaluation: Evaluation, items: bool = False) -> Table:
    """The figures for a terminal, those of each item too if wanted; the caption states the settings."""
    place = evaluation.world if evaluation.room is None else f"{evaluation.room} room"
    if evaluation.room is not None and evaluation.world != "rooms":
        place += f" in {evaluation.world}"
    title = escape(f"{evaluation.agent or 'agent'}, {place}")
    table = Table(
        title=title, caption=escape(_caption(evaluation)), box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    for name in ("task" if items else "skill", "success\n95 % interval"):
        table.add_column(name, no_wrap=True)
    for name in ("\nsteps", "steps if\nachieved", "\nSPL", "plan\ndepth", "not exe-\ncutable"):
        table.add_column(name, justify="right", no_wrap=True)
    for figures in evaluation.skills:
        if items:
            table.add_section()
        table.add_row(*_cells(figures))
        for part in evaluation.tasks if items else ():
            if part.skill == figures.skill:
                table.add_row(*_cells(part), style="dim")
    return table


class _DepthGauge:
    """A player that notes how many levels each game goes down. A plan says it too, but takes up to a third more time.

    It relies on games being begun in the order in which they were given to the runner.
    """

    def __init__(self, player: Player, top: int, num_games: int) -> None:
        self.stages, self.vocabulary, self.grammars = player.stages, player.vocabulary, player.grammars
        self._player, self._top = player, top
        self.depths = np.zeros(num_games, dtype=np.int64)
        self._begun = 0

    def set_up(self, num_slots: int) -> None:
        self._number = np.zeros(num_slots, dtype=np.int64)  # of the game in each slot
        self._player.set_up(num_slots)

    def begin(self, level: int, slots: IntArray) -> None:
        if level == self._top:  # nobody calls the top level, so this is a new game
            self._number[slots] = np.arange(self._begun, self._begun + len(slots))
            self._begun += len(slots)
        numbers = self._number[slots]
        self.depths[numbers] = np.maximum(self.depths[numbers], self._top - level + 1)
        self._player.begin(level, slots)

    def look(self, slots: IntArray, frames: Frames) -> None:
        self._player.look(slots, frames)

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        return self._player.propose(level, slots, tasks)


def _play(
    world: World, player: Player, config: RunnerConfig, level: int, tasks: Sequence[Instruction], seeds: Sequence[int]
) -> Iterator[tuple[int, Game]]:
    """Games as they end, with their numbers."""
    gauge = _DepthGauge(player, level, len(tasks))
    codes = player.vocabulary.encode(tasks)
    assignments = [Assignment(code, seed) for code, seed in zip(codes, seeds, strict=True)]
    for number, episode in Runner(world, gauge, config).stream(assignments, level):
        yield (
            number,
            Game(
                task=tasks[number],
                outcome=episode.outcome,
                steps=episode.steps,
                calls=episode.calls,
                refusals=episode.refusals,
                depth=int(gauge.depths[number]),
                optimum=_optimum(world, tasks[number], episode),
                uttered=_uttered(episode, player.vocabulary),
            ),
        )


def _uttered(episode: Episode, vocabulary: Vocabulary) -> frozenset[str]:
    decisions = episode.decisions
    if decisions.switch is None or decisions.instruction is None:
        return frozenset()
    skills = decisions.instruction[decisions.switch == CALL, 0]
    return frozenset(vocabulary.skills[number] for number in skills.tolist())


def _optimum(world: World, task: Instruction, episode: Episode) -> int | None:
    if not isinstance(world, RoomGames):
        return None
    start = episode.decisions.states[:1]
    (path,) = shortest_paths(start, [world.description.vocabulary.encode(task)])
    return len(path)


def _check(player: Player, level: int | None, episodes_per_skill: int, seed: int) -> int:
    """The level that plays."""
    if episodes_per_skill < 1:
        raise SkillstackError(f"There must be at least one game of each skill, not {episodes_per_skill}.")
    if not 0 <= seed < 2**64:
        raise SkillstackError(f"The seed must be a whole number from 0 to 2^64 - 1, not {seed}.")
    top = len(player.stages) - 1
    level = top if level is None else level
    if not 0 <= level <= top:
        raise SkillstackError(f"The player has levels 0 to {top}, not {level}.")
    return level


def _choose_skills(known: TaskSet, skills: Sequence[str] | None) -> tuple[str, ...]:
    """The skills to evaluate, in the order in which they were learned."""
    for skill in skills or ():
        if skill not in known.skills:
            raise unknown("skill", skill, known.skills)
    return tuple(skill for skill in known.skills if not skills or skill in skills)


def _tasks_of(skill: str, known: TaskSet, count: int) -> list[Instruction]:
    """So many games of a skill, round and round its items."""
    tasks = [task for task in known if task.skill == skill]
    return [tasks[number % len(tasks)] for number in range(count)]


def _seeds(seed: int, tasks: Sequence[Instruction]) -> list[int]:
    """A seed for each game; games of a task are numbered from 0."""
    numbers: Counter[Instruction] = Counter()
    seeds = []
    for task in tasks:
        seeds.append(game_seed(seed, task, numbers[task]))
        numbers[task] += 1
    return seeds


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fmean(found) if found else None


def _flat(figures: Figures) -> dict[str, Any]:
    """Figures as cells of a line."""
    cells = {entry.name: getattr(figures, entry.name) for entry in fields(figures)}
    outcomes, uttered = cells.pop("outcomes"), cells.pop("uttered")
    cells |= {f"outcome_{name.replace(' ', '_')}": count for name, count in outcomes.items()}
    return cells | {f"uttered_{name}": share for name, share in uttered.items()}


def _cells(figures: Figures) -> tuple[str, ...]:
    return (
        figures.label,
        f"{figures.success:.3f} [{figures.success_low:.3f}, {figures.success_high:.3f}]",
        _shown(figures.steps, ".1f"),
        _shown(figures.steps_of_successes, ".1f"),
        _shown(figures.spl, ".3f"),
        _shown(figures.depth, ".2f"),
        _shown(figures.refused, ".1%"),
    )


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _caption(evaluation: Evaluation) -> str:
    config, limits = evaluation.config, evaluation.config.limits
    return (
        f"{evaluation.episodes_per_skill} games of each skill, played by level {evaluation.level}, "
        f"seed {evaluation.seed}; choices are {'the likeliest' if config.greedy else 'drawn'}"
        + ("" if config.grammar else " without grammars")
        + (f", epsilon {config.epsilon:g}" if config.epsilon else "")
        + f"; limits: {limits.flat} steps of a flat run, {limits.decisions} decisions of a level, "
        f"{limits.episode} steps of a game." + "".join(f"\n{line}" for line in _remarks(evaluation))
    )


def _remarks(evaluation: Evaluation) -> Iterator[str]:
    """How long ways are, where that is known, and what the level says to those below, where it says anything."""
    taken = ways(evaluation.skills)
    if taken is not None:
        steps, shortest = taken
        yield f"Ways of achieved games: {steps / shortest:.2f} times the shortest, all skills together."
    for figures in evaluation.skills:
        shares = {name: share for name, share in figures.uttered.items() if share}
        if shares:
            often = ", ".join(f'"{name}" {share:.2f}' for name, share in shares.items())
            yield f"Share of achieved {figures.skill} games in which it calls: {often}."
