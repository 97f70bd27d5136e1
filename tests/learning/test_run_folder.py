from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skillstack.errors import SkillstackError
from skillstack.learning import run_folder
from skillstack.learning.run_folder import RunFolder, read_config, read_metrics

CONFIG = {"preset": "fast", "seed": 3, "rate": 1e-4, "stages": ["find", "get"], "limits": {"steps": 30, "none": None}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that has ended."""
    with RunFolder.create(tmp_path / "runs" / "it", CONFIG) as run:
        run.append({"event": "begin"})
        run.checkpoints.save(0, {"state.json": b"{}"})
    return run.path


def refused(path: Path, sentence: str, start: Callable[[Path], RunFolder] = RunFolder.open) -> None:
    with pytest.raises(SkillstackError, match=sentence):
        start(path)


def create(path: Path) -> RunFolder:
    return RunFolder.create(path, CONFIG)


# Beginning and going on


def test_a_run_leaves_what_the_design_says(tmp_path: Path) -> None:
    with create(tmp_path / "it") as run:
        run.append({"event": "begin"})
        run.checkpoints.save(1, {"state.json": b"{}"})
        run.agent_path.mkdir()
    assert sorted(path.name for path in run.path.iterdir() if not path.name.startswith(".")) == [
        *("agent", "checkpoints", "config.json", "metrics.jsonl")
    ]


def test_what_came_to_no_checkpoint_is_begun_anew_but_nothing_else_is(tmp_path: Path) -> None:
    with create(tmp_path / "it") as run:
        run.append({"event": "begin"})
    with RunFolder.create(run.path, {"seed": 1}) as anew:
        assert anew.config == {"seed": 1}
        assert anew.read_metrics() == []
    (run.path / "notes.txt").write_text("mine")
    refused(run.path, "is a run already", create)
    (run.path / "notes.txt").unlink()
    (run.path / "config.json").write_text('{"settings": "of another program"}')
    refused(run.path, "is a run already", create)
    assert "another program" in (run.path / "config.json").read_text()


def test_settings_come_back_as_they_were(run: Path) -> None:
    assert read_config(run) == CONFIG
    with RunFolder.open(run) as opened:
        assert opened.config == CONFIG


def test_settings_are_the_same_just_after_the_beginning_as_after_going_on(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "it", {"pair": (1, 2)}) as run:
        assert run.config == read_config(run.path) == {"pair": [1, 2]}


def test_an_empty_folder_can_become_a_run(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        assert run.read_metrics() == []
        assert run.checkpoints.load_newest() is None


def test_a_run_is_not_begun_over_another_and_the_sentence_says_how_to_resume_it(run: Path) -> None:
    before = (run / "metrics.jsonl").read_bytes()
    sentence = f"{run} is a run already; go on with it by --resume {run}, or choose another name."
    refused(run, f"^{re.escape(sentence)}$", create)
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_run_is_not_begun_among_the_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("Once upon a time")
    refused(tmp_path, "is not empty; choose another name", create)
    refused(tmp_path / "thesis.tex", "is a file; choose another name", create)
    refused(tmp_path / "thesis.tex" / "run", "cannot begin", create)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_beginning_that_was_killed_can_be_made_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".config.json.0123abcd.new").write_text("{")
    with create(tmp_path) as run:
        assert not list(run.path.glob(".config*"))


def test_a_beginning_on_a_full_disk_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    refused(tmp_path / "it", r"A run cannot begin in .*it \(No space left on device\)", create)
    monkeypatch.undo()
    create(tmp_path / "it").close()


def test_what_is_not_a_run_cannot_be_resumed_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("Once upon a time")
    refused(tmp_path / "missing", "missing does not exist; give the folder of a run")
    refused(tmp_path / "thesis.tex", "thesis.tex is not a run, as it has no config.json")
    refused(tmp_path, "is not a run, as it has no config.json")
    (tmp_path / "config.json").write_text('{"format": "other"}')
    refused(tmp_path, 'is not a run, as its config.json does not say "format": "skillstack-run"')
    (tmp_path / "config.json").write_text("[]")
    refused(tmp_path, "is not a run")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.json", "thesis.tex"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "its config.json is not JSON"),
        (lambda text: "", "its config.json is not JSON"),
        (lambda text: "[" * 100_000, "its config.json is not JSON"),
        (lambda text: text.replace("0.0001", "0.0002"), "its config.json does not have its checksum"),
        (lambda text: text.replace('"config"', '"confit"'), "its config.json does not have its checksum"),
        (lambda text: text.replace('_version": 1', '_version": 2'), "format version 2, and Skillstack .* reads 1"),
    ],
)
def test_settings_that_are_damaged_are_said_to_be_so(run: Path, change: Callable[[str], str], sentence: str) -> None:
    path = run / "config.json"
    path.write_text(change(path.read_text()))
    refused(run, sentence)


def test_settings_that_cannot_be_read_are_said_to_be_so(run: Path) -> None:
    (run / "config.json").unlink()
    (run / "config.json").mkdir()
    refused(run, r"config.json cannot be read \(Is a directory\)")


def test_a_run_that_cannot_be_written_is_said_to_be_so(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    (run / "metrics.jsonl").mkdir()
    refused(run, r"The run .* cannot go on \(Is a directory\)")
    (run / "metrics.jsonl").rmdir()
    RunFolder.open(run).close()  # the lock was released


def test_an_agent_that_a_killed_process_was_replacing_is_put_back(run: Path) -> None:
    (run / ".agent.0123abcd.old").mkdir()
    (run / ".agent.0123abcd.old" / "agent.json").write_text("{}")
    (run / ".agent.89abcdef.new").mkdir()
    with RunFolder.open(run) as opened:
        assert (opened.agent_path / "agent.json").read_text() == "{}"
    assert not list(run.glob(".agent*"))


# One process at a time


def test_a_second_run_into_the_same_folder_is_refused_until_the_first_has_ended(run: Path) -> None:
    with RunFolder.open(run):
        refused(run, f"Another process is training in {run}; ")
        refused(run, "is a run already", create)
        assert read_config(run) == CONFIG  # looking is allowed
        assert read_metrics(run) == [{"event": "begin"}]
    RunFolder.open(run).close()


def test_of_two_that_begin_at_once_the_second_is_refused(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "it", CONFIG)
    (first.path / "config.json").unlink()  # as if the first had not come so far yet
    (first.path / "metrics.jsonl").unlink()
    refused(tmp_path / "it", "Another process is training", create)
    first.close()
    create(tmp_path / "it").close()


def test_a_run_that_begins_and_ends_while_another_is_about_to_begin_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_overtaken(folder: Path) -> None:
        monkeypatch.undo()
        with RunFolder.create(folder, {"seed": 1}) as run:
            run.append({"event": "begin"})
            run.checkpoints.save(0, {"state.json": b"{}"})

    monkeypatch.setattr(run_folder, "make_folder", be_overtaken)
    refused(tmp_path / "it", "is a run already", create)
    assert read_config(tmp_path / "it") == {"seed": 1}
    RunFolder.open(tmp_path / "it").close()


HOLDER = """
import os, sys, time
from skillstack.learning.run_folder import RunFolder
run = RunFolder.open(sys.argv[1])
if os.fork() == 0:
    print(os.getpid(), flush=True)  # by the worker, which has begun then
time.sleep(60)
"""


def test_a_killed_process_gives_the_folder_free_even_if_its_workers_live_on(run: Path) -> None:
    arguments = [sys.executable, "-c", HOLDER, str(run)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        try:
            refused(run, "Another process is training")
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.kill(worker, 0)  # it is alive
            RunFolder.open(run).close()
        finally:
            process.kill()
            os.kill(worker, signal.SIGKILL)


def _nothing() -> None:
    pass


def test_a_worker_that_ends_leaves_the_lock_to_its_parent(run: Path) -> None:
    with RunFolder.open(run):
        worker = get_context("fork").Process(target=_nothing)
        worker.start()
        worker.join(10)
        refused(run, "Another process is training")


def test_a_system_without_locks_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    refused(tmp_path / "it", "needs the file locks", create)


# Metrics


def test_events_are_lines_that_can_be_read_at_once(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [{"event": "update", "loss": 0.1 + 0.2}, {"event": "phase", "tasks": ["find blue"]}]
    with create(tmp_path) as run:
        for event in events:
            run.append(event)
            assert read_metrics(tmp_path)[-1] == event
        assert run.read_metrics() == events
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 2


def test_numbers_of_numpy_become_plain_and_what_json_lacks_becomes_null(tmp_path: Path) -> None:
    with create(tmp_path) as run:
        run.append(
            {"a": np.float32(0.5), "b": np.int64(3), "c": float("nan"), "d": (np.float64("inf"), np.bool_(True))}
        )
    line = (tmp_path / "metrics.jsonl").read_text()
    assert line == '{"a": 0.5, "b": 3, "c": null, "d": [null, true]}\n'


@pytest.mark.parametrize("kept", ["", '{"n": 1}\n', '{"n": 1}\n{"n": 2}\n'])
@pytest.mark.parametrize("torn", ["", "{", '{"n": 3, "text": "' + 200_000 * "x", '{"n": 3}'])
def test_half_a_line_that_a_killed_process_left_is_cut_off(run: Path, kept: str, torn: str) -> None:
    (run / "metrics.jsonl").write_text(kept + torn)
    events = [json.loads(line) for line in kept.splitlines()]
    assert read_metrics(run) == events
    with RunFolder.open(run) as opened:
        assert (run / "metrics.jsonl").read_text() == kept
        opened.append({"n": 4})
    assert read_metrics(run) == [*events, {"n": 4}]


def test_going_on_from_a_checkpoint_ends_in_the_same_bytes_as_going_on_without_a_break(tmp_path: Path) -> None:
    def learn(run: RunFolder, begin: int, end: int) -> None:
        for step in range(begin, end):
            run.append({"step": step, "loss": 1 / (step + 1)})

    with create(tmp_path / "whole") as run:
        learn(run, 0, 20)
    with create(tmp_path / "broken") as run:
        learn(run, 0, 10)
        position = run.metrics_position()
        learn(run, 10, 15)  # lost, as no checkpoint has them
    with RunFolder.open(tmp_path / "broken") as run:
        run.truncate_metrics(position)
        assert run.metrics_position() == position
        learn(run, 10, 20)
    whole, broken = (tmp_path / name / "metrics.jsonl" for name in ("whole", "broken"))
    assert broken.read_bytes() == whole.read_bytes()


def test_the_metrics_a_checkpoint_counts_on_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(tmp_path) as run:
        run.append({"n": 1})
        sizes: list[int] = []
        monkeypatch.setattr(os, "fsync", lambda descriptor: sizes.append(os.fstat(descriptor).st_size))
        assert [run.metrics_position()] == sizes == [len('{"n": 1}\n')]

        def fail(descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(SkillstackError, match=r"metrics.jsonl cannot be written \(Input/output error\)"):
            run.metrics_position()


@pytest.mark.parametrize(
    ("text", "left"), [("", ""), ('{"n": 1}\n', '{"n": 1}\n'), ('{"n": 1}\n{"longer": 1}\n', '{"n": 1}\n')]
)
def test_a_run_goes_on_without_lines_that_someone_removed_but_says_so(run: Path, text: str, left: str) -> None:
    (run / "metrics.jsonl").write_text(text)
    warnings: list[str] = []
    with RunFolder.open(run) as opened:
        opened.truncate_metrics(15, warnings.append)
        assert (run / "metrics.jsonl").read_text() == left
    assert len(warnings) == 1
    assert "was changed since the checkpoint was saved" in warnings[0]


def test_metrics_that_were_removed_begin_anew(run: Path) -> None:
    (run / "metrics.jsonl").unlink()
    with RunFolder.open(run) as opened:
        assert opened.read_metrics() == []


@pytest.mark.parametrize("line", ['{"n": 1', "[]", "\0\0"])
def test_a_damaged_line_is_named(run: Path, line: str) -> None:
    (run / "metrics.jsonl").write_text(f'{{"n": 0}}\n{line}\n{{"n": 2}}\n')
    with pytest.raises(SkillstackError, match=r"Line 2 of .*metrics.jsonl is damaged"):
        read_metrics(run)


def test_metrics_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(SkillstackError, match=r"metrics.jsonl cannot be read \(No such file or directory\)"):
        read_metrics(tmp_path)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with create(tmp_path) as run:
        run.append({"n": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(SkillstackError, match=r"metrics.jsonl cannot be written \(File too large\)"):
                run.append({"text": "x" * 2000})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        run.append({"n": 2})
    assert (tmp_path / "metrics.jsonl").read_text() == '{"n": 1}\n{"n": 2}\n'


def test_a_checkpoint_gets_the_settings_that_the_run_began_with(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", {"seed": 7}) as folder:
        file = tmp_path / "run" / "config.json"
        before = file.read_bytes()
        file.write_bytes(b"damaged while it goes on")
        assert folder.config_files() == {"config.json": before}
