"""Figures as SVG and PNG: curves with mean, band and every single run, bars of success, and plans as trees."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from skillstack.disk import make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.experiments.data import Data
from skillstack.experiments.statistics import band

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000")
"""Okabe and Ito's, which people with any kind of colour vision can tell apart; lines differ in their dashes, too."""
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)), "-")
GRID_POINTS = 200
MOST_COLUMNS = 3
NEEDED = 'Figures need matplotlib: pip install "skillstack[reproduce]" brings it.'


def draw(data: Data, folder: Path) -> list[Path]:
    """All figures of an experiment; the files."""
    if data.plans:
        return _draw_plans(data, folder)
    files = []
    if data.curves:
        files += _save(_curves(data), folder, f"{data.name}-curves")
    if data.scores:
        files += _save(_bars(data), folder, f"{data.name}-success")
    return files


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "skillstack"  # the same data give the same file
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    return pyplot


def check_installed() -> None:
    """Before long work whose end would need it."""
    if find_spec("matplotlib") is None:
        raise SkillstackError(NEEDED)


def _curves(data: Data) -> Any:
    """A panel for each level: mean and band over seeds, single runs faintly, where phases switch as vertical lines."""
    figure, axes = _pyplot().subplots(
        1, len(data.panels), figsize=(6.4 * len(data.panels), 4.2), squeeze=False, layout="constrained"
    )
    for place, panel in zip(axes[0], data.panels, strict=True):
        for number, method in enumerate(data.methods):
            curves = [curve for curve in data.curves if (curve.panel, curve.method) == (panel, method)]
            if curves:
                _draw_method(place, curves, method, COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)])
        place.set(title=panel, xlabel="episodes", ylabel="average reward in [0, 1]", ylim=(0, 1.02), xlim=(0, None))
        place.grid(alpha=0.25)
        place.legend(loc="lower right", fontsize="small")
    return figure


def _draw_method(place: Any, curves: Sequence[Any], method: str, colour: str, dashes: Any) -> None:
    grid = np.linspace(0, max(curve.most for curve in curves), GRID_POINTS + 1)[1:]
    grid = grid[grid >= min(curve.episodes[0] for curve in curves)]
    mean, low, high = band([curve.on_grid(grid) for curve in curves])
    for curve in curves:
        place.plot(curve.episodes, curve.reward, color=colour, alpha=0.25, linewidth=0.7)
        if curve.switch is not None:
            place.axvline(curve.switch, color=colour, alpha=0.6, linewidth=0.9, linestyle=dashes, ymax=0.06)
    place.plot(grid, mean, color=colour, linestyle=dashes, linewidth=1.8, label=method)
    place.fill_between(grid, low, high, color=colour, alpha=0.15, linewidth=0)


def _bars(data: Data) -> Any:
    """A panel for each test: success of each method by skill; a dot is one seed."""
    tests = list(dict.fromkeys(score.test for score in data.scores))
    rows = {test: list(dict.fromkeys((s.method, s.skill) for s in data.scores if s.test == test)) for test in tests}
    columns = min(len(tests), MOST_COLUMNS)
    lines = -(-len(tests) // columns)
    size = (5.6 * columns, (1.1 + 0.26 * max(map(len, rows.values()))) * lines)
    figure, axes = _pyplot().subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for place, test in zip_longest(axes.flat, tests):
        if test is None:
            place.axis("off")
        else:
            _draw_test(place, data, test, rows[test])
    return figure


def _draw_test(place: Any, data: Data, test: str, rows: Sequence[tuple[str, str]]) -> None:
    skills = list(dict.fromkeys(score.skill for score in data.scores))
    for y, (method, skill) in enumerate(rows):
        found, seeds = data.success(method, test, skill), _by_seed(data, method, test, skill)
        assert found is not None, "the rows are those that were measured"
        colour = COLOURS[skills.index(skill) % len(COLOURS)]
        place.barh(y, found.value, color=colour, alpha=0.45)
        place.plot([found.low, found.high], [y, y], color="black", linewidth=1.2)
        place.plot(seeds, [y] * len(seeds), "o", color=colour, markersize=3, alpha=0.9)
    place.set(title=test, xlabel="success", xlim=(0, 1.02))
    place.set(yticks=range(len(rows)), yticklabels=[", ".join(row) for row in rows])
    place.tick_params(axis="y", labelsize="small")
    place.invert_yaxis()
    place.grid(axis="x", alpha=0.25)


def _by_seed(data: Data, method: str, test: str, skill: str) -> list[float]:
    found: dict[int, list[float]] = {}
    for score in data.scores:
        if (score.method, score.test, score.skill) == (method, test, skill):
            found.setdefault(score.seed, []).append(score.success)
    return [float(np.mean(values)) for values in found.values()]


def _save(figure: Any, folder: Path, name: str) -> list[Path]:
    make_folder(folder)
    paths = [folder / f"{name}.svg", folder / f"{name}.png"]
    figure.savefig(paths[0], metadata={"Date": None})
    figure.savefig(paths[1], dpi=110, metadata={"Software": None})
    _pyplot().close(figure)
    return paths


# Plans


def _draw_plans(data: Data, folder: Path) -> list[Path]:
    """Each plan as a tree with thumbnails (SVG), and what was seen along it (PNG)."""
    from skillstack.rollout.plan import PlanTree
    from skillstack.rollout.plan_svg import plan_svg
    from skillstack.rollout.replay import replay
    from skillstack.worlds.rooms import RoomsConfig, RoomsWorld

    make_folder(folder)
    files = []
    for plan in data.plans:
        tree = PlanTree.from_json(plan["plan"])
        recording = replay(RoomsWorld(RoomsConfig.from_json(tree.settings["world"])), tree, map_size=0)
        name = plan_name(data, plan)
        write_file(folder / f"{name}.svg", plan_svg(tree, recording).encode())
        _film(tree, recording).savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})
        files += [folder / f"{name}.svg", folder / f"{name}.png"]
    _pyplot().close("all")
    return files


def plan_name(data: Data, plan: dict[str, Any]) -> str:
    return f"{data.name}-{plan['kind'].replace(' ', '-')}"


def _film(tree: Any, recording: Any, most: int = 8) -> Any:
    """What was seen at the start and after each decision of the top level, under the plan in one line."""
    from skillstack.rollout.plan import LIMIT
    from skillstack.rollout.plan_text import SIGNS, plan_line

    steps = [0, *(decision.step for decision in tree.root.decisions[1:]), tree.steps]
    steps = sorted(set(steps))[-most:]
    figure, axes = _pyplot().subplots(
        1, len(steps), figsize=(1.7 * max(len(steps), 3), 2.3), squeeze=False, layout="constrained"
    )
    for place, step in zip(axes[0], steps, strict=True):
        place.imshow(recording.frames[step], interpolation="nearest")
        place.set_title(f"step {step}", fontsize="small")
        place.axis("off")
    line = plan_line(tree).replace(SIGNS[LIMIT], "(out of steps)")  # the figures' font has no such sign
    figure.suptitle(line, fontsize="small", wrap=True)
    return figure
