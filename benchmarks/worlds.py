"""Agent steps a second of our world, beside the worlds one would take in its place: `make bench`.

Each measurement is a process of its own, pinned to one core; for two cores there are two at once, one on each, and
their rates are summed. All worlds take turns in every run. That alone does not make it fair on a busy machine: seen
here, beside the same load, ViZDoom's two processes kept 0.8 of two cores where a world of one process got 0.3. So each
measurement notes the share of its cores that it got, and only those that had them nearly alone count; the others are
repeated, and kept in the JSON. The table gives medians. Frames are rendered and games reset within the time; imports,
compiling and a second of stepping are not, and stand in a column of their own. Our world steps a batch of games in one
call, which the others cannot: they play one game in each process.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from peers import PEERS, SIZE, WARM_UP_SECONDS, Measurement
from rich.console import Console
from rich.table import Table

GOAL_AT_SIZE = 10.0
"""How many times the fastest peer at our size we want to be, on one core."""
GOAL_RAW = 5.0
"""And how many times ViZDoom raw, which draws more pixels but resizes nothing."""
RAW = "vizdoom-raw"
FAIR_SHARE = 0.85
"""A measurement that got less of its cores than this had other processes on them."""


@dataclass(frozen=True)
class Setup:
    """A way to use our vector environment."""

    label: str
    num_envs: int
    randomise: bool = False


HEADLINE = "rooms-256"
OURS = {
    HEADLINE: Setup("Rooms, 256 games", 256),
    "rooms-64": Setup("Rooms, 64 games", 64),
    "rooms-1": Setup("Rooms, 1 game", 1),
    "rooms-256-randomised": Setup("Rooms, 256 games, random looks", 256, randomise=True),
}


@dataclass(frozen=True)
class Args:
    """Measure our world, and with --peers the others, side by side."""

    peers: Path | None = None
    """The Python of an environment with the extra `bench`; without it, only our world is measured."""
    runs: int = 5
    """How many undisturbed measurements of each world are wanted; the median counts."""
    most_runs: int = 15
    """How often a world is measured at most to get them, when other processes disturb."""
    seconds: float = 3.0
    """How long each measurement takes, after its warm-up."""
    json: Path | None = None
    """Write every measurement and the medians to this file, as JSON."""
    measure: str | None = None
    """Measure one of our rows in this very process and print one line of JSON, as benchmarks/peers.py does."""


@dataclass(frozen=True)
class Sample:
    """One measurement of a world in one run."""

    name: str
    run: int
    cores: int
    rate: float
    """Agent steps a second, of all processes together."""
    warm_up_seconds: float
    frame: tuple[int, ...]
    share: float
    """How much of its cores' time it got, from start to end; other processes on them make rates too low."""

    @property
    def fair(self) -> bool:
        """Whether it had its cores nearly alone."""
        return self.share >= FAIR_SHARE


@dataclass(frozen=True)
class Summary:
    """The runs of one world on one or two cores."""

    median: float
    low: float
    high: float
    count: int


def measure_ours(name: str, seconds: float) -> Measurement:
    """Step our vector environment for about so many seconds, after a warm-up."""
    start = time.perf_counter()
    import gymnasium

    import skillstack  # noqa: F401  (registers the environment)

    setup = OURS[name]
    env = gymnasium.make_vec(
        "skillstack/Rooms-v0",
        num_envs=setup.num_envs,
        vectorization_mode="vector_entry_point",
        randomise=setup.randomise,
    )
    first, _ = env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.single_action_space.n, size=(1024, setup.num_envs))
    step_for(env, actions, WARM_UP_SECONDS)
    warm_up = time.perf_counter() - start
    steps, elapsed = step_for(env, actions, seconds)
    return Measurement(name, steps, elapsed, warm_up, first["image"].shape[1:])


def step_for(env: Any, actions: Any, seconds: float) -> tuple[int, float]:
    """Step until the time is up; agent steps taken by all games together, and seconds they took."""
    steps = ended = 0
    batches = cycle(actions)
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        _, _, terminated, truncated, _ = env.step(next(batches))
        steps += env.num_envs - ended  # a game that has ended starts anew at this step, and takes no action
        ended = int(np.count_nonzero(terminated | truncated))
    return steps, elapsed


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Within this, processes are started on this core only, and so are theirs: ViZDoom's engine is one."""
    if not hasattr(os, "sched_setaffinity"):  # not Linux
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def available_cores() -> list[int]:
    """The cores that this process may use, two at most."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return sorted(cores)[:2]


def start(name: str, args: Args, cache: str) -> subprocess.Popen[str]:
    """Start the process that measures a world."""
    here = Path(__file__).parent
    if name in OURS:
        command = [sys.executable, str(here / "worlds.py"), "--measure", name]
    else:
        command = [str(args.peers), str(here / "peers.py"), name]
    # A Numba cache of our own starts empty, so that the first warm-up of all shows what compiling costs.
    single = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "NUMBA_CACHE_DIR": cache}
    return subprocess.Popen(
        [*command, "--seconds", str(args.seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **single},
    )


def finish(process: subprocess.Popen[str]) -> Measurement | str:
    """The measurement that a process printed last, or a sentence about what went wrong."""
    out, err = process.communicate()
    try:
        line = json.loads(out.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        last = (err.strip().splitlines() or ["it said nothing"])[-1]
        return f"The process ended with code {process.returncode} and no result: {last}"
    if "error" in line:
        return str(line["error"])
    return Measurement(**{**line, "frame": tuple(line["frame"])})


def take(name: str, run: int, cores: list[int], args: Args, cache: str) -> Sample | str:
    """Measure a world with one process on each of the cores."""
    processes = []
    begin, worked = time.perf_counter(), children_seconds()
    for core in cores:
        with pinned(core):
            processes.append(start(name, args, cache))
    measured = [finish(process) for process in processes]  # all must end before the next world starts
    share = (children_seconds() - worked) / ((time.perf_counter() - begin) * len(cores))
    good = [m for m in measured if isinstance(m, Measurement)]
    if len(good) < len(measured):
        return next(m for m in measured if isinstance(m, str))
    rate = sum(m.steps / m.seconds for m in good)
    return Sample(name, run, len(cores), rate, max(m.warm_up_seconds for m in good), good[0].frame, share)


def children_seconds() -> float:
    """Processor time of all processes that were started here and have ended, and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def take_turns(args: Args, console: Console) -> list[Sample]:
    """All worlds in every run, on one core and on two, until each was measured often enough undisturbed."""
    cores = available_cores()
    names = [*OURS, *(PEERS if args.peers else ())]
    rows = [(name, count) for count in range(1, len(cores) + 1) for name in names]
    samples: list[Sample] = []
    failed: set[str] = set()
    with tempfile.TemporaryDirectory() as cache:
        for run in range(args.most_runs):
            done = Counter((sample.name, sample.cores) for sample in samples if sample.fair)
            lacking = [row for row in rows if done[row] < args.runs and row[0] not in failed]
            for name, count in lacking:
                # On one core, the runs go to both in turn: other load may sit on one of them.
                used = cores if count == len(cores) else [cores[run % len(cores)]]
                sample = take(name, run, used, args, cache) if name not in failed else None
                if isinstance(sample, Sample):
                    samples.append(sample)
                elif sample is not None:
                    failed.add(name)
                    console.print(f"{label(name)} is left out. {sample}", markup=False, soft_wrap=True)
            if lacking:
                console.print(f"Run {run + 1}: {len(lacking)} measurements.", style="dim")
    return samples


def label(name: str) -> str:
    """What a world is called in the table."""
    return OURS[name].label if name in OURS else PEERS[name].label


def summarise(samples: list[Sample]) -> dict[tuple[str, int], Summary]:
    """The undisturbed rates by world and number of cores."""
    rates: dict[tuple[str, int], list[float]] = {}
    for sample in filter(lambda sample: sample.fair, samples):
        rates.setdefault((sample.name, sample.cores), []).append(sample.rate)
    return {key: Summary(statistics.median(r), min(r), max(r), len(r)) for key, r in rates.items()}


def make_table(samples: list[Sample]) -> Table:
    """A row for each world, with how many times faster our main row is."""
    summaries = summarise(samples)
    counts = sorted({sample.cores for sample in samples})
    table = Table(title="Agent steps a second, random actions: median (lowest to highest; number of undisturbed runs)")
    table.add_column("world")
    table.add_column("frame")
    for count in counts:
        table.add_column("one core" if count == 1 else "two cores", justify="right")
        table.add_column("ours / it", justify="right")
    table.add_column("warm-up, s\n(first, later)", justify="right")
    for name in dict.fromkeys(sample.name for sample in samples):
        own = [sample for sample in samples if sample.name == name]
        cells = [cell for count in counts for cell in rate_cells(summaries, name, count)]
        table.add_row(label(name), " x ".join(map(str, own[0].frame)), *cells, warm_up_cell(own))
    return table


def rate_cells(summaries: dict[tuple[str, int], Summary], name: str, cores: int) -> tuple[str, str]:
    """The rate of a world, and how many times faster our main row is."""
    summary, ours = summaries.get((name, cores)), summaries.get((HEADLINE, cores))
    if summary is None:
        return "always disturbed", ""
    times = f"{ours.median / summary.median:.1f}" if ours else ""
    return f"{summary.median:,.0f} ({summary.low:,.0f} to {summary.high:,.0f}; {summary.count})", times


def warm_up_cell(samples: list[Sample]) -> str:
    """The first warm-up, with nothing cached, and the median of the later ones."""
    first, *later = [sample.warm_up_seconds for sample in samples]
    return f"{first:.1f}, {statistics.median(later):.1f}" if later else f"{first:.1f}"


def judge(samples: list[Sample], runs: int) -> list[str]:
    """A sentence for each goal: reached, missed, or why it cannot be said."""
    on_one = {name: s.median for (name, cores), s in summarise(samples).items() if cores == 1 and s.count >= runs}
    at_size = {sample.name for sample in samples if sample.name in PEERS and sample.frame[:2] == (SIZE, SIZE)}
    # Were one of them not measured often enough, it might be the fastest.
    fastest = max(at_size, key=on_one.__getitem__) if at_size and at_size <= on_one.keys() else None
    return [
        verdict(f"the fastest at {SIZE} x {SIZE}", fastest, on_one, GOAL_AT_SIZE),
        verdict("ViZDoom's raw frames", RAW, on_one, GOAL_RAW),
    ]


def verdict(against: str, peer: str | None, rates: dict[str, float], goal: float) -> str:
    """Whether we are so many times as fast as a peer."""
    if HEADLINE not in rates or peer not in rates:
        return f"Not judged: {goal:g} times {against}; there are too few undisturbed measurements on one core."
    times = rates[HEADLINE] / rates[peer]
    word = "Reached" if times >= goal else "Missed"
    return f"{word}: {times:.1f} times {against} ({label(peer)}) on one core; the goal is {goal:g}."


def name_disturbed(samples: list[Sample]) -> str:
    """A sentence on the measurements that do not count."""
    disturbed = sum(not sample.fair for sample in samples)
    return (
        f"{disturbed} of {len(samples)} measurements got less than {FAIR_SHARE:.0%} of their cores, "
        "for other processes, and do not count."
    )


def describe_machine() -> dict[str, Any]:
    """What a reader must know to compare numbers."""
    info = Path("/proc/cpuinfo")  # Linux; elsewhere Python's own word must do
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": len(available_cores()),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def write_json(path: Path, args: Args, machine: dict[str, Any], samples: list[Sample]) -> None:
    """Every measurement and the medians, for later comparison."""
    data = {
        "machine": machine,
        "runs": args.runs,
        "seconds": args.seconds,
        "samples": [asdict(sample) for sample in samples],
        "summary": [{"name": n, "cores": c, **asdict(s)} for (n, c), s in summarise(samples).items()],
        "goals": judge(samples, args.runs),
    }
    path.write_text(json.dumps(data, indent=1) + "\n")


def main() -> None:
    """Compare, or measure one of our rows for the comparison."""
    args = tyro.cli(Args)
    if args.measure is not None:
        print(json.dumps(asdict(measure_ours(args.measure, args.seconds))))
        return
    console = Console(width=None if sys.stdout.isatty() else 150)  # a file has no width of its own
    machine = describe_machine()
    console.print("{processor}, {cores} cores used, Python {python}, load {load:.1f} at the start".format(**machine))
    samples = take_turns(args, console)
    if samples:
        console.print(make_table(samples))
    for sentence in [name_disturbed(samples), *(judge(samples, args.runs) if args.peers else ())]:
        console.print(sentence, markup=False)
    if args.json is not None:
        write_json(args.json, args, machine, samples)


if __name__ == "__main__":
    main()
