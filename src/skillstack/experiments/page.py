"""docs/results.md, from the JSON under results/ alone: claims beside the paper's, and what is missing is said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillstack.experiments.claims import HIGHER, LOWER, NO, NOTHING, ONE_SEED, SAME, UNCLEAR, YES
from skillstack.experiments.data import read_result
from skillstack.experiments.plans import IN_FRONT, TWICE

HEAD = """# The paper, reproduced

Each section is made by `skillstack reproduce NAME`, and this page by all of them, from the data in `results/` alone. A
number is a mean over seeds (and colours, where there are colours) with its 95 % bootstrap interval; for four or more
seeds a measure of a learning curve is an interquartile mean. Success has the interquartile mean over seeds and colours
beside it (IQM). "agrees" compares intervals: "not clear" means that they overlap; a figure of the paper agrees if it
is no farther than 0.02 from our interval, and "no difference seen" says that intervals overlap where the claim is that
nothing changes. A method that learned its stage before its last episode counts from there on as it ended. An average
reward is of games as they are drawn, half of which are of new tasks in the novel phase. Rewards are put into [0, 1] as
in the paper: the least that a method can get, -0.5 for a hierarchy and 0 for a flat policy, is 0. Frames have 60 x 60
pixels in place of the paper's 84 x 84: a run takes half the time, and as many episodes.
"""

EVENING = """## With one evening

    skillstack reproduce figure-get --seeds 1 --out evening

trains pi_0 and then pi_1 by five methods with the shared frozen encoder, and writes its own page into `evening/`.{took}
The same command goes on where it was stopped. `skillstack reproduce all` does everything with three seeds, and
`--encoder own` gives each level an encoder of its own, as the paper has it.
"""

ERRATA = """## Errata

What was wrong in earlier versions of this page:

- Until commit 33e2d46 (18 November 2026) it showed table 1, figure 3a and plans of the preset "paper" as it was while
  its entropy bonus was the same for all tasks.
- Until commit abaf395 (18 November 2026) it showed figure 3a and plans of the preset "paper" as it was while a base
  phase waited for each base task by itself and all tasks of a novel phase were drawn alike.
- Until 18 November 2026 it showed pi_1, pi_3 and plans of the preset "paper" as it was before words of new skills
  started as zeros, before its entropy bonus and its shorter replay; those records are of commit 4f599ae.
- Until 17 November 2026 it showed figure 3a by five runs of seed 0 whose grammar was not smoothed and whose pi_0 had
  practised less; their cost was by the clock, with some 35 minutes of pauses in it.
- "Episodes until success is 0.9" looked at all tasks of a stage together and, shortly after the novel phase had begun,
  at games of the base phase, too. That would have favoured the two-phase curriculum; no figure had been published. Now
  each skill counts by the last 200 games of each of its tasks, which for a base skill may still be of the base phase.
"""

VERDICTS = {
    "agrees": (YES, SAME),
    "ours is higher": (HIGHER,),
    "differs": (NO, LOWER),
    "not clear": (UNCLEAR,),
    "still open": (NOTHING, ONE_SEED),
    "no figure to agree with": ("-",),
}
"""The columns at a glance, and the answers that each counts; "no difference seen" is what such a claim says."""

KINDS = {
    IN_FRONT: "Already in front of the target at the start: no call",
    TWICE: 'Two calls of "find" in a row: the first did not get there',
}


def write_page(names: Mapping[str, tuple[str, str]], results: Path) -> str:
    """The page's text. `names` has the title and a sentence of every experiment, those without data too."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for path in sorted(results.glob("*.json")):
        name = next((name for name in names if path.stem.startswith(f"{name}-")), None)
        if name is not None:
            found[name].append(read_result(path))
    everything = [data for part in found.values() for data in part]
    parts = [HEAD, _cost(everything), EVENING.format(took=_evening(found["figure-get"])), _glance(names, found)]
    for name, (title, about) in names.items():
        parts.append(f"## {title}\n\n`skillstack reproduce {name}`. {about}\n")
        parts += [_section(data) for data in found[name]] or ["**Missing:** this has not been run yet.\n"]
    return "\n".join([*parts, ERRATA])


def _glance(names: Mapping[str, tuple[str, str]], found: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """How many claims of each experiment agree."""
    head = ["experiment", "preset and encoder", *VERDICTS]
    lines = ["## At a glance\n", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, (title, _) in names.items():
        for data in found[name]:
            verdicts = [claim["agrees"] for claim in data["claims"]]
            counts = [str(sum(verdict in those for verdict in verdicts) or "") for those in VERDICTS.values()]
            preset, _, encoder = data["variant"].rpartition("-")
            lines.append(f"| {title} | {preset}, {encoder}, {_seeds(data)} | {' | '.join(counts)} |")
        if not found[name]:
            lines.append(f"| {title} | not run yet |{' |' * len(VERDICTS)}")
    return "\n".join(lines) + "\n"


def _seeds(data: dict[str, Any]) -> str:
    return "1 seed" if data["seeds"] == 1 else f"{data['seeds']} seeds"


def _cost(results: Iterable[dict[str, Any]]) -> str:
    """The whole cost; runs that several experiments share count once."""
    runs = {run["job"]: run for data in results for run in data["runs"]}
    if not runs:
        return "**Whole cost so far: none; nothing has been run yet.**\n"
    hours = sum(run["seconds"] for run in runs.values()) / 3600
    measuring = sum(data.get("measuring", 0.0) for data in results) / 3600
    steps = sum(run["steps"] for run in runs.values())
    toy = any(data["scale"] == "toy" for data in results)
    warning = " **At toy size, where nothing is learned: these numbers mean nothing.**" if toy else ""
    return (
        f"**Whole cost so far: {hours + measuring:.2f} core hours**, {hours:.2f} of training in {len(runs)} runs, "
        f"{steps:,} primitive steps, each run on one thread, and {measuring:.2f} of measuring.{warning}\n"
    )


def _evening(results: Iterable[dict[str, Any]]) -> str:
    """What the first seed of figure 3a took, once it is there."""
    for data in results:
        if data["variant"] == "paper-frozen" and not any(name.endswith("-s0") for name in data["missing"]):
            hours = sum(run["seconds"] for run in data["runs"] if run["seed"] == 0) / 3600
            return f" Its runs took {hours:.1f} hours of one core."
    return ""


def _section(data: dict[str, Any]) -> str:
    lines = [f"### {_variant(data['variant'])}, {_seeds(data)}\n", *_missing(data["missing"]), _table(data["claims"])]
    if not data["plans"]:
        pictures = [name for name in data["figures"] if name.endswith(".svg")]
        lines += [f"![{data['experiment']}, {data['variant']}]({name})\n" for name in pictures]
    for plan in data["plans"]:
        lines.append(f"{KINDS.get(plan['kind'], plan['kind'].capitalize())}: {plan['sentence']}\n")
        lines.append(f"![{plan['line']}]({plan['figure']})\n")
    lines += [f"{name.capitalize()}: {value:,.0f}.\n" for name, value in data["notes"].items() if not data["plans"]]
    lines.append(_took(data))
    return "\n".join(lines)


def _variant(variant: str) -> str:
    preset, _, encoder = variant.rpartition("-")
    words = {"frozen": "pi_0's encoder frozen and shared", "own": "an encoder of its own for each level"}
    learning = {"fast": "Preset fast at the levels (PPO with hindsight) on the same pi_0"}
    return f"{learning.get(preset, f'Preset {preset}')}, {words.get(encoder, encoder)}"


def _missing(missing: Mapping[str, str]) -> Iterable[str]:
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield f"**Missing:** {len(missing)} of its jobs {verb} not finished.\n"
        for name, why in missing.items():
            yield f"- `{name}`: {why}"
        yield ""


def _table(claims: Sequence[dict[str, Any]]) -> str:
    """One number a cell where they are the paper's table, and a line for each of the other claims."""
    placed = {tuple(claim["place"]): claim for claim in claims if claim.get("place")}
    others = _lines([claim for claim in claims if not claim.get("place")])
    return f"{_cells(placed)}\n{others}" if placed else others


def _cells(placed: Mapping[tuple[str, ...], dict[str, Any]]) -> str:
    rows, columns = (dict.fromkeys(place[side] for place in placed) for side in (0, 1))
    lines = [f"| ours; the paper's | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for row in rows:
        cells = [_cell(placed[row, column]) if (row, column) in placed else "" for column in columns]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(claim: dict[str, Any]) -> str:
    (ours,) = _ours(claim)
    return ours if claim["paper"] == "-" else f"{ours}; {claim['paper']} (agrees? {claim['agrees']})"


def _lines(claims: Sequence[dict[str, Any]]) -> str:
    head = "| the paper says | its figure | ours | agrees |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {claim['claim']} | {claim['paper']} | {'; '.join(_ours(claim)) or '-'} | {claim['agrees']} |\n"
        for claim in claims
    )


def _ours(claim: dict[str, Any]) -> list[str]:
    middle, unit = claim["middle"], claim["unit"]
    return [_number(name, value, unit, middle.get(name)) for name, value in claim["ours"].items()]


def _number(name: str, value: dict[str, Any] | None, unit: str, middle: dict[str, Any] | None) -> str:
    label = f"{name} " if name else ""
    if value is None:
        return f"{label}missing"
    form = ",.0f" if unit == "episodes" else ".3f"
    text = f"{label}{value['value']:{form}} [{value['low']:{form}}, {value['high']:{form}}]"
    return text + (f", IQM {middle['value']:{form}}" if middle else "")


def _took(data: dict[str, Any]) -> str:
    runs = data["runs"]
    if not runs:
        return "No run of it is finished.\n"
    minutes = [run["seconds"] / 60 for run in runs]
    episodes, steps = (sum(run[part] for run in runs) for part in ("episodes", "steps"))
    return (
        f"{len(runs)} runs took {episodes:,} episodes, {steps:,} primitive steps and {sum(minutes):,.1f} minutes of "
        f"one core, the longest {max(minutes):,.1f} minutes.\n"
    )
