"""The command line: parse, call, print. Bad input gets one clear sentence on standard error and exit status 2."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from skillstack import Instruction, SkillstackError, __version__
from skillstack.learning.config import PRESETS, TrainConfig
from skillstack.worlds.making import USUAL_GAMES, WorldName
from skillstack.worlds.world import Limits

if TYPE_CHECKING:
    from skillstack.policies.agent import Agent

DESCRIPTION = """Agents that learn skills in stages, call earlier skills by their names, and can always say their plan.

Try: skillstack view, skillstack plan "stack blue", or skillstack --version"""


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
    """Write the game as a GIF: the view, the map, and the active chain of utterances."""
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
    its top level (--tune), or, with --flat, to take the terminal policy from. It keeps its words and sizes."""
    add: tuple[str, ...] = ()
    """Skills that the new stage brings."""
    add_items: tuple[str, ...] = ()
    """Items that the new stage brings."""
    tune: bool = False
    """Learn on with the top level of --from, for example in another world; what lies below is not touched."""
    fork: Path | None = None
    """Go on from the state that this run kept (--fork-points) when its last novel phase began, with other settings."""
    dry_run: bool = False
    """Print what would be done, and stop."""

    def settings(self) -> TrainConfig:
        return TrainConfig(**{field.name: getattr(self, field.name) for field in fields(TrainConfig)})


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


def plan(args: Plan, console: Console) -> None:
    from skillstack.rollout.casting import cast
    from skillstack.rollout.plan_sentence import plan_sentence
    from skillstack.rollout.plan_text import plan_line, plan_tree_renderable
    from skillstack.rollout.runner import Runner, RunnerConfig
    from skillstack.worlds.rooms import RoomsConfig

    _check_results(args.gif, args.svg, args.json)
    world, player = cast(args.agent, RoomsConfig(big=args.room == "big"), world_name=args.world, server=args.server)
    instruction = Instruction.parse(args.instruction, player.vocabulary)
    runner = Runner(world, player, RunnerConfig(greedy=args.greedy), plans=True)
    (episode,) = runner.play([instruction], [args.seed])
    assert episode.plan is not None, "plans were asked for"
    tree = episode.plan
    console.print(plan_tree_renderable(tree, probabilities=args.probabilities))
    console.print(plan_line(tree), style="dim", highlight=False)
    console.print(plan_sentence(tree), style="bold", highlight=False)
    _write_pictures(args, world, tree, console)


def _write_pictures(args: Plan, world: Any, tree: Any, console: Console) -> None:
    from skillstack.rollout.plan_gif import write_gif
    from skillstack.rollout.plan_svg import plan_svg
    from skillstack.rollout.replay import replay

    recording = replay(world, tree) if args.gif or args.svg else None
    if args.gif and recording:
        write_gif(args.gif, tree, recording)
    if args.svg:
        args.svg.write_text(plan_svg(tree, recording), encoding="utf-8")
    if args.json:
        args.json.write_text(tree.dumps() + "\n", encoding="utf-8")
    for path in filter(None, (args.gif, args.svg, args.json)):
        console.print(f"Wrote {path}", highlight=False)


def evaluate(args: Evaluate, console: Console) -> None:
    import torch

    from skillstack.evaluation import dump_csv, dump_json, evaluate, results_table
    from skillstack.rollout.casting import cast
    from skillstack.rollout.player import MisledPlayer
    from skillstack.rollout.runner import RunnerConfig
    from skillstack.worlds.rooms import RoomsConfig

    _check_results(args.json, args.csv)
    limits = Limits(args.flat_limit, args.decision_limit, args.episode_limit)
    config = RunnerConfig(limits, greedy=args.greedy, grammar=args.grammar)
    if args.misled and args.agent == "oracle":
        raise SkillstackError("The oracle cannot be misled: it knows where everything is.")
    evaluations = []
    for room in ("small", "big") if args.room == "both" else (args.room,):
        games = USUAL_GAMES[args.world] if args.games is None else args.games
        world, player = cast(args.agent, RoomsConfig(big=room == "big"), games, args.threads, args.world, args.server)
        torch.set_num_threads(args.threads)
        if args.misled:
            player = MisledPlayer(player, len(player.stages) - 1 if args.level is None else args.level)
        with _progress(f"{room} room") as progress:
            evaluation = evaluate(
                world, player, config, args.episodes, args.seed, args.level, progress,
                skills=args.skills, agent=f"{args.agent}, misled" if args.misled else args.agent,
            )  # fmt: skip
        console.print(results_table(evaluation, items=args.colours))
        evaluations.append(evaluation)
        del world, player  # a Minecraft world's players leave before those of the next room join
    for path, dump in ((args.json, dump_json), (args.csv, dump_csv)):
        if path:
            path.write_text(dump(evaluations), encoding="utf-8")
            console.print(f"Wrote {path}", highlight=False)


def _check_results(*paths: Path | None) -> None:
    """Refuse files that could not be written in the end, before long work begins."""
    given = [path for path in paths if path is not None]
    for path in given:
        if not path.parent.is_dir():
            raise SkillstackError(f"{path} cannot be written, as there is no folder {path.parent}.")
        if path.is_dir():
            raise SkillstackError(f"{path} cannot be written, as it is a folder; give the name of a file.")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise SkillstackError(f"{path} cannot be written, as you have no right to; choose another place.")
    if len({path.resolve() for path in given}) < len(given):
        raise SkillstackError(f"{given[0]} is given for two results; give each a file of its own.")


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error; where that is no terminal, a line for each tenth."""
    from rich import progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total: _print_tenths(label, done, total)
        return
    count, left = progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    with progress.Progress("{task.description}", progress.BarColumn(), count, left, console=console) as bar:
        task = bar.add_task(label, total=None, visible=False)  # bad input should not leave an empty bar behind
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _print_tenths(label: str, done: int, total: int) -> None:
    if 10 * done // total > 10 * (done - 1) // total:
        print(f"{label}: {done} of {total} games", file=sys.stderr, flush=True)


def grammar(args: ShowGrammar, console: Console) -> None:
    from skillstack.policies.grammar_text import describe, describe_all, grammar_svg
    from skillstack.rollout.casting import find_candidate

    _check_results(args.svg)
    name, words = args.agent, args.instruction
    if words is None and len(name.split()) == 2 and not Path(name).exists():
        name, words = "shipped", name
    agent = find_candidate(name).agent
    if agent is None:
        raise SkillstackError(f'"{name}" has no grammar: it is no agent that has learned.')
    level = agent.num_levels - 1 if args.level is None else args.level
    chosen = agent.grammars[level] if 0 <= level < agent.num_levels else None
    if agent.num_levels == 1:
        raise SkillstackError("This agent has its terminal level alone, which has no grammar.")
    if chosen is None:
        raise SkillstackError(
            f"Level {level} of this agent has no grammar; levels 1 to {agent.num_levels - 1} have one."
        )
    if words is None:
        if args.svg:
            raise SkillstackError('A picture shows one task: name it, for example "stack blue".')
        console.print(describe_all(chosen))
        return
    task = Instruction.parse(words, chosen.tasks.vocabulary)
    console.print(describe(chosen, task))
    if args.svg:
        args.svg.write_text(grammar_svg(chosen, task), encoding="utf-8")
        console.print(f"Wrote {args.svg}", highlight=False)


def view(args: View, console: Console) -> None:
    agents = list(dict.fromkeys([args.agent, args.compare or args.agent]))
    _launch(args, agents, {"compare": f"{len(agents) - 1}"} if args.compare else {}, console)


def play(args: Play, console: Console) -> None:
    instruction = Instruction.parse(args.instruction)
    page = {"play": str(instruction), "seed": str(args.seed), "room": args.room}
    _launch(args, ["oracle"], page, console)


def _launch(args: Viewer, agents: list[str], page: dict[str, str], console: Console) -> None:
    try:
        from skillstack.viewer.launch import Launch, launch
        from skillstack.viewer.screen import Place
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("skillstack"):
            raise
        raise SkillstackError(
            f'The viewer needs "{error.name}", which is not installed: pip install "skillstack[viewer]" brings it.'
        ) from error
    place = Place(args.world, args.server)
    what = Launch(agents, args.host, args.port, args.allow_host, args.gallery, args.runs, args.browser, page, place)
    launch(what, console)


def bench(args: Bench, console: Console) -> None:
    import torch
    from rich.table import Table

    from skillstack.bench import RATIO_GOAL, measure_first_frame, measure_learning, measure_runner, measure_world

    if args.seconds <= 0:
        raise SkillstackError(f"The seconds to measure must be more than 0, not {args.seconds:g}.")
    if args.episodes < 1:
        raise SkillstackError(f"The runner must play at least one game, not {args.episodes}.")
    torch.set_num_threads(1)
    table = Table("games at once", "looks", "steps a second", "first frame after", title="The world, one thread")
    for num_envs, randomise in ((1, False), (64, False), (256, False), (256, True)):
        with console.status(f"stepping {num_envs} games"):
            speed = measure_world(num_envs, randomise, args.seconds)
        looks = "randomised" if randomise else "standard"
        table.add_row(f"{num_envs}", looks, f"{speed.steps_per_second:,.0f}", f"{speed.warm_up_seconds:.2f} s")
    console.print(table)
    with console.status("importing from nothing"):
        cold, warm = measure_first_frame()
    console.print(f"From import to the first frame: {cold:.1f} s with an empty compiler cache, {warm:.1f} s after.")
    with console.status("playing games with a four-level agent"):
        results = [measure_runner(shared_encoder=shared, episodes=args.episodes) for shared in (True, False)]
    for result in results:
        encoder = "one encoder for all levels" if result.shared_encoder else "an encoder for each level"
        console.print(
            f"The runner, 64 games, 4 levels, {encoder}: {result.steps_per_second:,.0f} primitive steps a second, "
            f"{result.ratio:.2f} of the speed of the bare forward passes; the goal is {RATIO_GOAL}.",
            highlight=False,
        )
        console.print("\n".join(result.timing.lines()), style="dim", highlight=False)
    encoders: tuple[Literal["frozen", "own"], ...] = ("frozen", "own")
    for encoder in encoders:
        with console.status(f"learning with an encoder that is {encoder}"):
            learning = measure_learning(encoder)
        console.print(
            f"Learning, {encoder} encoder: {learning.decisions_per_second:,.0f} decisions a second, "
            f"{learning.ratio:.2f} of the speed of the bare forward and backward passes; the goal is {RATIO_GOAL}.",
            highlight=False,
        )
    if not args.quick:
        _growth(args.episodes, console)


def _growth(episodes: int, console: Console) -> None:
    from rich.table import Table

    from skillstack.bench import measure_runner

    table = Table("levels", "items", "us a primitive step", "of the bare forward", title="How the cost grows")
    for levels, items in (*((levels, 6) for levels in range(1, 7)), *((4, items) for items in (12, 30, 60))):
        with console.status(f"playing with {levels} levels and {items} items"):
            result = measure_runner(levels, items, episodes=episodes)
        table.add_row(f"{levels}", f"{items}", f"{result.microseconds_per_step:,.0f}", f"{result.ratio:.2f}")
    console.print(table)


def check_world(args: CheckWorld, console: Console) -> None:
    from skillstack.worlds.conformance import check_world

    problems = check_world(_find(args.factory), args.games, args.steps)
    for problem in problems:
        console.print(f"- {problem}", highlight=False)
    if problems:
        raise SkillstackError(f"The world does not fulfil the contract in {len(problems)} ways.")
    console.print("The world fulfils the contract.")


def _find(place: str) -> Callable[[int], Any]:
    """The function that a user names as "module:function"."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # worlds of one's own usually lie in the current folder
    try:
        found: Any = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise SkillstackError(f'"{module}" cannot be imported: {error}.') from error
        raise SkillstackError(f'There is no module "{module}" here; say "module:function".') from error
    except Exception as error:  # whatever a user's own module may raise
        raise SkillstackError(f'"{module}" cannot be imported: {type(error).__name__}: {error}.') from error
    if not callable(found):
        raise SkillstackError(f'"{module}" has no function "{name}"; say "module:function".')
    function: Callable[[int], Any] = found
    return function


def train(args: Train, console: Console) -> None:
    from skillstack.learning import run

    if args.resume is not None:
        run.resume(args.resume, console)
        return
    config, agent = _start(args)
    path = args.run or Path("runs") / f"{args.preset}-{args.seed}"
    console.print(run.describe(config, agent), highlight=False)
    if args.dry_run:
        return
    console.print(f"The run is in {path}.", highlight=False)
    command = shlex.join(["skillstack", *sys.argv[1:]])
    if args.fork is not None:
        run.fork(args.fork, config, path, console, command)
    else:
        run.begin(config, path, console, agent, command)


def _start(args: Train) -> tuple[TrainConfig, Agent | None]:
    """The settings of a run, and the agent that it starts from, if it does not start from nothing."""
    from skillstack.learning import run
    from skillstack.rollout.casting import SHIPPED
    from skillstack.shipped import shipped_agent

    config, added = args.settings(), bool(args.add or args.add_items)
    if args.from_agent is None:
        if added or args.tune:
            flag = "--tune learns on with" if args.tune else "--add and --add-items put a stage on top of"
            raise SkillstackError(f"{flag} a finished agent: name it with --from.")
        return config, None
    if args.tune and (added or args.flat):
        raise SkillstackError("--tune learns on with what the agent knows: leave out --add, --add-items and --flat.")
    if args.flat and added:
        raise SkillstackError("The flat baseline learns what --stages says; --add is for a hierarchy.")
    path = shipped_agent() if args.from_agent == Path(SHIPPED) else args.from_agent
    if args.flat:
        return config, run.flat_from(path, config)
    return run.tune(path, config) if args.tune else run.add_stage(path, args.add, args.add_items, config)


def reproduce(args: Reproduce, console: Console) -> None:
    from skillstack.experiments.reproduce import Places, reproduce
    from skillstack.experiments.settings import Settings

    settings = Settings(args.preset, args.encoder, args.seeds, args.scale)
    if not reproduce(args.names, settings, Places(args.runs, args.out), args.jobs, console):
        raise SkillstackError("Not everything could be finished: what failed is named above and on the page.")


COMMANDS: dict[type, Callable[[Any, Console], None]] = {
    Train: train,
    Plan: plan,
    View: view,
    Play: play,
    Evaluate: evaluate,
    ShowGrammar: grammar,
    Reproduce: reproduce,
    Bench: bench,
    CheckWorld: check_world,
}

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


def _preset(arguments: list[str]) -> Train:
    """The settings that the other flags change; what is no preset is left for the parser to refuse."""
    names = [
        follower if word == "--preset" else word.removeprefix("--preset=")
        for word, follower in zip(arguments, [*arguments[1:], ""], strict=True)
        if word == "--preset" or word.startswith("--preset=")
    ]
    name: Any = names[-1] if names and names[-1] in PRESETS else Train.preset
    return Train(preset=name, **{field.name: getattr(PRESETS[name], field.name) for field in fields(TrainConfig)})


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == ["--version"]:
        print(f"skillstack {__version__}")
        return 0
    try:
        args = tyro.cli(  # type: ignore[call-overload]
            Command,
            prog="skillstack",
            description=DESCRIPTION,
            args=arguments or ["--help"],
            **({"default": _preset(arguments)} if arguments[:1] == ["train"] else {}),
        )
        COMMANDS[type(args)](args, Console())
    except SkillstackError as error:
        print(f"skillstack: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
