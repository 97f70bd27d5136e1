"""The race of `benchmarks/learning.py`, at toy size, and what it makes of its results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
TOY = [
    "--threads", "1", "--frames", "100", "--ours.room-width", "3", "--ours.room-depth", "3", "--ours.max-blocks", "2",
    "--ours.image-size", "36", "--ours.games", "4", "--ours.limits.flat", "6", "--peer.n-steps", "4",
    "--peer.batch-size", "8", "--peer.n-epochs", "1",
]  # fmt: skip
PEER = sorted(ROOT.glob(".venv-bench/lib/*/site-packages/sb3_contrib"))
"""Where RecurrentPPO is: `make bench` brings it."""


@pytest.fixture
def race() -> Iterator[Any]:
    """The benchmark as a module; it imports its neighbours by name, as scripts do."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import learning

        yield learning
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture
def peer(race: Any) -> Any:
    import recurrent_ppo

    return recurrent_ppo


def result(race: Any, name: str, **changes: Any) -> Any:
    fields = {"reached": True, "seconds": 60.0, "frames": 1000, "games": 50, "success": 0.9, "set_up_seconds": 1.0}
    return race.Result(name, parameters=1, versions={}, curve=[], **{**fields, **changes})


def test_the_ratios_are_of_the_peer_over_ours(race: Any) -> None:
    both = [result(race, race.OURS), result(race, race.PEER, seconds=600.0, frames=3500)]
    assert race.ratios(both) == "RecurrentPPO took 10.0 times our wall clock and 3.5 times our frames."


def test_a_peer_that_was_broken_off_took_at_least_so_much(race: Any) -> None:
    both = [result(race, race.OURS), result(race, race.PEER, reached=False, seconds=600.0, success=0.41)]
    assert "at least 10.0 times our wall clock and at least 1.0 times" in race.ratios(both)
    assert race.ratios(both).endswith("broken off at 0.410.")


def test_there_is_no_ratio_where_ours_did_not_get_there_or_nobody_raced(race: Any) -> None:
    late = result(race, race.OURS, reached=False, success=0.5)
    assert "ours came to 0.500 only" in race.ratios([late, result(race, race.PEER)])
    assert "was not measured" in race.ratios([late])


def test_a_learner_that_fails_is_told_in_a_sentence(race: Any) -> None:
    assert "no result: it said nothing" in race.run([sys.executable, "-c", "pass"], {}, 1)
    assert race.run([sys.executable, "-c", 'print(\'{"error": "No."}\')'], {}, 1) == "No."


def test_both_play_the_same_games(race: Any, peer: Any) -> None:
    args = race.Args(ours=replace(race.usual_settings(), items=("red", "blue")), threads=3)
    terms = args.terms()
    assert (terms.games, terms.window, terms.threads) == (args.ours.games, 200, 3)
    env = peer.make_env(replace(terms, games=2))
    _, infos = env.reset(seed=0)
    assert set(infos["task"]) <= {"find red", "find blue"}
    assert env.unwrapped.world.config == args.ours.world()


def test_the_adapter_tells_sb3_how_games_ended(race: Any, peer: Any) -> None:
    terms = race.Args(ours=replace(race.usual_settings(), games=3)).terms()
    env = peer.adapt(peer.make_env(replace(terms, max_steps=1)), seed=0)
    env.reset()
    observation, _, done, infos = env.step(np.zeros(3, dtype=np.int64))
    assert done.all()
    assert len(env.ended) == 3
    for info, (task, success) in zip(infos, env.ended, strict=True):
        assert info["TimeLimit.truncated"] is not success
        assert task.startswith("find ")
        assert info["terminal_observation"]["image"].shape == observation["image"].shape[1:]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "learning.py"), *TOY, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)


def test_a_race_leaves_its_results_and_curves(tmp_path: Path) -> None:
    peer = ["--peer-python", str(ROOT / ".venv-bench" / "bin" / "python")] if PEER else []
    done = run("--json", str(tmp_path / "learning.json"), *peer)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "learning.json").read_text())
    assert [one["name"] for one in told["results"]] == ["Skillstack", *(["RecurrentPPO"] if peer else [])]
    for one in told["results"]:
        assert 100 <= one["frames"] < 200
        assert one["curve"]
        assert not one["reached"]
    assert told["ratios"] in " ".join(done.stdout.split())


def test_what_would_fail_in_the_end_is_refused_at_once(tmp_path: Path) -> None:
    done = run("--json", str(tmp_path / "none" / "learning.json"))
    assert done.returncode == 2
    assert "there is no folder" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_table_says_who_was_broken_off(race: Any) -> None:
    console = Console(width=150, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(
        race.make_table([result(race, race.OURS), result(race, race.PEER, reached=False)], race.Args().terms())
    )
    text = console.export_text()
    assert "0.900, broken off" in text
    assert "to 0.9 of the last 200 games" in text
