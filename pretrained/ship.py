"""Make `pretrained/` of finished runs: python pretrained/ship.py RUN [RUN ...], each run on top of the one before.

RUN@LEVEL is a run of which only the levels up to that one were used. A run that went on with one level (--tune) gives
that level alone. "shipped" in place of the first run stands for all that the agent shipped now was made of.

The agent is saved in half precision, and what is evaluated is what was saved.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from skillstack.evaluation import Evaluation, Figures, dump_json, evaluate, ways
from skillstack.learning.run_folder import COMMAND_FILE
from skillstack.policies.agent import Agent
from skillstack.rollout.casting import SHIPPED, cast
from skillstack.rollout.runner import RunnerConfig
from skillstack.worlds.rooms import RoomsConfig

HERE = Path(__file__).parent
GAMES = 1_000  # of each skill
SEED = 2018  # of its games; no agent was chosen by these
PAPER = {
    "small": {"find": 0.995, "get": 0.970, "put": 1.00, "stack": 0.955},
    "big": {"find": 0.723, "get": 0.648, "put": 1.00, "stack": 0.613},
}
MARK = "<!-- the shipped agent, by pretrained/ship.py -->\n"
CURVE = ("level", "phase", "episodes", "steps", "seconds")
LEVELS = 4


def main() -> None:
    names = sys.argv[1:]
    before = names[:1] == [SHIPPED]
    used = [name.partition("@") for name in (names[1:] if before else names)]
    runs = {Path(name): int(level or LEVELS) for name, _, level in used}
    if not runs:
        sys.exit(f"Say of which runs: python pretrained/ship.py [{SHIPPED}] RUN[@LEVEL] [RUN ...]")
    torch.set_num_threads(1)
    made = json.loads((HERE / "config.json").read_text()) if before else []
    for run in runs:
        if run.name in [part["run"] for part in made]:
            sys.exit(
                f"The shipped agent has a run {run.name} already: restore pretrained/, or give this one another name."
            )
        made.append(_made(run))
    curve = _curve_before() if before else []
    curve += [row for run, top in runs.items() for row in _curve(run) if row["level"] <= top]
    _put_together(runs, Agent.load(HERE / "agent") if before else None).save(HERE / "agent", half=True)
    (HERE / "config.json").write_text(json.dumps(made, indent=1) + "\n")
    with (HERE / "metrics.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=["run", *CURVE, "success"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(curve)
    evaluations = [_evaluate(big) for big in (False, True)]
    (HERE / "evaluation.json").write_text(dump_json(evaluations))
    (HERE / "README.md").write_text(_page(made, curve, evaluations))
    front = HERE.parent / "README.md"
    start, _, rest = front.read_text().partition(MARK)
    front.write_text(start + MARK + _summary(evaluations) + MARK + rest.partition(MARK)[2])


def _made(run: Path) -> dict[str, Any]:
    """How a run was made: its command, and every setting."""
    settings = json.loads((run / "config.json").read_text())["config"]
    return {"run": run.name, "command": (run / COMMAND_FILE).read_text().strip(), "settings": settings}


def _put_together(runs: dict[Path, int], agent: Agent | None) -> Agent:
    """The levels of the runs, each of the last one that learned it, on those of an agent that is there already."""
    for run, highest in runs.items():
        other = Agent.load(run / "agent")
        other = other.truncated(min(highest, other.num_levels - 1))
        top = other.num_levels - 1
        if agent is None or other.num_levels > agent.num_levels:
            agent = other
        elif all(map(torch.equal, *([*one.encoder_of(top).state_dict().values()] for one in (agent, other)))):
            agent.levels[top].load_state_dict(other.levels[top].state_dict())
            agent.grammars[top] = other.grammars[top]
        else:
            sys.exit(f"The top level of {run} sees through another encoder than the levels above it.")
    assert agent is not None, "there are runs"
    return agent


def _curve_before() -> list[dict[str, Any]]:
    """The lines of the agent that is shipped now."""
    with (HERE / "metrics.csv").open(newline="") as file:
        return [{**row, **{name: int(row[name]) for name in CURVE if name != "phase"}} for row in csv.DictReader(file)]


def _curve(run: Path) -> list[dict[str, Any]]:
    """A line for every 25th turn, with the seconds of one core that its stage took so far."""
    rows, seconds, level = [], 0.0, None
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    turns = [event for event in events if event["event"] == "turn"]
    for number, turn in enumerate(turns):
        seconds = turn["core seconds"] + (seconds if turn["level"] == level else 0.0)
        level = turn["level"]
        last = number + 1 == len(turns) or turns[number + 1]["level"] != level
        if number % 25 == 0 or last:
            success = " ".join(f"{skill}={share:.3f}" for skill, share in turn["windows"].items())
            kept = {name: turn[name] for name in CURVE}
            rows.append({"run": run.name, **kept, "seconds": round(seconds), "success": success})
    return rows


def _evaluate(big: bool) -> Evaluation:
    world, player = cast(SHIPPED, RoomsConfig(big=big), 64)
    return evaluate(world, player, RunnerConfig(), GAMES, seed=SEED, agent=SHIPPED)


def _summary(evaluations: list[Evaluation]) -> str:
    """The table of the project's front page."""
    lines = [f"| success, {GAMES:,} games each | find | get | put | stack |", "|---|---|---|---|---|"]
    for result in evaluations:
        room = result.room or "small"
        ours = " | ".join(f"**{figures.success:.3f}**" for figures in result.skills)
        paper = " | ".join(f"{PAPER[room][figures.skill]:.3f}" for figures in result.skills)
        lines += [f"| {room} room, shipped agent | {ours} |", f"| {room} room, the paper | {paper} |"]
    return "\n".join(lines) + "\n"


def _page(made: Sequence[dict[str, Any]], curve: list[dict[str, Any]], evaluations: list[Evaluation]) -> str:
    ends = {(row["run"], row["level"]): row for row in curve}
    minutes = sum(row["seconds"] for row in ends.values()) / 60
    lines = [
        "# The shipped agent",
        "",
        "Made by these commands, each at the commit named, and then by `python pretrained/ship.py` of the runs, which",
        "writes all of this folder. `config.json` has every setting of each run, `metrics.csv` how it learned. In a",
        "command, `shipped` is the agent that the commit had; one marked `dirty` had changes that are not in it.",
        "",
        *[f"    {run['command']}" for run in made],
        "",
        "| run | level | episodes | primitive steps | minutes of one core |",
        "|---|---|---|---|---|",
        *[
            f"| {run} | pi_{level} | {row['episodes']:,} | {row['steps']:,} | {row['seconds'] / 60:.0f} |"
            for (run, level), row in ends.items()
        ],
        "",
        f"In all {minutes:.0f} minutes of one core.",
        "",
        f"{GAMES:,} games of each skill, seed {SEED}, on which it was neither trained nor chosen (`evaluation.json`);",
        "it has never seen the big room before. Steps are of games that were won; there are at most 200 in a game, 10",
        "decisions of each level above pi_0, and 40 steps of pi_0.",
        "",
        "| room | skill | success | 95 % interval | the paper | mean steps; the shortest | their ratio | mean ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in evaluations:
        room = result.room or "small"
        lines += [
            f"| {room} | {figures.skill} | {figures.success:.3f} | {figures.success_low:.3f} to "
            f"{figures.success_high:.3f} | {PAPER[room][figures.skill]:.3f} | {_ways([figures])} |"
            for figures in result.skills
        ]
        lines.append(f"| {room} | all | | | | {_ways(result.skills)} |")
    return "\n".join(lines) + "\n"


def _ways(skills: Sequence[Figures]) -> str:
    """Mean steps of the games that were won, the shortest, their ratio, and for a single skill the mean ratio."""
    taken = ways(skills)
    if taken is None:
        return "none was won | |"
    steps, shortest = taken
    mean = f" {skills[0].ratio:.2f}" if len(skills) == 1 else ""
    return f"{steps:.1f}; {shortest:.1f} | {steps / shortest:.2f} |{mean}"


if __name__ == "__main__":
    main()
