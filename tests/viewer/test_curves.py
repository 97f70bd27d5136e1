"""Learning curves, from the metrics of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from viewer_helpers import turn

from skillstack import SkillstackError
from skillstack.learning.run_folder import METRICS_FILE, RunFolder
from skillstack.viewer.curves import MOST_POINTS, Runs, stages


def learned(level: int, episodes: int) -> dict[str, Any]:
    return {"event": "stage learned", "level": level, "episodes": episodes}


def test_stages_follow_each_other_along_the_episodes_with_their_switches() -> None:
    events = [
        turn(0, 8, find=0.25), turn(0, 16, find=0.5), learned(0, 16),
        turn(1, 8, find=0.5), turn(1, 16, True, find=0.75), turn(1, 24, find=0.75, get=0.125),
    ]  # fmt: skip
    first, second = stages(events)
    assert first["points"] == [[8, {"find": 0.25}, 0.5], [16, {"find": 0.5}, 0.5]]
    assert (first["learned"], first["switches"], first["begins"]) == (True, [], 0)
    assert (second["learned"], second["switches"], second["begins"]) == (False, [32], 16)
    assert second["points"][-1] == [40, {"find": 0.75, "get": 0.125}, 0.5]


def test_long_runs_are_thinned_and_keep_their_newest_point() -> None:
    (stage,) = stages([turn(0, number, find=0.5) for number in range(1, 1001)])
    assert len(stage["points"]) <= MOST_POINTS
    assert stage["points"][-1][0] == 1000


def test_a_run_is_told_anew_only_when_something_has_come(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    with RunFolder.create(tmp_path / "one", {"seed": 1}) as folder:
        assert runs.curves("one")["stages"] == []
        folder.append(turn(0, 8, find=0.5))
        told = runs.curves("one")
        assert told["stages"][0]["points"] == [[8, {"find": 0.5}, 0.5]]
        assert runs.curves("one", told["size"]) == {"run": "one", "size": told["size"]}
        folder.append(turn(0, 16, find=0.75))
        (tmp_path / "one" / METRICS_FILE).open("ab").write(b'{"half')  # it is being written
        assert len(runs.curves("one", told["size"])["stages"][0]["points"]) == 2
    assert runs.names() == ["one"]


@pytest.mark.parametrize("name", ["..", "../other", "/etc", ""])
def test_a_name_is_one_of_those_shown_and_never_a_path(tmp_path: Path, name: str) -> None:
    RunFolder.create(tmp_path / "runs" / "one", {}).close()
    RunFolder.create(tmp_path / "other", {}).close()
    with pytest.raises(SkillstackError, match="There is no run"):
        Runs(tmp_path / "runs").curves(name)
