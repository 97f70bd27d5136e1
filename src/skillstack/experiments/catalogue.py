"""All experiments by name: what each trains and measures for a seed, and what the paper says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skillstack.errors import unknown
from skillstack.experiments import claims
from skillstack.experiments.claims import Claim
from skillstack.experiments.data import Data
from skillstack.experiments.jobs import Job, Measuring, Test, Training, room_of
from skillstack.experiments.ladder import (
    FLAT,
    FULL,
    REVERSED,
    ablations,
    flat_ladder,
    flat_on,
    forks,
    ladder,
    terminal,
    variation,
    wide_flat,
)
from skillstack.experiments.plans import Planning
from skillstack.experiments.settings import Settings
from skillstack.instructions import SKILLS
from skillstack.learning.config import TrainConfig


@dataclass(frozen=True)
class Plotted:
    """A run whose learning curve is shown."""

    panel: str
    method: str
    job: Training
    novel_only: bool = False


@dataclass(frozen=True)
class Measured:
    """An agent whose success is shown."""

    method: str
    job: Measuring


@dataclass(frozen=True)
class Parts:
    """What an experiment consists of for one seed."""

    training: Sequence[Training]
    """All runs, those that others start from too."""
    plotted: Sequence[Plotted] = ()
    measured: Sequence[Measured] = ()
    planning: Planning | None = None

    @property
    def jobs(self) -> list[Job]:
        last = [self.planning] if self.planning else []
        return [*self.training, *(measured.job for measured in self.measured), *last]


@dataclass(frozen=True)
class Experiment:
    """One figure or table."""

    name: str
    title: str
    about: str
    """What is done, for the page."""
    parts: Callable[[Settings, int], Parts]
    claims: Callable[[Data], list[Claim]]


def figure_get(settings: Settings, seed: int) -> Parts:
    below, full = ladder(settings, seed, SKILLS[:2])
    runs = {FULL: full}
    for method, changes in ablations(settings).items():
        runs[method] = variation(settings, seed, SKILLS[:2], method, below, **changes)
    runs[FLAT] = flat_ladder(settings, seed, 1)[-1]
    return Parts([below, *runs.values()], [Plotted("pi_1", method, job) for method, job in runs.items()])


def figure_stack(settings: Settings, seed: int) -> Parts:
    levels, flats = ladder(settings, seed, SKILLS), flat_ladder(settings, seed, 3)
    runs = {FULL: levels[-1], **forks(settings, seed, levels[-1]), FLAT: flats[-1]}
    plotted = [Plotted("pi_3, phase 2", method, job, novel_only=True) for method, job in runs.items()]
    return Parts([*levels, *flats[1:-1], *list(runs.values())[1:]], plotted)


def figure_curriculum(settings: Settings, seed: int) -> Parts:
    levels = ladder(settings, seed, SKILLS)
    plotted, without = [], []
    for level in (1, 3):
        order = SKILLS[: level + 1]
        without.append(
            variation(settings, seed, order, "no-curriculum", levels[level - 1], level={"curriculum": False})
        )
        plotted.append(Plotted(f"pi_{level}", "two phases", levels[level]))
        plotted.append(Plotted(f"pi_{level}", "all tasks at once", without[-1]))
    return Parts([*levels, *without], plotted)


def table_rooms(settings: Settings, seed: int) -> Parts:
    levels, flats = ladder(settings, seed, SKILLS), flat_ladder(settings, seed, 3)
    rooms = {"small room": False, "big room": True}
    tests = [
        _test(settings, levels[-1].config, f"{room}, pi_{level}", level=level, big=big)
        for room, big in rooms.items()
        for level in range(len(levels))
    ]
    measured = [_measured(settings, "table-rooms", FULL, levels[-1], tests)]
    for skills, job in (("find, get, put", flats[2]), ("all skills", flats[3])):
        tests = [
            _test(settings, job.config, f"{room}, {budget}", budget=budget, big=big)
            for room, big in rooms.items()
            for budget in BUDGETS
        ]
        measured.append(_measured(settings, "table-rooms", f"{FLAT} for {skills}", job, tests))
    return Parts([*levels, *flats[1:]], measured=measured)


def distractors(settings: Settings, seed: int) -> Parts:
    below = terminal(settings, seed)
    runs = {
        "hierarchical": variation(settings, seed, SKILLS[:2], "alone", below, distractors=False),
        "flat": flat_on(settings, seed, 1, "flat-alone", below, distractors=False),
    }
    measured = []
    for method, job in runs.items():
        world = job.config
        tests = [
            _test(settings, world, "only the target", skills=("get",), distractors=False),
            _test(settings, world, "among others", skills=("get",), distractors=True, min_blocks=2),
        ]
        measured.append(_measured(settings, "distractors", method, job, tests))
    return Parts([below, *runs.values()], measured=measured)


def plans(settings: Settings, seed: int) -> Parts:
    levels = ladder(settings, seed, SKILLS)
    top = levels[-1]
    return Parts(
        levels,
        planning=Planning(
            f"{settings.variant}/plans-s{seed}", top.name, top.config.world(), top.config.limits, 20 * settings.games
        ),
    )


def no_penalty(settings: Settings, seed: int) -> Parts:
    below, full = ladder(settings, seed, SKILLS[:2])
    runs = {FULL: full, "no penalty": variation(settings, seed, SKILLS[:2], "no-penalty", below, penalty=False)}
    return Parts(
        [below, *runs.values()],
        [Plotted("pi_1", method, job) for method, job in runs.items()],
        [
            _measured(settings, "no-penalty", method, job, [_test(settings, full.config, "small room")])
            for method, job in runs.items()
        ],
    )


def stage_orders(settings: Settings, seed: int) -> Parts:
    ladders = {", ".join(order): ladder(settings, seed, order) for order in (SKILLS, REVERSED)}
    return Parts(
        [job for levels in ladders.values() for job in levels],
        measured=[
            _measured(settings, "stage-orders", order, levels[-1], [_test(settings, levels[-1].config, "small room")])
            for order, levels in ladders.items()
        ],
    )


def flat_capacity(settings: Settings, seed: int) -> Parts:
    levels, flats, wide = ladder(settings, seed, SKILLS), flat_ladder(settings, seed, 3), wide_flat(settings, seed)
    measured = [_measured(settings, "flat-capacity", FULL, levels[-1], [_test(settings, wide.config, BUDGETS[0])])]
    for method, job in ((FLAT, flats[-1]), ("wide flat policy", wide)):
        tests = [_test(settings, job.config, budget, budget=budget) for budget in BUDGETS]
        measured.append(_measured(settings, "flat-capacity", method, job, tests))
    return Parts([*levels, *flats[1:], wide], measured=measured)


def unseen_pairs(settings: Settings, seed: int) -> Parts:
    below = terminal(settings, seed)
    items = below.config.items
    left_out = (f"get {items[seed % len(items)]}",)  # another colour for each seed
    runs = {
        "hierarchical": variation(settings, seed, SKILLS[:2], "unseen", below, leave_out=left_out),
        "flat": flat_on(settings, seed, 1, "flat-unseen", below, leave_out=left_out),
    }
    return Parts(
        [below, *runs.values()],
        measured=[
            _measured(
                settings, "unseen-pairs", method, job, [_test(settings, job.config, "small room", skills=("get",))]
            )
            for method, job in runs.items()
        ],
    )


BUDGETS = ("the paper's limits", "the hierarchy's steps")
"""How many steps a flat policy has: those of one run of pi_0, or as many as a whole game of the hierarchy."""


def _test(
    settings: Settings,
    config: TrainConfig,
    label: str,
    *,
    level: int | None = None,
    skills: tuple[str, ...] = (),
    budget: str = BUDGETS[0],
    **room: Any,
) -> Test:
    limits = config.limits if budget == BUDGETS[0] else replace(config.limits, flat=config.limits.episode)
    return Test(label, room_of(config, **room), limits, settings.games, level, skills)


def _measured(settings: Settings, experiment: str, method: str, agent: Training, tests: Sequence[Test]) -> Measured:
    job = agent.name.rpartition("/")[2]
    return Measured(method, Measuring(f"{settings.variant}/measured/{experiment}-{job}", agent.name, tuple(tests)))


_ALL = (
    Experiment(
        "figure-get",
        "Figure 3a: learning pi_1",
        "The full model, its three ablations, and a flat policy fine-tuned from pi_0, all on the same pi_0.",
        figure_get,
        claims.figure_get,
    ),
    Experiment(
        "figure-stack",
        "Figure 3b: phase 2 of pi_3",
        "The same five methods. The ablations go on from the full model's state at the moment its phase 2 began; the "
        "flat policy learns all tasks from the flat policy for find, get and put.",
        figure_stack,
        claims.figure_stack,
    ),
    Experiment(
        "figure-curriculum",
        "Figure 4: the two-phase curriculum",
        "pi_1 and pi_3 with the base tasks first, and with all tasks from the start.",
        figure_curriculum,
        claims.figure_curriculum,
    ),
    Experiment(
        "table-rooms",
        "Table 1: success in the small and the big room",
        "All policies are trained in small rooms. Each level of the hierarchy is measured on all it knows. The flat "
        "policy is measured with the steps of one run of pi_0, and with as many as a whole game of the hierarchy has.",
        table_rooms,
        claims.table_rooms,
    ),
    Experiment(
        "distractors",
        "Section 5.4: trained with the target alone, tested among other blocks",
        'pi_1 and the flat policy, on a pi_0 that knows distractors, are trained for "get" with only the target there.',
        distractors,
        claims.distractors,
    ),
    Experiment(
        "plans",
        "Appendix C: composed plans",
        "Plans of real episodes, searched among games of the full model.",
        plans,
        claims.plans,
    ),
    Experiment(
        "no-penalty",
        "Asked by reviewers: without the -0.5",
        "pi_1 as in figure 3a, where uttering what cannot be executed costs nothing and does not end the game. Both "
        "are measured by the usual rules.",
        no_penalty,
        claims.no_penalty,
    ),
    Experiment(
        "stage-orders",
        "Asked by reviewers: another order of skills",
        'The ladder with "put" before "get".',
        stage_orders,
        claims.stage_orders,
    ),
    Experiment(
        "flat-capacity",
        "Asked by reviewers: a flat policy as large as the hierarchy",
        "One flat policy whose LSTM is so wide that it has as many parameters as all four levels, trained from nothing "
        "through the same stages and phases.",
        flat_capacity,
        claims.flat_capacity,
    ),
    Experiment(
        "unseen-pairs",
        "Asked by reviewers: unseen pairs of colour and skill",
        'For each seed one colour is left out of "get", though "find" knows it; all are then measured.',
        unseen_pairs,
        claims.unseen_pairs,
    ),
)

EXPERIMENTS = {experiment.name: experiment for experiment in _ALL}
ALL = "all"


def choose(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names, each once, in the catalogue's order; "all" is all of them."""
    for name in names:
        if name != ALL and name not in EXPERIMENTS:
            raise unknown("experiment", name, (*EXPERIMENTS, ALL))
    return [experiment for experiment in _ALL if ALL in names or experiment.name in names]
