"""`skillstack reproduce`: run what is missing, collect, draw, and write the page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from skillstack.disk import make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.experiments.catalogue import EXPERIMENTS, Experiment, Parts, choose
from skillstack.experiments.collecting import curve_of, run_of, scores_of
from skillstack.experiments.data import Data, check_replaceable, num_runs, write_data
from skillstack.experiments.figures import check_installed, draw, plan_name
from skillstack.experiments.jobs import Job, Looking, in_order
from skillstack.experiments.ladder import wide_flat
from skillstack.experiments.page import write_page
from skillstack.experiments.plans import SHARES
from skillstack.experiments.records import Records
from skillstack.experiments.schedule import run_jobs
from skillstack.experiments.settings import Settings

RESULTS_FOLDER, RECORDS_FOLDER = "results", "jobs"
DOCS_FOLDER, PAGE, FIGURES_FOLDER = "docs", "results.md", "results"


@dataclass(frozen=True)
class Places:
    """Where things go."""

    runs: Path
    """The folders of the runs."""
    out: Path
    """Data go into results/ there, the page and its figures into docs/."""

    @property
    def results(self) -> Path:
        return self.out / RESULTS_FOLDER

    @property
    def docs(self) -> Path:
        return self.out / DOCS_FOLDER


def reproduce(names: Sequence[str], settings: Settings, places: Places, workers: int, console: Console) -> bool:
    """Run the experiments of these names as far as they are not finished; returns whether nothing failed.

    When it is stopped, what is finished by then is written, too.
    """
    experiments = choose(names)
    if not experiments:
        raise SkillstackError(f"Name what to reproduce: {', '.join(EXPERIMENTS)}, or all.")
    if workers < 0:
        raise SkillstackError(f"Jobs at once must be at least 1, or 0 for one a core, not {workers}.")
    check_installed()
    for experiment in experiments:
        path = places.results / f"{experiment.name}-{settings.variant}.json"
        check_replaceable(path, settings.scale, settings.seeds)
    parts = [(experiment, _parts(experiment, settings)) for experiment in experiments]
    jobs = in_order([job for _, seeds in parts for part in seeds for job in part.jobs])
    records = Records(places.results / RECORDS_FOLDER, jobs, places.runs)
    records.check()
    for job in jobs:
        job.check(places.runs)
    records.restore()
    records.keep()  # what was finished by a command that was killed
    failed: dict[str, str] = {}
    try:
        failed = _run(jobs, records, places.runs, workers or os.cpu_count() or 1, console)
    except KeyboardInterrupt:
        _write(parts, settings, places, records, failed, console)
        raise
    _write(parts, settings, places, records, failed, console)
    return not failed


def _run(jobs: Sequence[Job], records: Records, runs: Path, workers: int, console: Console) -> dict[str, str]:
    """Run what is not finished; returns what failed, each with a sentence that says why."""
    left = records.left()
    if not left:
        console.print(f"All {len(jobs)} jobs are finished, nothing left to do.", highlight=False)
        return {}
    to_run = sum(not job.finished(runs) for job in left)
    if to_run < len(jobs):
        console.print(f"{len(jobs) - to_run} of {len(jobs)} jobs need not be run again.", highlight=False)
    return run_jobs(left, runs, workers, console, records.keep)


def _parts(experiment: Experiment, settings: Settings) -> list[Parts]:
    return [experiment.parts(settings, seed) for seed in range(settings.seeds)]


def _write(
    parts: Sequence[tuple[Experiment, Sequence[Parts]]],
    settings: Settings,
    places: Places,
    records: Records,
    failed: dict[str, str],
    console: Console,
) -> None:
    """What is finished of each experiment, unless there is nothing yet, or more is there already; and the page."""
    records.keep()
    for experiment, seeds in parts:
        data = collect(experiment, seeds, settings, records, failed)
        path = places.results / f"{data.name}.json"
        before = num_runs(path)
        if len(data.runs) >= max(before, 1):
            _write_one(experiment, data, places, console)
        elif data.runs:
            console.print(f"{path} stays as it is: it has {before} runs, and here {len(data.runs)} are finished.")
    write_results_page(places, console)


def _write_one(experiment: Experiment, data: Data, places: Places, console: Console) -> None:
    """Data, claims and figures of one experiment."""
    figures = draw(data, places.docs / FIGURES_FOLDER)
    extra = {
        "claims": [claim.to_json() for claim in experiment.claims(data)],
        "figures": [path.relative_to(places.docs).as_posix() for path in figures],
        "plans": [_described(data, plan) for plan in data.plans],
    }
    for path in [*write_data(data, places.results, extra), *figures]:
        console.print(f"Wrote {path}", highlight=False)


def collect(
    experiment: Experiment, parts: Sequence[Parts], settings: Settings, records: Records, failed: dict[str, str]
) -> Data:
    """The data of all seeds; what was not finished is left out, and named."""
    missing = {job.name: failed.get(job.name, "It is not finished.") for job in _jobs(parts) if job not in records}
    plans, shares = _plans(parts, records, missing)
    notes: dict[str, float] = {}
    if experiment.name == "flat-capacity":
        from skillstack.learning.trainer import count_parameters

        wide = wide_flat(settings, 0).config
        notes["parameters of the hierarchy"] = float(count_parameters(settings.config(0)))
        notes["parameters of the wide flat policy"] = float(count_parameters(wide))
        notes["hidden units of its LSTM"] = float(wide.lstm)
    return Data(
        experiment=experiment.name,
        variant=settings.variant,
        scale=settings.scale,
        seeds=settings.seeds,
        curves=tuple(
            curve_of(shown.job, records.read(shown.job), shown.panel, shown.method, novel_only=shown.novel_only)
            for part in parts
            for shown in part.plotted
            if shown.job.name not in missing
        ),
        scores=tuple(
            score
            for seed, part in enumerate(parts)
            for shown in part.measured
            if shown.job.name not in missing
            for score in scores_of(records.read(shown.job), shown.method, seed)
        ),
        runs=tuple(
            run_of(job, records.read(job))
            for job in {job.name: job for part in parts for job in part.training}.values()
            if job.name not in missing
        ),
        plans=plans,
        measuring=sum(
            records.read(job).get("seconds", 0.0)
            for job in {job.name: job for job in _jobs(parts)}.values()
            if isinstance(job, Looking) and job.name not in missing
        ),
        missing=missing,
        shares=shares,
        notes=notes,
    )


def _jobs(parts: Sequence[Parts]) -> Iterator[Job]:
    for part in parts:
        yield from part.jobs


def _plans(
    parts: Sequence[Parts], records: Records, missing: dict[str, str]
) -> tuple[tuple[dict[str, Any], ...], dict[str, tuple[float, ...]]]:
    """Of each kind the plan of the first seed that has one, and how often it occurs with each seed."""
    found: dict[str, dict[str, Any]] = {}
    shares: dict[str, tuple[float, ...]] = {}
    for part in parts:
        if part.planning is None or part.planning.name in missing:
            continue
        data = records.read(part.planning)
        for plan in data["plans"]:
            found.setdefault(plan["kind"], plan)
        for name in SHARES:
            if name in data["notes"]:
                shares[name] = (*shares.get(name, ()), data["notes"][name])
    return tuple(found.values()), shares


def _described(data: Data, plan: dict[str, Any]) -> dict[str, Any]:
    """A plan with what the page says of it."""
    from skillstack.rollout.plan import PlanTree
    from skillstack.rollout.plan_sentence import plan_sentence
    from skillstack.rollout.plan_text import plan_line

    tree = PlanTree.from_json(plan["plan"])
    figure = f"{FIGURES_FOLDER}/{plan_name(data, plan)}.svg"
    return {**plan, "line": plan_line(tree), "sentence": plan_sentence(tree), "figure": figure}


def write_results_page(places: Places, console: Console) -> None:
    """docs/results.md from all data that are there, whoever made them."""
    names = {experiment.name: (experiment.title, experiment.about) for experiment in EXPERIMENTS.values()}
    make_folder(places.docs)
    write_file(places.docs / PAGE, write_page(names, places.results).encode())
    console.print(f"Wrote {places.docs / PAGE}", highlight=False)
