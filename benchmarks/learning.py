"""How soon "find" is learned: our fast preset beside Stable-Baselines3 contrib's RecurrentPPO, in one run.

    python benchmarks/learning.py --peer-python .venv-bench/bin/python

Both learn the first stage, one flat policy, in the same rooms, with networks of the same sizes, as many games
at once and as many threads, each in a process of its own, one after the other. The race ends when 0.9 of the last 200
games of each task were won, or at a cap of minutes or frames; then a ratio is "at least" what it was by then. The clock
runs while they play and learn; imports and compiling stand in a column of their own. Actions are drawn, not greedy.
RecurrentPPO's settings are in `recurrent_ppo.py`, with the reason for each that is not SB3's default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from recurrent_ppo import PEER, PeerConfig, Point, Race, Result, Terms, warm_up
from rich.console import Console
from rich.table import Table
from worlds import describe_machine

from skillstack import SkillstackError
from skillstack.learning.config import PRESETS, TrainConfig

OURS = "Skillstack"
SOURCES = Path(__file__).parent.parent / "src"


def usual_settings() -> TrainConfig:
    """Those of the preset that is measured."""
    return PRESETS["fast"]


@dataclass(frozen=True)
class Args:
    """Race our learner against RecurrentPPO, to a share of successes."""

    peer_python: Path | None = None
    """The Python of an environment with the extra `bench`; without it, only our learner is measured."""
    success: float = 0.9
    """The share of successes that ends the race."""
    minutes: float = 60.0
    """The most minutes that each may take."""
    frames: int = 10_000_000
    """The most frames that each may see."""
    threads: int = 0
    """Threads of the networks; 0 for one a core."""
    seed: int = 0
    """Of both."""
    json: Path | None = None
    """Write results, curves and settings to this file, as JSON."""
    ours: TrainConfig = field(default_factory=usual_settings)
    """Our settings; those of the games are RecurrentPPO's too."""
    peer: PeerConfig = field(default_factory=PeerConfig)
    """RecurrentPPO's own settings."""
    measure: Literal["ours"] | None = None
    """Let ours learn in this very process and print one line of JSON, as recurrent_ppo.py does."""

    def terms(self) -> Terms:
        return Terms(
            world=asdict(self.ours.world()),
            stages=self.ours.stages,
            max_steps=self.ours.limits.flat,
            games=self.ours.games,
            window=self.ours.level.window,
            target=self.success,
            minutes=self.minutes,
            frames=self.frames,
            threads=self.threads or os.cpu_count() or 1,
            seed=self.seed,
            peer=asdict(self.peer),
        )


def measure_ours(settings: TrainConfig, terms: Terms) -> Result:
    """Let our trainer learn its first stage until the race is over."""
    start = time.perf_counter()
    import torch

    from skillstack import __version__
    from skillstack.learning.trainer import Trainer

    torch.set_num_threads(terms.threads)
    warm_up(terms)
    trainer = Trainer(settings)
    stage = trainer.stage
    race = Race(terms, stage.curriculum)
    set_up = time.perf_counter() - start
    race.begin()
    while not race.over:
        stage.turn()
        race.count(stage.steps, stage.episodes)
    networks = (trainer.agent.levels[0], trainer.agent.encoders[0])
    parameters = sum(weights.numel() for network in networks for weights in network.parameters())
    return race.result(OURS, set_up, parameters, {"torch": torch.__version__, "skillstack": __version__})


def run(command: list[str], line: dict[str, Any], threads: int) -> Result | str:
    """The result that a process prints, or a sentence about what went wrong."""
    single = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        command, input=json.dumps(line) + "\n", capture_output=True, text=True, env={**os.environ, **single}
    )
    try:
        answer = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return f"The process ended with code {done.returncode} and no result: {last}"
    if "error" in answer:
        return str(answer["error"])
    return Result(**{**answer, "curve": [Point(**point) for point in answer["curve"]]})


def race_all(args: Args, console: Console) -> list[Result]:
    """One after the other, each with the machine to itself."""
    here, terms = Path(__file__).parent, args.terms()
    commands = {OURS: [sys.executable, str(here / "learning.py"), "--measure", "ours"]}
    lines = {
        OURS: {"settings": replace(args.ours, seed=args.seed).to_json(), "terms": asdict(terms)},
        PEER: asdict(terms),
    }
    if args.peer_python is not None:
        commands[PEER] = [str(args.peer_python), str(here / "recurrent_ppo.py")]
    results = []
    for name, command in commands.items():
        console.print(f"{name} learns, at most {terms.minutes:g} minutes; load {os.getloadavg()[0]:.1f}.", style="dim")
        result = run(command, lines[name], terms.threads)
        if isinstance(result, Result):
            results.append(result)
        else:
            console.print(f"{name} is left out. {result}", markup=False, soft_wrap=True)
    return results


def make_table(results: list[Result], terms: Terms) -> Table:
    """A row for each learner."""
    table = Table(
        title=f"{terms.stages.split(',')[0]}, to {terms.target:g} of the last {terms.window} games of each task"
    )
    for column in ("learner", "success", "minutes", "frames", "games", "frames a second", "parameters", "set-up, s"):
        table.add_column(column, justify="left" if column == "learner" else "right")
    for result in results:
        table.add_row(
            result.name,
            f"{result.success:.3f}" + ("" if result.reached else ", broken off"),
            f"{result.seconds / 60:.2f}",
            f"{result.frames:,}",
            f"{result.games:,}",
            f"{result.frames / max(result.seconds, 1e-9):,.0f}",
            f"{result.parameters:,}",
            f"{result.set_up_seconds:.1f}",
        )
    return table


def ratios(results: list[Result]) -> str:
    """The line that counts: how many times the clock and the frames of ours the peer needs."""
    found = {result.name: result for result in results}
    if OURS not in found or PEER not in found:
        return "There is no ratio: one of the two was not measured."
    ours, peer = found[OURS], found[PEER]
    if not ours.reached:
        return f"There is no ratio: ours came to {ours.success:.3f} only, {peer.name} to {peer.success:.3f}."
    least = "" if peer.reached else "at least "
    clock, frames = peer.seconds / ours.seconds, peer.frames / ours.frames
    so_far = "" if peer.reached else f", and was broken off at {peer.success:.3f}"
    return f"{peer.name} took {least}{clock:.1f} times our wall clock and {least}{frames:.1f} times our frames{so_far}."


def write_json(path: Path, args: Args, machine: dict[str, Any], results: list[Result]) -> None:
    """Everything, for later comparison."""
    data = {
        "machine": machine,
        "terms": asdict(args.terms()),
        "ours": args.ours.to_json(),
        "results": [asdict(result) for result in results],
        "ratios": ratios(results),
    }
    path.write_text(json.dumps(data, indent=1) + "\n")


def check(args: Args) -> None:
    """Refuse what would fail only after a long race."""
    if args.peer_python is not None and not args.peer_python.exists():
        raise SkillstackError(f"There is no Python {args.peer_python}; `make bench` makes one.")
    if args.json is not None and not args.json.parent.is_dir():
        raise SkillstackError(f"{args.json} cannot be written, as there is no folder {args.json.parent}.")
    if not 0 < args.success <= 1 or args.minutes <= 0 or args.frames < 1 or args.threads < 0:
        raise SkillstackError("The success is a share up to 1; minutes and frames are more than 0, threads 0 or more.")


def main() -> int:
    """Race both, or let ours learn for the race; returns the exit status."""
    try:
        args = tyro.cli(Args)
        check(args)
    except SkillstackError as error:
        print(error, file=sys.stderr)
        return 2
    if args.measure:
        told = json.loads(sys.stdin.readline())
        print(json.dumps(asdict(measure_ours(TrainConfig.from_json(told["settings"]), Terms(**told["terms"])))))
        return 0
    console = Console(width=None if sys.stdout.isatty() else 150)  # a file has no width of its own
    machine = describe_machine()
    console.print("{processor}, {cores} cores used, Python {python}, load {load:.1f} at the start".format(**machine))
    results = race_all(args, console)
    console.print(make_table(results, args.terms()))
    console.print(ratios(results), markup=False, highlight=False)
    if args.json is not None:
        write_json(args.json, args, machine, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
