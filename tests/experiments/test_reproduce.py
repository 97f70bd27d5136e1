"""The whole of it from the command line, at toy size: every file appears, and every number of ours is in the data."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from skillstack.cli import main
from skillstack.errors import SkillstackError
from skillstack.experiments.catalogue import EXPERIMENTS
from skillstack.experiments.jobs import FINISHED_FILE, Job
from skillstack.experiments.records import Records, digest
from skillstack.experiments.reproduce import RECORDS_FOLDER
from skillstack.experiments.schedule import run_jobs
from skillstack.experiments.settings import Settings
from skillstack.instructions import SKILLS

VARIANT = "paper-frozen"
TOY = Settings(seeds=1, scale="toy")
CURVES = ("figure-get", "figure-stack", "figure-curriculum", "no-penalty")
SUCCESS = ("table-rooms", "distractors", "no-penalty", "stage-orders", "flat-capacity", "unseen-pairs")


def reproduce(out: Path, *arguments: str) -> int:
    toy = ("--scale", "toy", "--seeds", "1", "--jobs", "2", "--runs", str(out / "runs"), "--out", str(out))
    return main(["reproduce", *arguments, *toy])


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reproduced")
    assert reproduce(out, "all") == 0
    return out


def test_every_file_appears(everything: Path) -> None:
    names = [f"{name}-{VARIANT}.json" for name in EXPERIMENTS]
    names += [f"{name}-{VARIANT}-curves.csv" for name in CURVES] + [f"{name}-{VARIANT}-success.csv" for name in SUCCESS]
    assert sorted(path.name for path in (everything / "results").iterdir()) == sorted([*names, RECORDS_FOLDER])
    figures = [f"{name}-{VARIANT}-curves" for name in CURVES] + [f"{name}-{VARIANT}-success" for name in SUCCESS]
    there = {path.name for path in (everything / "docs" / "results").iterdir()}
    assert {f"{name}.{kind}" for name in figures for kind in ("svg", "png")} <= there
    page = (everything / "docs" / "results.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", page):
        assert (everything / "docs" / target).exists(), target
    assert "Missing" not in page


def numbers_in(data: Any) -> Iterator[float]:
    if isinstance(data, dict):
        for value in data.values():
            yield from numbers_in(value)
    elif isinstance(data, list):
        for value in data:
            yield from numbers_in(value)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield float(data)


def test_every_number_of_ours_comes_from_the_data(everything: Path) -> None:
    page = (everything / "docs" / "results.md").read_text()
    for name, experiment in EXPERIMENTS.items():
        data = json.loads((everything / "results" / f"{name}-{VARIANT}.json").read_text())
        known = {form.format(number) for number in numbers_in(data) for form in ("{:.3f}", "{:,.0f}")}
        section = page.split(f"## {experiment.title}\n")[1].split("\n## ")[0]
        for ours in our_cells(section):
            # Without the methods' names, some of which have digits.
            for number in re.findall(r"(?<![\w.])-?[\d,]*\d(?:\.\d+)?(?![\w])", ours):
                assert number in known, (name, number)


def our_cells(section: str) -> Iterator[str]:
    """What tables say of ours: a cell of each line about a claim, the first half of each cell of the paper's table."""
    cells: list[str] = []
    for table in re.findall(r"(?:^\|.*\|\n)+", section, re.MULTILINE):
        head, _, *rows = [row.strip("| ").split(" | ") for row in table.splitlines()]
        for row in rows:
            assert len(row) == len(head)
            cells += [row[2]] if head[2] == "ours" else [cell.partition("; ")[0] for cell in row[1:]]
    assert cells
    yield from cells


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_claims_can_be_worked_out_again_from_the_tables(everything: Path) -> None:
    results = everything / "results"
    curves = rows_of(results / f"figure-get-{VARIANT}-curves.csv")
    ends = json.loads((results / f"figure-get-{VARIANT}.json").read_text())["claims"][0]["ours"]
    for method, share in ends.items():
        last = [float(row["success"]) for row in curves if row["method"] == method][-5:]
        assert share["value"] == pytest.approx(sum(last) / len(last), abs=1e-4)
    scores = rows_of(results / f"table-rooms-{VARIANT}-success.csv")
    claims = json.loads((results / f"table-rooms-{VARIANT}.json").read_text())["claims"]
    for skill in SKILLS:
        (claim,) = [claim for claim in claims if claim["claim"] == f'Full model, big room, "{skill}".']
        shares = [
            float(row["success"])
            for row in scores
            if (row["method"], row["test"], row["skill"]) == ("full model", "big room, pi_3", skill)
        ]
        assert claim["ours"][""]["value"] == pytest.approx(sum(shares) / len(shares))


@pytest.mark.parametrize("other", [("--preset", "fast"), ("--encoder", "own")])
def test_other_variants_leave_no_claim_open(other: tuple[str, str], tmp_path: Path) -> None:
    assert reproduce(tmp_path, "figure-get", *other) == 0
    shutil.rmtree(tmp_path / "runs")
    assert reproduce(tmp_path, "figure-get", *other) == 0  # of what was kept
    (path,) = (tmp_path / "results").glob("figure-get-*.json")
    verdicts = {claim["agrees"] for claim in json.loads(path.read_text())["claims"]}
    assert verdicts == {"one seed decides nothing", "-"}


def test_the_cost_is_that_of_all_runs_each_counted_once_and_of_the_measuring(everything: Path) -> None:
    took = [json.loads(path.read_text()) for path in everything.glob(f"runs/**/{FINISHED_FILE}")]
    kept = [json.loads(path.read_text()) for path in everything.glob("results/jobs/**/*.json")]
    training, measuring = (
        sum(run["seconds"] for run in part) / 3600 for part in (took, [record for record in kept if "asked" in record])
    )
    told = [json.loads(path.read_text())["measuring"] for path in everything.glob("results/*.json")]
    assert sum(told) / 3600 == pytest.approx(measuring)
    assert measuring > 0
    page = (everything / "docs" / "results.md").read_text()
    assert f"**Whole cost so far: {training + measuring:.2f} core hours**, {training:.2f} of training" in page
    assert f"in {len(took)} runs, {sum(run['steps'] for run in took):,} primitive steps" in page
    assert f"and {measuring:.2f} of measuring" in page


def test_what_is_finished_is_not_run_again(everything: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (everything / "docs" / "results.md").read_text()
    assert reproduce(everything, "figure-get", "plans") == 0
    assert "nothing left to do" in capsys.readouterr().out
    assert (everything / "docs" / "results.md").read_text() == before


def test_records_stand_in_for_runs_that_were_made_elsewhere(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    assert reproduce(tmp_path, "all") == 0
    assert "nothing left to do" in capsys.readouterr().out
    for name in ("docs/results.md", f"results/figure-get-{VARIANT}-curves.csv"):
        assert (tmp_path / name).read_bytes() == (everything / name).read_bytes()
    kept = {path.parent.relative_to(tmp_path / "runs").as_posix() for path in tmp_path.glob("runs/**/agent")}
    assert kept == {"pi0-s0", f"{VARIANT}/pi1-full-s0", f"{VARIANT}/pi2-full-s0"}


def test_a_job_without_a_record_is_run_on_the_same_terminal_policy(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    record = tmp_path / "results" / RECORDS_FOLDER / VARIANT / "pi1-no-grammar-s0.json"
    before = json.loads(record.read_text())
    record.unlink()
    assert reproduce(tmp_path, "figure-get") == 0
    words = capsys.readouterr().out
    assert "5 of 6 jobs need not be run again" in words
    assert "pi1-no-grammar-s0 runs" in words
    assert "pi0-s0 runs" not in words
    after = json.loads(record.read_text())
    assert after["turns"] == before["turns"]


def test_a_level_that_was_made_elsewhere_carries_the_next_one_and_is_kept_without_what_it_stands_on(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    folder = tmp_path / "results" / RECORDS_FOLDER / VARIANT
    assert {path.name for path in (folder / "pi2-full-s0").iterdir()} == {
        "agent.json",
        "grammar_2.json",
        "level_2.safetensors",
    }
    for name in ("pi3-full-s0.json", "plans-s0.json"):
        (folder / name).unlink()
    assert reproduce(tmp_path, "plans") == 0
    assert "3 of 5 jobs need not be run again" in capsys.readouterr().out
    below = Path("runs", VARIANT, "pi2-full-s0", "agent")
    assert digest(tmp_path / below) == digest(everything / below)


def test_what_was_recorded_before_agents_were_kept_is_kept_when_it_is_at_hand(everything: Path, tmp_path: Path) -> None:
    for name in ("results", "runs"):
        shutil.copytree(everything / name, tmp_path / name)
    kept = tmp_path / "results" / RECORDS_FOLDER / VARIANT / "pi1-full-s0"
    before = digest(kept)
    shutil.rmtree(kept)
    assert reproduce(tmp_path, "figure-get") == 0
    assert digest(kept) == before


def test_a_record_that_lacks_what_is_kept_now_is_made_anew(everything: Path, tmp_path: Path) -> None:
    for name in ("results", "runs"):
        shutil.copytree(everything / name, tmp_path / name)
    record = tmp_path / "results" / RECORDS_FOLDER / VARIANT / "pi1-no-grammar-s0.json"
    whole = json.loads(record.read_text())
    older = {**whole, "turns": {name: part for name, part in whole["turns"].items() if name != "windows"}}
    record.write_text(json.dumps(older))
    assert reproduce(tmp_path, "figure-get") == 0
    assert json.loads(record.read_text()) == whole


def test_a_record_made_with_other_settings_is_refused(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    record = tmp_path / "results" / RECORDS_FOLDER / VARIANT / "pi1-full-s0.json"
    data = json.loads(record.read_text())
    data["made"]["on"]["pi0-s0"]["asked"]["settings"]["seed"] = 7
    record.write_text(json.dumps(data))
    assert reproduce(tmp_path, "figure-get") == 2
    assert "pi1-full-s0.json was made with other settings" in capsys.readouterr().err.replace("\n", " ")
    for damaged, sentence in (
        ("{", "cannot be read"),
        (json.dumps({**data, "made": {}}), "cannot be understood"),
        (json.dumps({**data, "turns": None, "format": "other"}), "not a record"),
        (json.dumps({name: part for name, part in data.items() if name != "turns"}), "not a record"),
    ):
        record.write_text(damaged)
        assert reproduce(tmp_path, "figure-get") == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_a_terminal_policy_that_came_with_its_record_can_be_kept_elsewhere(everything: Path, tmp_path: Path) -> None:
    """From a record into the runs, and from the runs into another record, nothing changes."""
    for out in (tmp_path / "one", tmp_path / "other"):
        (out / "results" / RECORDS_FOLDER).mkdir(parents=True)
    first = everything / "results" / RECORDS_FOLDER
    shutil.copytree(first / "pi0-s0", tmp_path / "one" / "results" / RECORDS_FOLDER / "pi0-s0")
    shutil.copy(first / "pi0-s0.json", tmp_path / "one" / "results" / RECORDS_FOLDER)
    (job,) = [job for job in EXPERIMENTS["figure-get"].parts(TOY, 0).training if job.name == "pi0-s0"]
    for out in ("one", "other"):
        records = Records(tmp_path / out / "results" / RECORDS_FOLDER, [job], tmp_path / "runs")
        records.check()
        records.restore()
        records.keep()
    second = tmp_path / "other" / "results" / RECORDS_FOLDER
    assert digest(second / "pi0-s0") == digest(first / "pi0-s0")
    assert json.loads((second / "pi0-s0.json").read_text()) == json.loads((first / "pi0-s0.json").read_text())
    seed = replace(job, config=replace(job.config, seed=5))
    with pytest.raises(SkillstackError, match="other settings"):
        seed.check(tmp_path / "runs")


def test_another_terminal_policy_than_that_of_the_records_is_refused(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    assert reproduce(tmp_path, "figure-get") == 0
    for folder, sentence in (
        (tmp_path / "runs" / "pi0-s0" / "agent", "has another agent than"),
        (tmp_path / "results" / RECORDS_FOLDER / "pi0-s0", "is not the agent of"),
    ):
        capsys.readouterr()
        weights = folder / "level_0.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
        assert reproduce(tmp_path, "figure-get") == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_what_was_measured_otherwise_is_measured_again(everything: Path, tmp_path: Path) -> None:
    shutil.copytree(everything / "results", tmp_path / "results")
    shutil.copytree(everything / "runs", tmp_path / "runs")
    name = f"{VARIANT}/measured/no-penalty-pi1-full-s0.json"
    for folder in (tmp_path / "runs", tmp_path / "results" / RECORDS_FOLDER):
        data = json.loads((folder / name).read_text())
        for asked in (data["asked"], data.get("made", {}).get("asked", data["asked"])):
            asked["tests"][0]["games"] = 1
        (folder / name).write_text(json.dumps(data))
    assert reproduce(tmp_path, "no-penalty") == 0
    assert json.loads((tmp_path / "results" / RECORDS_FOLDER / name).read_text())["asked"]["tests"][0]["games"] == 8


def test_what_is_finished_when_it_is_stopped_is_written_and_never_less_than_is_there(
    everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(jobs: Sequence[Job], runs: Path, workers: int, console: Console, keep: Any) -> dict[str, str]:
        run_jobs(jobs[:finished], runs, workers, console, keep)
        ended = {path.parent.name for path in (tmp_path / "runs").rglob(FINISHED_FILE)}
        assert len(ended) >= finished
        kept = {path.stem for path in (tmp_path / "results" / RECORDS_FOLDER).rglob("*-s0.json")}
        assert kept == ended  # before it is stopped
        raise KeyboardInterrupt

    monkeypatch.setattr("skillstack.experiments.reproduce.run_jobs", stopped)
    path = tmp_path / "results" / f"figure-get-{VARIANT}.json"
    for finished in (0, 1, 2):
        assert reproduce(tmp_path, "figure-get") == 130
        assert path.exists() == (finished > 0)
        if finished:
            data = json.loads(path.read_text())
            assert len(data["runs"]) == finished
            assert len(data["missing"]) == 6 - finished
            assert "jobs are not finished" in (tmp_path / "docs" / "results.md").read_text()
    whole = everything / "results" / f"figure-get-{VARIANT}.json"
    path.write_bytes(whole.read_bytes())
    assert reproduce(tmp_path, "figure-get") == 130
    assert "stays as it is" in capsys.readouterr().out.replace("\n", " ")
    assert path.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["figure-gat"], 'Did you mean "figure-get"'),
        (["all", "--seeds", "0"], "at least one seed"),
        (["all", "--jobs", "-1"], "at least 1"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_two(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_results_of_another_scale_or_of_more_seeds_stay_as_they_are(
    everything: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = everything / "results" / f"figure-get-{VARIANT}.json"
    before = path.read_bytes()
    assert main(["reproduce", "figure-get", "--runs", str(everything / "full"), "--out", str(everything)]) == 2
    assert "toy scale" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert not (everything / "full").exists()


def test_runs_that_were_begun_with_other_settings_are_refused(
    everything: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "figure-get", "--runs", str(everything / "runs"), "--out", str(tmp_path)]) == 2
    assert "other settings" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
