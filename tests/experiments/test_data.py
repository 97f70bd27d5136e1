"""Curves, scores and claims against numbers worked by hand; the page holds nothing but the data."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skillstack.errors import SkillstackError
from skillstack.experiments import claims
from skillstack.experiments.catalogue import ALL, EXPERIMENTS, choose
from skillstack.experiments.collecting import curve_of
from skillstack.experiments.data import Curve, Data, Run, Score, check_replaceable, num_runs, write_data
from skillstack.experiments.jobs import cost_of
from skillstack.experiments.ladder import ABLATIONS, FLAT, FULL
from skillstack.experiments.page import VERDICTS, write_page
from skillstack.experiments.settings import Settings

NAMES = {name: (experiment.title, experiment.about) for name, experiment in EXPERIMENTS.items()}


def curve(method: str = FULL, seed: int = 0, level: float = 0.5, switch: int | None = 300) -> Curve:
    ends = tuple(range(100, 1100, 100))
    return Curve("pi_1", method, seed, ends, (level,) * 10, (level,) * 10, switch, most=2000, solved=2000)


def figure_get_data(**levels: float) -> Data:
    by_method = {FULL: 0.95, **dict.fromkeys(ABLATIONS, 0.92), FLAT: 0.5, **levels}
    switches = {FULL: 300}
    curves = [
        curve(method, seed, level + 0.001 * seed, switches.get(method, 600))
        for method, level in by_method.items()
        for seed in range(3)
    ]
    return Data("figure-get", "paper-frozen", "full", 3, tuple(curves), runs=(Run("pi1", 0, 1000, 20_000, 90.0),))


def test_a_curve_ends_as_the_mean_of_its_last_points() -> None:
    ramp = replace(curve(), reward=tuple(np.arange(10) / 10), success=tuple(np.arange(10) / 10))
    assert ramp.final == pytest.approx((0.5 + 0.6 + 0.7 + 0.8 + 0.9) / 5)


def test_a_run_that_ended_sooner_goes_on_as_it_ended() -> None:
    assert curve(level=0.8).area(2000) == pytest.approx(0.8)
    np.testing.assert_allclose(curve(level=0.8).on_grid(np.array([50.0, 1500.0])), [0.8, 0.8])


def solved(find: float, get: float, *, novel_from: int = 10, turns: int = 20) -> int:
    """Of a run of 64 games a turn whose skills stay where they are."""
    (job,) = [
        job for job in EXPERIMENTS["figure-get"].parts(Settings(), 0).training if job.name.endswith("pi1-full-s0")
    ]
    rows = [
        {
            "level": 1,
            "phase": "novel" if turn >= novel_from else "base",
            "episodes": 64 * (turn + 1),
            "reward": 1.0,
            "success": 1.0,
            "windows": {"find": find, **({"get": get} if turn >= novel_from else {})},
            "novel phase begins": turn + 1 == novel_from,
        }
        for turn in range(turns)
    ]
    record = {"turns": {name: [row[name] for row in rows] for name in rows[0]}}
    return curve_of(job, record, "pi_1", FULL).solved


def test_a_curve_is_solved_once_each_skill_stays_high_in_the_novel_phase() -> None:
    assert solved(0.95, 0.92) == 64 * 15  # five turns after ten of the base phase
    assert solved(0.95, 0.92, novel_from=0) == 64 * 5
    assert solved(0.99, 0.5) == solved(0.5, 0.99) == 22_000  # the mean of all tasks does not count
    assert solved(0.99, 0.99, turns=14) == 22_000


def test_a_pause_is_no_cost_of_a_run() -> None:
    turn = {"event": "turn", "steps of turn": 10, "seconds": 1.0}
    paused = {**turn, "seconds": 900.0, "core seconds": 2.0}
    metrics = [turn, {"event": "stage learned"}, paused]
    assert cost_of(metrics, games=4) == {"episodes": 8, "steps": 20, "seconds": 3.0}


def test_a_result_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    data = figure_get_data()
    assert num_runs(tmp_path / f"{data.name}.json") == 0
    write_data(data, tmp_path, {})
    assert num_runs(tmp_path / f"{data.name}.json") == 1


def test_claims_of_figure_3a_agree_where_intervals_are_apart() -> None:
    verdicts = [claim.agrees for claim in claims.figure_get(figure_get_data())]
    assert verdicts == [claims.YES, claims.YES, claims.YES, claims.YES, "-"]


def test_claims_fail_where_another_method_is_better() -> None:
    verdicts = [claim.agrees for claim in claims.figure_get(figure_get_data(**{"no grammar": 0.99, FLAT: 0.85}))]
    assert verdicts == [claims.YES, claims.NO, claims.YES, claims.NO, "-"]


def test_one_seed_decides_nothing() -> None:
    data = figure_get_data()
    alone = replace(data, curves=tuple(entry for entry in data.curves if entry.seed == 0))
    assert {claim.verdict for claim in claims.figure_get(alone)} == {claims.ONE_SEED, "-"}


def test_a_method_that_was_not_run_leaves_a_claim_open() -> None:
    data = figure_get_data()
    without = replace(data, curves=tuple(entry for entry in data.curves if entry.method != FLAT))
    assert claims.figure_get(without)[1].agrees == claims.NOTHING


def test_the_advantage_is_of_seeds_with_which_all_methods_were_run() -> None:
    data = figure_get_data()
    advantage = 0.95 - (3 * 0.92 + 0.5) / 4  # the same with each seed
    for left_out in ("no grammar", FLAT):
        some = tuple(entry for entry in data.curves if entry.seed == 0 or entry.method != left_out)
        (found,) = claims.figure_get(replace(data, curves=some))[-1].ours.values()
        assert found is not None
        assert (found.value, found.seeds) == (pytest.approx(advantage), 1)


def test_how_often_a_plan_occurs_has_the_spread_of_its_seeds() -> None:
    shares = {"acted at once": (0.2, 0.4, 0.6), "called twice": (0.1,)}
    data = Data("plans", "paper-frozen", "full", 3, shares=shares)
    at_once, twice = (next(iter(claim.ours.values())) for claim in claims.plans(data))
    assert at_once is not None
    assert twice is not None
    assert (at_once.value, at_once.low, at_once.high) == pytest.approx((0.4, 0.2, 0.6))
    assert (at_once.seeds, twice.seeds) == (3, 1)


def scores(method: str, test: str, shares: dict[str, float]) -> list[Score]:
    return [
        Score(method, seed, test, skill, item, 100, share, 10.0, None)
        for seed in range(3)
        for skill, share in shares.items()
        for item in ("red", "blue")
    ]


def test_a_figure_of_the_paper_agrees_within_the_interval_and_a_little() -> None:
    found = (*scores("hierarchical", "among others", {"get": 0.95}), *scores("flat", "among others", {"get": 0.6}))
    data = Data("distractors", "paper-frozen", "full", 3, scores=found)
    near, alone_h, alone_f = claims.distractors(data)
    assert near.agrees == claims.NOTHING  # not measured with the target alone
    assert (alone_h.agrees, alone_f.agrees) == (claims.YES, claims.HIGHER)


def test_the_colour_that_a_seed_left_out_is_told_from_the_others() -> None:
    found = [
        Score("hierarchical", seed, "small room", "get", item, 100, 0.2 if place == seed else 0.9, 10.0, None)
        for seed in range(2)
        for place, item in enumerate(("red", "blue"))
    ]
    first, second = claims.unseen_pairs(Data("unseen-pairs", "paper-frozen", "full", 2, scores=tuple(found)))
    left_out, trained = first.ours["left out"], first.ours["trained"]
    assert left_out is not None
    assert trained is not None
    assert (left_out.value, trained.value) == pytest.approx((0.2, 0.9))
    assert second.agrees == claims.NOTHING


def test_every_experiment_has_claims_even_before_it_is_run() -> None:
    for experiment in EXPERIMENTS.values():
        for claim in experiment.claims(Data(experiment.name, "paper-frozen", "full", 3)):
            assert claim.agrees in (claims.NOTHING, "-"), claim.text


def write(data: Data, folder: Path) -> None:
    found = [claim.to_json() for claim in EXPERIMENTS[data.experiment].claims(data)]
    write_data(data, folder, {"claims": found, "figures": [], "plans": []})


def test_every_single_run_is_in_the_data(tmp_path: Path) -> None:
    write(figure_get_data(), tmp_path)
    with (tmp_path / "figure-get-paper-frozen-curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["method"], int(row["seed"])) for row in rows} == {
        (method, seed) for method in (FULL, *ABLATIONS, FLAT) for seed in range(3)
    }
    data = json.loads((tmp_path / "figure-get-paper-frozen.json").read_text())
    assert len(data["curves"]) == 15


def test_the_page_says_what_is_missing_and_what_it_cost(tmp_path: Path) -> None:
    empty = write_page(NAMES, tmp_path)
    assert empty.count("has not been run yet") == len(NAMES)
    write(replace(figure_get_data(), missing={"flat1-s2": "There is no disk."}), tmp_path)
    page = write_page(NAMES, tmp_path)
    assert page.count("**Missing:** this has not been run yet") == len(NAMES) - 1
    assert "- `flat1-s2`: There is no disk." in page
    assert "0.03 core hours" in page  # 90 seconds
    assert "0.951 [0.950, 0.952]" in page


def test_the_page_has_table_1_as_the_paper_has_it(tmp_path: Path) -> None:
    found = scores(FULL, "small room, pi_3", {"find": 0.991, "stack": 0.5})
    found += scores(f"{FLAT} for find, get, put", "big room, the paper's limits", {"find": 0.52})
    write(Data("table-rooms", "paper-frozen", "full", 3, scores=tuple(found)), tmp_path)
    page = write_page(NAMES, tmp_path)
    assert "| ours; the paper's | find | get | put | stack |" in page
    find, stack = "0.991 [0.991, 0.991], IQM 0.991; 0.995 (agrees? yes)", "0.500 [0.500, 0.500], IQM 0.500; 0.955"
    get, put = (f"missing; {figure} (agrees? {claims.NOTHING})" for figure in ("0.970", "1.000"))
    assert f"| small room, full model | {find} | {get} | {put} | {stack} (agrees? no: lower) |" in page
    get, put = (f"missing; {figure} (agrees? {claims.NOTHING})" for figure in ("0.450", "1.000"))
    find = "0.520 [0.520, 0.520], IQM 0.520; 0.515 (agrees? yes)"
    assert f"| big room, flat policy, the paper's limits | {find} | {get} | {put} | missing |" in page
    assert "| big room, flat policy, the hierarchy's steps | missing | missing | missing | missing |" in page


def test_the_page_counts_at_a_glance_how_many_claims_agree(tmp_path: Path) -> None:
    write(figure_get_data(**{"no grammar": 0.99, FLAT: 0.85}), tmp_path)
    page = write_page(NAMES, tmp_path)
    columns = "agrees | ours is higher | differs | not clear | still open | no figure to agree with"
    assert f"| experiment | preset and encoder | {columns} |" in page
    assert "| Figure 3a: learning pi_1 | paper, frozen, 3 seeds | 2 |  | 2 |  |  | 1 |" in page
    assert page.count("not run yet |") == len(NAMES) - 1


def test_every_answer_is_counted_in_one_column_at_a_glance() -> None:
    answers = [getattr(claims, name) for name in ("YES", "NO", "UNCLEAR", "HIGHER", "LOWER", "NOTHING", "SAME")]
    counted = [answer for column in VERDICTS.values() for answer in column]
    assert sorted(counted) == sorted([*answers, claims.ONE_SEED, "-"])


def test_a_changed_number_in_the_data_changes_the_page(tmp_path: Path) -> None:
    write(figure_get_data(), tmp_path)
    before = write_page(NAMES, tmp_path)
    path = tmp_path / "figure-get-paper-frozen.json"
    path.write_text(path.read_text().replace('"steps": 20000', '"steps": 31234'))
    assert "31,234" not in before
    assert "31,234" in write_page(NAMES, tmp_path)


def test_less_is_not_put_in_the_place_of_more(tmp_path: Path) -> None:
    write(figure_get_data(), tmp_path)
    path = tmp_path / "figure-get-paper-frozen.json"
    check_replaceable(path, "full", 10)
    with pytest.raises(SkillstackError, match="3 seeds"):
        check_replaceable(path, "full", 1)
    with pytest.raises(SkillstackError, match="full scale"):
        check_replaceable(path, "toy", 3)


def test_experiments_are_chosen_by_name() -> None:
    assert [experiment.name for experiment in choose([ALL])] == list(EXPERIMENTS)
    assert [experiment.name for experiment in choose(["plans", "figure-get", "plans"])] == ["figure-get", "plans"]
    with pytest.raises(SkillstackError, match='Did you mean "figure-get"'):
        choose(["figure-gat"])
