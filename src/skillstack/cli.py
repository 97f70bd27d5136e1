"""The command line: parse, call, print. Bad input gets one clear sentence on standard error and exit status 2."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro
from rich.console import Console

from skillstack import Instruction, SkillstackError, __version__
from skillstack.learning.config import TrainConfig
from skillstack.options import (
    Bench,
    CheckWorld,
    Command,
    Evaluate,
    Plan,
    Play,
    Reproduce,
    ShowGrammar,
    Train,
    View,
    Viewer,
    with_preset,
)
from skillstack.worlds.making import USUAL_GAMES
from skillstack.worlds.world import Limits

if TYPE_CHECKING:
    from skillstack.policies.agent import Agent

DESCRIPTION = """Agents that learn skills in stages, call earlier skills by their names, and can always say their plan.

Try: skillstack view, skillstack plan "stack blue", or skillstack --version"""


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

    if sum(start is not None for start in (args.resume, args.fork, args.from_agent)) > 1:
        raise SkillstackError("A run starts from one place: say --resume, --fork or --from.")
    if args.resume is not None and args.dry_run:
        raise SkillstackError("--dry-run tells of runs that are not begun yet: leave out --resume.")
    if args.resume is not None:
        if args != replace(with_preset([]), resume=args.resume):
            raise SkillstackError("A run goes on with its own settings: say --resume RUN and nothing else.")
        run.resume(args.resume, console)
        return
    config, agent = _start(args)
    path = args.run or Path("runs") / f"{args.preset}-{args.seed}"
    console.print(run.describe(config, args.preset, agent, args.fork), highlight=False)
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
    if args.from_level is not None and (args.from_agent is None or args.flat):
        raise SkillstackError("--from-level is for a hierarchy that is named with --from.")
    if args.from_agent is None:
        if added or args.tune:
            flag = "--tune learns on with" if args.tune else "--add and --add-items put a stage on top of"
            raise SkillstackError(f"{flag} a finished agent: name it with --from.")
        return config, None
    if args.flat and added:
        raise SkillstackError("The flat baseline learns what --stages says; --add is for a hierarchy.")
    if not args.flat and args.tune == added:
        raise SkillstackError(
            "With --from say either --tune, to learn on with what the agent knows, or --add or --add-items, for more."
        )
    path = shipped_agent() if args.from_agent == Path(SHIPPED) else args.from_agent
    if args.flat:
        return config, run.flat_from(path, config)
    if args.tune:
        return run.tune(path, config, args.from_level)
    return run.add_stage(path, args.add, args.add_items, config, args.from_level)


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
            **({"default": with_preset(arguments)} if arguments[:1] == ["train"] else {}),
        )
        COMMANDS[type(args)](args, Console())
    except SkillstackError as error:
        print(f"skillstack: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a file that cannot be written, a connection that is gone
        where = f": {error.filename}" if error.filename else ""
        print(f"skillstack: {error.strerror or error}{where}.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
