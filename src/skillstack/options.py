"""What can be said on the command line: a dataclass for each command, whose fields are its arguments and flags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from skillstack.errors import SkillstackError
from skillstack.learning.config import PRESETS, TrainConfig
from skillstack.worlds.making import WorldName
from skillstack.worlds.world import Limits


@dataclass
class Plan:
    """Play one game and show its plan: who uttered what, when, and how it ended."""

    instruction: tyro.conf.Positional[str]
    """What to do, a skill and an item, for example "stack blue"."""
    agent: str = "shipped"
    """Who plays: the folder of a saved agent, or "shipped", "oracle", "random" or "untrained"."""
    seed: int = 0
    """Which game; the same seed gives the same game and the same plan."""
    room: Literal["small", "big"] = "small"
    """The small rooms, or the big one without the wall between them."""
    world: WorldName = "rooms"
    """Where to play: in the embedded rooms, or in Minecraft."""
    server: str | None = None
    """A Minecraft server to join, HOST:PORT or ACCOUNT@HOST:PORT; by default one of our own is started."""
    greedy: bool = False
    """Take the likeliest choice in place of a drawn one."""
    probabilities: bool = False
    """Show the probabilities behind every decision: policy, grammar, and both together."""
    gif: Path | None = None
    """Write the game as a GIF: the view, the map, the active chain of utterances, and the plan as it grows."""
    svg: Path | None = None
    """Write the plan as a picture, with thumbnails at critical moments."""
    json: Path | None = None
    """Write the plan as JSON (docs/plan.md has the schema)."""


@dataclass
class Evaluate:
    """Measure how well an agent plays: success of each skill with 95 % intervals, steps, path lengths, plan depth."""

    agent: tyro.conf.Positional[str] = "shipped"
    """Who plays: the folder of a saved agent, or "shipped", "oracle", "random" or "untrained"."""
    room: Literal["small", "big", "both"] = "small"
    """The small rooms, the big one without the wall between them, or one after the other."""
    world: WorldName = "rooms"
    """Where to play: in the embedded rooms, or in Minecraft."""
    server: str | None = None
    """A Minecraft server to join, HOST:PORT or ACCOUNT@HOST:PORT; by default one of our own is started."""
    episodes: int = 200
    """How many games to play of each skill, evenly over its colours."""
    seed: int = 0
    """Which games; the same seed gives the same figures, and every agent plays the same games."""
    skills: tuple[str, ...] = ()
    """Only these skills, for example "--skills get stack"; all that the level knows by default."""
    level: int | None = None
    """The level that is given the tasks; the top one by default."""
    greedy: bool = False
    """Take the likeliest choice in place of a drawn one."""
    grammar: bool = True
    """Let the grammars guide what is called."""
    misled: bool = False
    """Tell the agent another item than the game's, to see whether it listens: it should fail as often as by chance."""
    flat_limit: int = Limits.flat
    """Most primitive steps of one run of the terminal level."""
    decision_limit: int = Limits.decisions
    """Most decisions of one run of a higher level."""
    episode_limit: int = Limits.episode
    """Most primitive steps of a whole game."""
    games: int | None = None
    """How many games to play at once, 64 by default and 16 in Minecraft; it changes the speed only."""
    threads: int = 1
    """Threads of the networks and of the drawing; more than there are free cores is slower."""
    colours: bool = False
    """Print the figures of each colour too."""
    json: Path | None = None
    """Write all figures and settings as JSON."""
    csv: Path | None = None
    """Write all figures and settings as CSV."""


@dataclass
class ShowGrammar:
    """Print what a level's grammar has learned, in words with probabilities and counts."""

    agent: tyro.conf.Positional[str] = "shipped"
    """The folder of a saved agent, or "shipped", which may also be left out: grammar "stack blue"."""
    instruction: tyro.conf.Positional[str | None] = None
    """One task only, for example "stack blue"."""
    level: int | None = None
    """The level whose grammar to show; the top one by default."""
    svg: Path | None = None
    """Draw the task's chain as a graph."""


@dataclass
class Bench:
    """Measure the speed of the world, of playing and of learning on this machine, with one thread."""

    seconds: float = 2.0
    """How long to measure each world."""
    episodes: int = 256
    """How many games the runner plays in a measurement."""
    quick: bool = False
    """Leave out how the cost grows with levels and items."""


@dataclass
class CheckWorld:
    """Check a world of your own against the world contract, and say what is missing."""

    factory: tyro.conf.Positional[str]
    """Where to find a function that makes a world of N games: "module:function"."""
    games: int = 8
    """How many games to play at once."""
    steps: int = 40
    """How many steps to play."""


@dataclass
class Viewer:
    """Where the viewer listens, and what it shows beside games."""

    world: WorldName = "rooms"
    """Where to play: in the embedded rooms, or in Minecraft."""
    server: str | None = None
    """A Minecraft server to join, HOST:PORT, in offline mode; by default one of our own is started."""
    host: str = "127.0.0.1"
    """The address to listen on; only this machine can reach the default one."""
    port: int = 8421
    """The port to listen on; 0 takes any that is free."""
    allow_host: tuple[str, ...] = ()
    """Further names under which the server may be called, for example behind a proxy."""
    runs: Path = Path("runs")
    """A folder of training runs, whose curves are shown."""
    gallery: Path = Path("gallery")
    """A folder of recorded games (plans as JSON), to which the page can add."""
    browser: bool = True
    """Open the page in a browser."""


@dataclass
class View(Viewer):
    """Watch an agent think, in a browser: give it an instruction, and see its view, its plan and its reasons."""

    agent: str = "shipped"
    """Who plays: the folder of a saved agent, or "shipped", "oracle", "random" or "untrained"."""
    compare: str | None = None
    """Who plays the same games beside it."""


@dataclass
class Play(Viewer):
    """Drive the agent yourself with the keyboard, in a browser, and see your own game as a plan."""

    instruction: tyro.conf.Positional[str] = "stack blue"
    """What to do, a skill and an item."""
    seed: int = 0
    """Which game."""
    room: Literal["small", "big"] = "small"
    """The small rooms, or the big one without the wall between them."""


@dataclass(frozen=True)
class Train(TrainConfig):
    """Learn a ladder of skills, stage by stage. Any setting of the preset can be changed by its flag."""

    preset: Literal["fast", "paper"] = "fast"
    """Named settings to start from: "fast" learns most in the least time; "paper" is Algorithm 2 to the letter, unless
    docs/decisions.md says otherwise."""
    run: Path | None = None
    """The folder of the run; runs/PRESET-SEED by default."""
    resume: Path | None = None
    """Go on with this run, with its own settings, from its newest checkpoint."""
    from_agent: Annotated[Path | None, tyro.conf.arg(name="from")] = None
    """A finished agent, or "shipped": to put one more stage on top of (say with --add what it brings), to learn on with
    its top level (--tune), or, with --flat, to take the terminal policy from. It keeps its words, sizes and encoder,
    whatever other flags say."""
    from_level: int | None = None
    """Take of that agent only the levels up to this one, so that those above can be learned anew."""
    add: tuple[str, ...] = ()
    """Skills that the new stage brings."""
    add_items: tuple[str, ...] = ()
    """Items that the new stage brings."""
    fork: Path | None = None
    """Go on from the state that this run kept (--fork-points) when its last novel phase began, with other settings."""
    dry_run: bool = False
    """Print what would be done, and stop."""

    def settings(self) -> TrainConfig:
        """What a run is begun with. Flags for what is not used are refused, as they would do nothing."""
        usual = PRESETS[self.preset]
        for group, names, used, needed in self._in_use():
            given, before = getattr(self, group), getattr(usual, group)
            changed = [f'"{name.replace("_", "-")}"' for name in names if getattr(given, name) != getattr(before, name)]
            if changed and not used:
                raise SkillstackError(f"{', '.join(changed)}: {needed}, too.")
        return TrainConfig(**{field.name: getattr(self, field.name) for field in fields(TrainConfig)})

    def _in_use(self) -> Iterator[tuple[str, Sequence[str], bool, str]]:
        """Settings of a group that count only beside others: whether they do, and what to say so that they would."""
        level, terminal = self.level, self.terminal
        for method, used in (("a2c", "a2c" in (level.method, terminal.method)), ("ppo", level.method == "ppo")):
            names = [field.name for field in fields(getattr(self, method))]
            yield method, names, used, f"these are for levels that learn by {method}; say --method {method}"
        bonus, critic = "this is for a bonus; say --entropy 0.01", "this is for a critic; say --terminal.critic"
        phase = "these are for stages that have a base phase, and not for --tune; say --curriculum"
        grammar = "these are for levels that have a grammar, and not for --flat; say --grammar"
        yield "a2c", ["entropy_by_failure"], self.a2c.entropy > 0 or not self.a2c.entropy_by_failure, bonus
        yield "terminal", ["beyond"], terminal.critic, critic
        yield "level", ["each", "threshold"], level.curriculum and not self.tune, phase
        yield "level", ["smoothing", "doubt", "unguided"], level.grammar and not self.flat, grammar


@dataclass
class Reproduce:
    """Run the paper's experiments, and its reviewers', and put them beside the paper's in docs/results.md.

    What is finished is not run again, and what was interrupted goes on.
    """

    names: tyro.conf.Positional[tuple[str, ...]]
    """Which ones: figure-get, figure-stack, figure-curriculum, table-rooms, distractors, plans, no-penalty,
    stage-orders, flat-capacity, unseen-pairs, or all."""
    seeds: int = 3
    """How many seeds, counted from 0."""
    jobs: int = 0
    """How many runs at once, each with one thread; 0 for one a core."""
    preset: Literal["fast", "paper"] = "paper"
    """The settings that all runs start from."""
    encoder: Literal["frozen", "own"] = "frozen"
    """All levels see through that of pi_0, frozen, which is faster; or each through its own, as in the paper."""
    runs: Path = Path("runs/reproduce")
    """Where the folders of the runs go; another command with the same folder shares them."""
    out: Path = Path()
    """Data are written into results/ there, the page and its figures into docs/."""
    scale: Literal["full", "toy"] = "full"
    """Toy is a tiny world with few episodes, in which nothing is learned: to see everything run in a minute."""


Command = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Plan, tyro.conf.subcommand("plan")]
    | Annotated[View, tyro.conf.subcommand("view")]
    | Annotated[Play, tyro.conf.subcommand("play")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[ShowGrammar, tyro.conf.subcommand("grammar")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[CheckWorld, tyro.conf.subcommand("check-world")]
)


def with_preset(arguments: list[str]) -> Train:
    """The settings that the other flags change; what is no preset is left for the parser to refuse."""
    names = [
        follower if word == "--preset" else word.removeprefix("--preset=")
        for word, follower in zip(arguments, [*arguments, ""][1:], strict=True)
        if word == "--preset" or word.startswith("--preset=")
    ]
    name: Any = names[-1] if names and names[-1] in PRESETS else Train.preset
    return Train(preset=name, **{field.name: getattr(PRESETS[name], field.name) for field in fields(TrainConfig)})
