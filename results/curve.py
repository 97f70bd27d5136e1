"""Keep the curve of a run beside the others: python results/curve.py RUN NAME writes results/NAME.csv."""

from __future__ import annotations

import csv
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.instructions import SKILLS
from skillstack.learning.run_folder import read_metrics

TURNS = 25  # a line for so many turns, and one for the last of each stage
FIELDS = ("level", "phase", "episodes", "steps", *SKILLS, "not executable", "length", "seconds")


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("Say of which run, and its name here: python results/curve.py RUN NAME")
    path = Path(__file__).parent / f"{sys.argv[2]}.csv"
    if path.exists():
        sys.exit(f"{path} is there already: choose another name, or remove it.")
    try:
        turns = [line for line in read_metrics(Path(sys.argv[1])) if line["event"] == "turn"]
    except SkillstackError as error:
        sys.exit(str(error))
    passed = accumulate(turn["seconds"] for turn in turns)  # by the clock, since the run began
    turns = [{**turn, "seconds": round(seconds)} for turn, seconds in zip(turns, passed, strict=True)]
    rows = [_row(turn) for turn in _some(turns)]
    if not rows:
        sys.exit(f"{sys.argv[1]} has not taken a turn yet.")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _some(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    levels = [*(turn["level"] for turn in turns[1:]), None]
    return [
        turn
        for number, (turn, following) in enumerate(zip(turns, levels, strict=False))
        if number % TURNS == 0 or turn["level"] != following
    ]


def _row(turn: dict[str, Any]) -> dict[str, Any]:
    """With the success of each skill over the last games of its tasks."""
    row = {name: turn[name] for name in FIELDS if name in turn}
    shares = {skill: round(share, 4) for skill, share in turn["windows"].items()}
    return row | shares | {name: round(turn[name], 4) for name in ("not executable", "length")}


if __name__ == "__main__":
    main()
