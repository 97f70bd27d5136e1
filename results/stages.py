"""How soon the stages of runs were learned: python results/stages.py RUN [RUN ...] prints a line for each stage."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.learning.run_folder import read_metrics

SHARE = 0.9  # of a skill's last games; the paper's threshold
STAYS = 5  # turns in a row, as one may be luck


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("Say of which runs: python results/stages.py RUN [RUN ...]")
    print(
        f"| run | level | base phase ended after | new skill at {SHARE} after | all skills at {SHARE} after "
        "| at its end | episodes | minutes |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for path in sys.argv[1:]:
        try:
            turns = [line for line in read_metrics(Path(path)) if line["event"] == "turn"]
        except SkillstackError as error:
            sys.exit(str(error))
        for level, stage in groupby(turns, key=lambda turn: turn["level"]):
            print(f"| {Path(path).name} | pi_{level} | {' | '.join(_cells(list(stage)))} |")


def _cells(turns: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Of one stage; minutes are of computing time."""
    last = turns[-1]
    *_, new = last["windows"]
    yield _told(next((turn for turn in turns if turn["novel phase begins"]), None))
    yield _told(_reached(turns, [new]))
    yield _told(_reached(turns, list(last["windows"])))
    yield ", ".join(f"{skill} {share:.3f}" for skill, share in last["windows"].items())
    yield _told(last)
    yield f"{sum(turn['core seconds'] for turn in turns) / 60:.1f}"


def _reached(turns: Sequence[dict[str, Any]], skills: Sequence[str]) -> dict[str, Any] | None:
    """The turn by which all of these skills had stayed at SHARE, if there is one."""
    high = 0
    for turn in turns:
        high = high + 1 if all(turn["windows"].get(skill, 0.0) >= SHARE for skill in skills) else 0
        if high == STAYS:
            return turn
    return None


def _told(turn: dict[str, Any] | None) -> str:
    return "-" if turn is None else f"{turn['episodes']:,}"


if __name__ == "__main__":
    main()
