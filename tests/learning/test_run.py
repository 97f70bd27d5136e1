"""Training from outside: the command, its folder, stopping, going on, and adding a stage later."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_disk import small_disk

from skillstack.cli import main
from skillstack.learning.checkpoint import Checkpoints
from skillstack.learning.config import PRESETS
from skillstack.learning.packing import unpack
from skillstack.learning.run import tune
from skillstack.learning.run_folder import COMMAND_FILE, RunFolder, read_config
from skillstack.learning.trainer import Trainer
from skillstack.policies.agent import Agent

SMALL = [
    *("--stages", "find, get", "--items", "red", "blue", "--games", "8", "--threads", "1", "--image-size", "36"),
    *("--room-width", "3", "--room-depth", "3", "--max-blocks", "2", "--window", "4"),
    *("--limits.flat", "6", "--limits.decisions", "4", "--limits.episode", "20"),
    *("--terminal.episodes", "16", "--episodes", "24", "--checkpoint-minutes", "0"),
]
PHASES = ("--curriculum", "--threshold", "-1")  # the first passes at once


def train(*arguments: str) -> int:
    return main(["train", *arguments])


def final_state(run: Path) -> dict:
    found = Checkpoints(run / "checkpoints").load_newest()
    assert found is not None
    return found[1]


def metrics_without_clocks(run: Path) -> list[dict]:
    clocks = {"seconds", "core seconds", "most memory"}
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{name: value for name, value in line.items() if name not in clocks} for line in lines]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "straight"
    assert train("--run", str(run), *SMALL) == 0
    return run


def test_a_run_leaves_its_settings_metrics_checkpoints_and_agent(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())["config"]
    assert config["level"]["window"] == 4
    assert config["items"] == ["red", "blue"]
    events = [entry["event"] for entry in metrics_without_clocks(finished)]
    assert events == ["turn"] * 2 + ["stage learned"] + ["turn"] * 3 + ["stage learned"]
    assert Agent.load(finished / "agent").num_levels == 2


def test_a_run_that_is_killed_and_resumed_ends_in_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "killed"
    command = [sys.executable, "-m", "skillstack.cli", "train", "--run", str(run), *SMALL]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (run / "metrics.jsonl").exists() or len((run / "metrics.jsonl").read_bytes().splitlines()) < 4:
        assert child.poll() is None, "the run ended before it could be killed"
        time.sleep(0.002)
    child.kill()
    child.wait()
    assert len(metrics_without_clocks(run)) < len(metrics_without_clocks(finished))
    assert train("--resume", str(run)) == 0
    assert unpack_trainer(run) == unpack_trainer(finished)
    assert metrics_without_clocks(run) == metrics_without_clocks(finished)


def unpack_trainer(run: Path) -> str:
    """Everything but where the metrics' clocks put their end."""
    files = final_state(run)
    return repr(unpack(files)["trainer"]) + files["arrays.safetensors"].hex()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_with_a_checkpoint_and_the_command_to_go_on(
    number: signal.Signals, finished: Path, tmp_path: Path
) -> None:
    run = tmp_path / "stopped [by us]"
    command = [sys.executable, "-m", "skillstack.cli", "train", "--run", str(run), *SMALL]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_bytes():
        time.sleep(0.002)
    child.send_signal(number)
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    assert f"To go on: skillstack train --resume '{run}'\n" in output
    assert train("--resume", str(run)) == 0
    assert unpack_trainer(run) == unpack_trainer(finished)


def test_resuming_a_finished_run_changes_nothing(finished: Path) -> None:
    before = unpack_trainer(finished)
    assert train("--resume", str(finished)) == 0
    assert unpack_trainer(finished) == before


def test_resuming_a_finished_run_repairs_its_last_checkpoint_and_its_agent(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "damaged"
    shutil.copytree(finished, run)
    newest = max((run / "checkpoints").iterdir())
    (newest / "state.json").write_bytes(b"{}")
    shutil.rmtree(run / "agent")
    assert train("--resume", str(run)) == 0
    assert unpack_trainer(run) == unpack_trainer(finished)
    for file in (finished / "agent").iterdir():
        assert (run / "agent" / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize("damage", [b"{}", b"", None])
def test_settings_that_are_damaged_come_back_from_the_newest_checkpoint(
    damage: bytes | None, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One bit is enough; what was there is set aside, and a run whose checkpoints do not have them is refused."""
    run = tmp_path / "damaged"
    shutil.copytree(finished, run)
    for number in sorted(Checkpoints(run / "checkpoints").numbers())[2:]:  # as if it had been killed before these
        shutil.rmtree(run / "checkpoints" / f"{number:09d}")
    config = run / "config.json"
    before = config.read_bytes()
    damaged = before.replace(b'"window": 4', b'"window": 5') if damage is None else damage
    config.write_bytes(damaged)
    assert train("--resume", str(run)) == 0
    assert "was not as the run wrote it" in " ".join(capsys.readouterr().out.split())
    assert config.read_bytes() == before
    (aside,) = run.glob("config.json.*.damaged")
    assert aside.read_bytes() == damaged
    assert unpack_trainer(run) == unpack_trainer(finished)
    assert metrics_without_clocks(run) == metrics_without_clocks(finished)
    files = final_state(run)
    shutil.rmtree(run / "checkpoints")
    Checkpoints(run / "checkpoints").save(9, {name: data for name, data in files.items() if name != "config.json"})
    config.write_bytes(damaged)
    assert train("--resume", str(run)) == 2
    assert config.read_bytes() == damaged


def test_settings_of_another_version_are_left_as_they_are(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "newer"
    shutil.copytree(finished, run)
    newer = (run / "config.json").read_bytes().replace(b'"format_version": 1', b'"format_version": 2')
    (run / "config.json").write_bytes(newer)
    assert train("--resume", str(run)) == 2
    assert "format version 2" in capsys.readouterr().err
    assert (run / "config.json").read_bytes() == newer
    assert not list(run.glob("*.damaged"))


def test_a_run_says_in_the_end_where_its_time_went_and_how_much_memory_it_took(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(finished, tmp_path / "again")
    assert train("--resume", str(tmp_path / "again")) == 0
    told = capsys.readouterr().out
    assert re.search(r"training +[\d.]+ s", told)
    assert re.search(r"most memory: [\d.]+ GiB", told)
    lines = map(json.loads, (finished / "metrics.jsonl").read_text().splitlines())
    taken = [line["most memory"] for line in lines if line["event"] == "stage learned"]
    assert len(taken) == 2
    assert 50 * 2**20 < taken[0] <= taken[1]


def test_a_run_that_ended_before_its_first_checkpoint_is_begun_anew(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "late"
    with RunFolder.create(run, {"never": "begun"}) as folder:
        folder.append({"event": "half"})
    assert train("--resume", str(run)) == 2
    capsys.readouterr()
    assert train("--run", str(run), *SMALL) == 0
    assert unpack_trainer(run) == unpack_trainer(finished)
    assert metrics_without_clocks(run) == metrics_without_clocks(finished)


def test_a_resumed_run_keeps_its_own_settings(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--resume", str(finished), "--seed", "3") == 2
    assert "nothing else" in capsys.readouterr().err


def test_a_gradient_that_is_not_finite_ends_a_run_and_keeps_its_last_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, norm = tmp_path / "diverged", torch.tensor(float("nan"))
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *args: norm)
    assert train("--run", str(run), *SMALL) == 2
    told = capsys.readouterr().err
    assert "the norm of the gradient is nan" in told
    assert "last good checkpoint" in told
    assert f"--from {run / 'agent'} and --tune" in told.replace("\n", " ")
    monkeypatch.undo()
    slower = ("--terminal.ppo.learning-rate", "1e-5")
    assert train("--from", str(run / "agent"), "--tune", *slower, "--run", str(tmp_path / "slower"), *SMALL) == 0
    assert Checkpoints(run / "checkpoints").numbers() == [0]


def test_a_loss_that_is_not_finite_ends_a_run_by_its_name_and_keeps_its_last_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillstack.learning.losses.masked_mean", lambda values, mask: (values * mask).sum() / 0.0)
    assert train("--run", str(tmp_path / "diverged"), *SMALL) == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert re.search(r"The (policy|value) loss is (nan|-?inf)", told)
    assert "last good checkpoint" in told
    assert Checkpoints(tmp_path / "diverged" / "checkpoints").numbers() == [0]


def test_a_run_on_a_disk_that_gets_full_resumes_where_there_is_space(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "elsewhere"
    with small_disk(tmp_path / "disk", 30_000_000, file_size=9_000_000) as reason:  # a checkpoint of stage 1 has 11 MB
        assert train("--run", str(tmp_path / "disk" / "run"), *SMALL) == 2
        shutil.copytree(tmp_path / "disk" / "run", run)
    assert reason in capsys.readouterr().err.replace("\n", " ")
    assert train("--resume", str(run)) == 0
    assert unpack_trainer(run) == unpack_trainer(finished)
    assert metrics_without_clocks(run) == metrics_without_clocks(finished)


def test_a_run_keeps_how_many_threads_it_has_and_what_it_was_made_by(tmp_path: Path) -> None:
    """Another number of threads rounds otherwise, and a resumed run must be the same run wherever it is."""
    run = tmp_path / "here"
    assert train("--run", str(run), *SMALL, "--threads", "0") == 0
    assert read_config(run)["threads"] == os.cpu_count()
    command = (run / COMMAND_FILE).read_text()
    assert re.search(r"# skillstack \d+\.\d+", command)


@pytest.mark.parametrize(
    ("flags", "change"),
    [
        ("--no-grammar", "level.grammar False"),
        ("--no-alternation", "alternation False"),
        ("--no-switch-value", "switch_value False"),
        ("--no-curriculum", "level.curriculum False"),
        ("--no-penalty", "penalty False"),
        ("--true-weights", "true_weights True"),
        ("--stages 'find, put, get, stack'", "stages find, put, get, stack"),
    ],
)
def test_an_ablation_changes_what_it_names_and_nothing_else(
    flags: str, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--preset", "paper", "--dry-run", *shlex.split(flags)) == 0
    told = " ".join(capsys.readouterr().out.split())
    changes = re.search(r'Other than in the preset "paper": (.*?)\. \d+ games at once', told)
    assert changes is not None
    assert changes[1] in (change, f"a2c.{change}")


def test_a_second_run_into_the_same_folder_refuses(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--run", str(finished), *SMALL) == 2
    assert "--resume" in capsys.readouterr().err
    with RunFolder.open(finished):
        assert train("--resume", str(finished)) == 2
    assert "Another process" in capsys.readouterr().err


def test_a_stage_can_be_added_later_and_what_lies_below_keeps_its_bytes(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "more"
    agent = finished / "agent"
    assert train("--from", str(agent), "--add", "put", "--run", str(run), *SMALL) == 0
    grown = Agent.load(run / "agent")
    assert [str(stage) for stage in grown.stages][-1] == "stage 2: learn put on top of find, get"
    check_kept(agent, run / "agent")


def test_upper_levels_can_be_learned_anew_on_those_below(finished: Path, tmp_path: Path) -> None:
    run, agent = tmp_path / "anew", finished / "agent"
    assert train("--from", str(agent), "--from-level", "0", "--add", "put", "--run", str(run), *SMALL) == 0
    grown = Agent.load(run / "agent")
    assert [str(stage) for stage in grown.stages][-1] == "stage 1: learn put on top of find"
    assert (run / "agent" / "level_0.safetensors").read_bytes() == (agent / "level_0.safetensors").read_bytes()


def test_a_new_stage_may_bring_a_new_skill_and_new_items_at_once(finished: Path, tmp_path: Path) -> None:
    run, agent = tmp_path / "both", finished / "agent"
    assert train("--from", str(agent), "--add", "put", "--add-items", "white", "--run", str(run), *SMALL) == 0
    grown = Agent.load(run / "agent")
    assert {str(task) for task in grown.stages[-1].novel} == {"put red", "put blue", "put white"}
    check_kept(agent, run / "agent")


def test_a_new_stage_may_bring_new_items(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "white"
    assert train("--from", str(finished / "agent"), "--add-items", "white", "--run", str(run), *SMALL) == 0
    grown = Agent.load(run / "agent")
    assert {str(task) for task in grown.stages[-1].novel} == {"find white", "get white"}
    check_kept(finished / "agent", run / "agent")


def check_kept(below: Path, above: Path) -> None:
    """All files of an agent but its description are in one that stands on it, byte for byte."""
    names = {file.name for file in below.iterdir()} - {"agent.json"}
    assert len(names) > 2
    for name in names:
        assert (above / name).read_bytes() == (below / name).read_bytes(), name


def test_levels_with_encoders_of_their_own_keep_their_bytes_below_a_new_stage(tmp_path: Path) -> None:
    two, three = tmp_path / "two", tmp_path / "three"
    own = [*SMALL, "--encoder", "own"]
    assert train("--run", str(two), *own) == 0
    assert train("--from", str(two / "agent"), "--add", "put", "--run", str(three), *own) == 0
    assert not Agent.load(three / "agent").shared_encoder
    check_kept(two / "agent", three / "agent")


def test_the_top_level_can_learn_on_and_what_lies_below_keeps_its_bytes(finished: Path, tmp_path: Path) -> None:
    """All its tasks at once and with its own words, whatever the flags say."""
    run = tmp_path / "tuned"
    agent = finished / "agent"
    others = ["--stages", "find", "--items", "red", "--curriculum"]
    assert train("--from", str(agent), "--tune", "--run", str(run), *SMALL, *others) == 0
    assert {entry.get("phase", "novel") for entry in metrics_without_clocks(run)} == {"novel"}
    tuned = Agent.load(run / "agent")
    assert tuned.stages == Agent.load(agent).stages
    for name in ("level_0.safetensors", "encoder.safetensors"):
        assert (run / "agent" / name).read_bytes() == (agent / name).read_bytes()
    assert (run / "agent" / "level_1.safetensors").read_bytes() != (agent / "level_1.safetensors").read_bytes()


def test_tuning_goes_on_from_the_weights_that_are_there(finished: Path, tmp_path: Path) -> None:
    """They stay if the learning rate is next to nothing, where a new level would inherit from the one below."""
    run, agent = tmp_path / "still", finished / "agent"
    assert train("--from", str(agent), "--tune", "--ppo.learning-rate", "1e-12", "--run", str(run), *SMALL) == 0
    before, after = Agent.load(agent).levels[1].state_dict(), Agent.load(run / "agent").levels[1].state_dict()
    for name, values in before.items():
        torch.testing.assert_close(after[name], values, rtol=0, atol=1e-6)


def test_a_tuning_run_has_the_whole_agent_from_its_start(finished: Path) -> None:
    config, agent = tune(finished / "agent", PRESETS["fast"])
    assert Trainer(config, agent, 1).learned.num_levels == 2
    assert Trainer(replace(config, tune=False), agent, 1).learned.num_levels == 1


def test_the_shipped_agent_can_learn_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--from", "shipped", "--tune", "--dry-run") == 0
    assert "learn on with stack on top of find, get, put: 24 tasks" in " ".join(capsys.readouterr().out.split())


def test_a_run_that_does_not_exist_cannot_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("--resume", "nowhere") == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_dry_run_prints_the_plan_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train("--dry-run", "--stages", "find, put, get, stack") == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "Stage 1: learn put on top of find: 12 tasks" in words
    assert "minutes" in words
    assert "Frames of 60 x 60 pixels, rooms of 6 x 6 cells, an LSTM of 256 units at each level, 3.8 million" in words
    assert 'Other than in the preset "fast": stages find, put, get, stack.' in words
    assert "practising with a critic" in words
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["--world", "minecraft"], "without a critic in this world"), (["--preset", "paper"], "by PPO, at most")],
)
def test_a_dry_run_says_whether_there_is_a_critic(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train("--dry-run", *arguments) == 0
    assert sentence in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--stages", "find, find"], "listed twice"),
        (["--stages", "find, fly"], 'Unknown skill "fly"'),
        (["--add", "stack"], "--from"),
        (["--tune"], "--from"),
        (["--tune", "--from", "shipped", "--add", "stack"], "either"),
        (["--from", "shipped"], "--tune"),
        (["--from", "shipped", "--from-level", "4", "--add", "stack"], "no level 4"),
        (["--from-level", "1"], "named with --from"),
        (["--tune", "--flat", "--from", "shipped"], "hierarchy"),
        (["--from", "shipped", "--tune", "--fork", "nowhere"], "one place"),
        (["--resume", "nowhere", "--fork", "nowhere"], "one place"),
        (["--v-trace"], "--method a2c"),
        (["--resume", "nowhere"], "leave out --resume"),
        (["--from", "nowhere", "--add", "stack"], "does not exist"),
        (["--room-width", "2", "--room-depth", "2"], "no room"),
        (["--limits.flat", "0"], "must be at least 1"),
        (["--leave-out", "get pink"], 'Unknown item "pink"'),
        (["--leave-out", "find red"], "cannot be left out"),
        (["--stages", "find, get", "--items", "red", "--leave-out", "get red"], "nothing to learn"),
        (["--lstm", "0"], '"lstm" must be from 1 to 16384'),
        (["--window", "0"], '"window" must be at least 1, not 0'),
        (["--epsilon", "5"], '"epsilon" must be from 0 to 1, not 5'),
        (["--doubt", "2"], '"doubt" must be from 0 to 1, not 2'),
        (["--threshold", "nan"], '"threshold"'),
        (["--novel", "1"], '"novel" must be from 0 to 0.9, not 1'),
        (["--no-each"], "say --curriculum, too"),
        (["--preset", "paper", "--each", "--no-curriculum"], "say --curriculum, too"),
        (["--preset", "paper", "--threshold", "0.8", "--no-curriculum"], '"threshold": these are for stages that'),
        (["--preset", "paper", "--no-grammar", "--doubt", "0"], '"doubt": these are for levels that have a grammar'),
        (["--no-grammar", "--smoothing", "2", "--unguided", "0.2"], '"smoothing", "unguided"'),
        (["--method", "a2c", "--entropy-by-failure"], "say --entropy 0.01, too"),
        (["--ppo.batch", "0"], '"batch" must be at least 1'),
        (["--terminal.ppo.learning-rate", "nan"], '"learning-rate"'),
        (["--ppo.decay", "0"], '"decay"'),
        (["--terminal.again", "1"], '"again" must be from 0 to 0.9'),
        (["--preset", "paper", "--updates", "nan"], '"updates"'),
        (["--preset", "paper", "--gamma", "2"], '"gamma"'),
        (["--preset", "paper", "--rotation", "0"], '"rotation"'),
        (["--preset", "paper", "--ppo.gamma", "0.8"], '"gamma": these are for levels that learn by ppo'),
        (["--terminal.no-critic", "--terminal.beyond", "1"], "--terminal.critic"),
        (["--terminal.ppo.refusal", "1"], "pi_0 utters nothing"),
        (["--no-alternation"], '"alternation": these are for levels that learn by a2c'),
        (["--seed", str(2**70)], '"seed"'),
    ],
)
def test_bad_input_gets_one_sentence_and_status_two(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train(*arguments, "--dry-run") == 2
    assert sentence in capsys.readouterr().err


def test_the_flat_baseline_goes_on_from_a_finished_agents_terminal_policy(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "flat"
    assert train("--run", str(run), "--flat", "--from", str(finished / "agent"), *SMALL) == 0
    agent = Agent.load(run / "agent")
    assert agent.num_levels == 1
    assert agent.stages[0].tasks.skills == ("find", "get")
    assert {entry["level"] for entry in metrics_without_clocks(run)} == {1}


def test_a_flat_baseline_is_not_extended_stage_by_stage(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "flat"
    assert train("--run", str(run), "--flat", "--from", str(finished / "agent"), "--add", "put", *SMALL) == 2
    assert "--stages" in capsys.readouterr().err
    assert not run.exists()


def test_a_flat_baseline_refuses_an_agent_that_knows_other_items(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [*SMALL, "--items", "green", "blue"]
    assert train("--run", str(tmp_path / "flat"), "--flat", "--from", str(finished / "agent"), *others) == 2
    assert "starts from an agent" in capsys.readouterr().err


def test_a_run_has_curves_for_tensorboard(finished: Path) -> None:
    assert any((finished / "tensorboard").iterdir())


def test_a_run_forked_where_its_novel_phase_began_goes_on_as_the_run_itself_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, forked, other = (tmp_path / name for name in ("source", "forked", "other"))
    assert train("--run", str(source), "--fork-points", *PHASES, *SMALL) == 0
    capsys.readouterr()
    assert train("--run", str(forked), "--fork", str(source), *PHASES, *SMALL) == 0
    assert "Stage 0" not in capsys.readouterr().out
    lines = metrics_without_clocks(source)
    (switch,) = (number for number, line in enumerate(lines) if line.get("novel phase begins"))
    novel = lines[switch + 1 :]
    assert len(novel) > 1
    assert metrics_without_clocks(forked) == novel
    assert train("--run", str(other), "--fork", str(source), "--no-grammar", *SMALL) == 0
    assert metrics_without_clocks(other)[0]["episodes"] == novel[0]["episodes"]
    for flags, sentence in (
        (["--smoothing", "3"], "smoothed by 1 counts"),
        (["--leave-out", "get red"], '"leave_out"'),
    ):
        assert train("--run", str(tmp_path / "no"), "--fork", str(source), *flags, *SMALL) == 2
        assert sentence in capsys.readouterr().err.replace("\n", " ")
    # What is learned of may differ: kept successes do not depend on it.
    assert train("--run", str(tmp_path / "less"), "--fork", str(source), "--ppo.refusal", "0", *SMALL) == 0


def test_a_fork_needs_a_kept_state_and_the_same_networks(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "forked"
    assert train("--run", str(run), "--fork", str(finished), *SMALL) == 2
    assert "--fork-points" in capsys.readouterr().err
    assert train("--run", str(run), "--fork", str(finished), *SMALL, "--encoder", "own") == 2
    assert '"encoder"' in capsys.readouterr().err
    assert train("--run", str(run), "--fork", str(finished), *SMALL, "--method", "a2c", "--true-weights") == 2
    assert "weighted in another way" in capsys.readouterr().err
    assert train("--run", str(run), "--fork", str(finished), *SMALL, "--method", "a2c") == 2
    assert "learns by ppo" in capsys.readouterr().err
    assert not run.exists()


def test_a_flat_policy_goes_on_from_a_flat_policy_for_fewer_tasks(finished: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert train("--run", str(first), "--flat", "--from", str(finished / "agent"), *SMALL) == 0
    more = [*SMALL, "--stages", "find, get, put", "--no-curriculum"]
    assert train("--run", str(second), "--flat", "--from", str(first / "agent"), *more) == 0
    assert {(entry["level"], entry.get("phase")) for entry in metrics_without_clocks(second)} == {
        (2, "novel"),
        (2, None),
    }


def test_a_terminal_policy_can_carry_levels_with_encoders_of_their_own(finished: Path, tmp_path: Path) -> None:
    start, run = tmp_path / "start", tmp_path / "own"
    Agent.load(finished / "agent").truncated(0).save(start)
    assert train("--run", str(run), "--from", str(start), "--add", "get", *SMALL, "--encoder", "shared") == 2
    assert not run.exists()
    assert train("--run", str(run), "--from", str(start), "--add", "get", *SMALL, "--encoder", "own") == 0
    assert not Agent.load(run / "agent").shared_encoder


def test_what_lies_below_keeps_its_weights_where_it_was_saved_in_half_precision(finished: Path, tmp_path: Path) -> None:
    """Its files are written anew, as an agent has one precision, and say the same numbers."""
    start, run = tmp_path / "start", tmp_path / "run"
    Agent.load(finished / "agent").save(start, half=True)
    assert train("--run", str(run), "--from", str(start), "--add", "put", *SMALL) == 0
    below, whole = Agent.load(start), Agent.load(run / "agent")
    for module, other in zip([*below.levels, *below.encoders], [*whole.levels[:-1], *whole.encoders], strict=True):
        weights = other.state_dict()
        assert all(tensor.equal(weights[name]) for name, tensor in module.state_dict().items())
