"""The runs that experiments share: pi_0 of a seed, the levels above it, the methods compared, and the flat policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from skillstack.experiments.jobs import Start, Training
from skillstack.experiments.settings import Settings, changed
from skillstack.instructions import SKILLS
from skillstack.learning.config import TrainConfig

FULL, FLAT = "full model", "flat policy"

ABLATIONS: dict[str, dict[str, Any]] = {
    "no grammar": {"level": {"grammar": False}},
    "no alternation": {"a2c": {"alternation": False}},
    "no V_sw": {"a2c": {"switch_value": False}},
}
"""The variants of section 5.3, each with the one thing that it changes."""

REVERSED = ("find", "put", "get", "stack")


def ablations(settings: Settings) -> dict[str, dict[str, Any]]:
    """Those that change anything: levels that learn by PPO have neither alternation nor V_sw."""
    by_a2c = settings.config(0).level.method == "a2c"
    return {method: changes for method, changes in ABLATIONS.items() if by_a2c or "a2c" not in changes}


def terminal(settings: Settings, seed: int) -> Training:
    """pi_0 of a seed: the same for all presets and for all encoders, as it has only one."""
    config = replace(settings, preset="paper", encoder="frozen").config(seed, stages=SKILLS[0])
    return Training(f"pi0-s{seed}", config, kept=True)


def ladder(settings: Settings, seed: int, order: Sequence[str]) -> list[Training]:
    """The full model's levels for skills in this order, each on top of the one before; pi_0 first."""
    jobs = [terminal(settings, seed)]
    for level in range(1, len(order)):
        jobs.append(variation(settings, seed, order[: level + 1], "full", jobs[-1]))
    return jobs


def variation(
    settings: Settings, seed: int, order: Sequence[str], label: str, below: Training, **changes: Any
) -> Training:
    """A level on top of a finished one, with something changed."""
    natural = tuple(order) == SKILLS[: len(order)]
    name = f"pi{len(order) - 1}" if natural else "-".join(order)
    carries, top = natural and label == "full", len(order) == len(SKILLS)
    # Where the top level's novel phase begins, the ablations of figure 3b go on from it.
    config = settings.config(seed, stages=", ".join(order), fork_points=carries and top)
    return Training(
        f"{settings.variant}/{name}-{label}-s{seed}".replace(" ", "-"),
        changed(config, **changes),
        Start(below.name, "add", order[-1]),
        kept=carries and not top,
    )


def forks(settings: Settings, seed: int, full: Training) -> dict[str, Training]:
    """The ablations, all from the same state of the full model: that in which its novel phase began."""
    jobs = {}
    for method, changes in ablations(settings).items():
        name = full.name.replace("-full-", f"-{method.replace(' ', '-')}-")
        jobs[method] = Training(
            name, changed(replace(full.config, fork_points=False), **changes), Start(full.name, "fork")
        )
    return jobs


def flat_ladder(settings: Settings, seed: int, levels: int) -> list[Training]:
    """Flat policies for the tasks of the first stages, each fine-tuned from the one before; pi_0 first."""
    jobs = [terminal(settings, seed)]
    for stage in range(1, levels + 1):
        # Stage 3 has its novel phase alone, as in figure 3b: its base phase might never end.
        phases = {"level": {"curriculum": False}} if stage == len(SKILLS) - 1 else {}
        jobs.append(flat_on(settings, seed, stage, "flat", jobs[-1], **phases))
    return jobs


def flat_on(settings: Settings, seed: int, stage: int, label: str, below: Training, **changes: Any) -> Training:
    """A flat policy for the tasks of a stage, from the one for fewer tasks, with something changed."""
    config = settings.config(seed, stages=", ".join(SKILLS[: stage + 1]), flat=True)
    return Training(f"{settings.variant}/{label}{stage}-s{seed}", changed(config, **changes), Start(below.name, "flat"))


def wide_flat(settings: Settings, seed: int) -> Training:
    """A flat policy with about as many parameters as the hierarchy, from nothing through the same stages and phases."""
    config = settings.config(seed, flat=True)
    return Training(f"{settings.variant}/flat-wide-s{seed}", replace(config, lstm=matching_lstm(config)))


def matching_lstm(config: TrainConfig) -> int:
    """The LSTM with which one flat policy for all tasks has as many parameters as the hierarchy, within one unit."""
    from skillstack.learning.trainer import count_parameters

    hierarchy = count_parameters(replace(config, flat=False))
    low, high = config.lstm, 16384
    while low < high:
        middle = (low + high) // 2
        if count_parameters(replace(config, lstm=middle, flat=True)) < hierarchy:
            low = middle + 1
        else:
            high = middle
    return low
