"""Jobs in processes of their own: in order, each once, a failure for itself, and stopping."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from skillstack.errors import SkillstackError
from skillstack.experiments.jobs import in_order
from skillstack.experiments.overview import Overview
from skillstack.experiments.schedule import run_jobs


@dataclass(frozen=True)
class Task:
    """A job that writes a file, or does not."""

    name: str
    needs: tuple[str, ...] = ()
    does: str = "writes"
    expected_seconds: float = 1.0

    def finished(self, runs: Path) -> bool:
        return (runs / self.name).exists()

    def share_done(self, runs: Path) -> float:
        return float(self.finished(runs))

    def check(self, runs: Path) -> None:
        if self.does == "refuses":
            raise SkillstackError("Other settings.")

    def run(self, runs: Path, console: Console) -> bool:
        if self.does == "fails":
            raise SkillstackError("There is no disk.")
        if self.does == "breaks":
            raise ZeroDivisionError("by zero")
        if self.does == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "sleeps":
            time.sleep(600)
        (runs / self.name).write_text(f"{time.monotonic_ns()}")
        return True


def run(jobs: list[Task], runs: Path, workers: int = 2) -> tuple[dict[str, str], str]:
    text = io.StringIO()
    return run_jobs(in_order(jobs), runs, workers, Console(file=text, width=200)), text.getvalue()


def test_jobs_run_after_what_they_need(tmp_path: Path) -> None:
    failed, words = run([Task("last", ("middle",)), Task("middle", ("first",)), Task("first")], tmp_path)
    assert not failed
    times = [int((tmp_path / name).read_text()) for name in ("first", "middle", "last")]
    assert times == sorted(times)
    assert "3 of 3 jobs" in words


def test_the_job_with_which_the_longest_chain_begins_comes_first(tmp_path: Path) -> None:
    ladder = [Task("first"), Task("second", ("first",)), Task("third", ("second",), expected_seconds=2.0)]
    run([Task("short"), Task("long", expected_seconds=3.5), *ladder], tmp_path, workers=1)
    order = sorted(("short", "long", "first", "second", "third"), key=lambda name: int((tmp_path / name).read_text()))
    assert order == ["first", "long", "second", "third", "short"]


def test_what_is_finished_is_kept_before_all_the_others_are(tmp_path: Path) -> None:
    kept = []
    jobs = in_order([Task("second", ("first",)), Task("first"), Task("third", ("second",), does="fails")])
    run_jobs(
        jobs,
        tmp_path,
        1,
        Console(file=io.StringIO()),
        lambda job: kept.append((job.name, {path.name for path in tmp_path.iterdir()})),
    )
    finished = [(name, names & {"first", "second", "third"}) for name, names in kept]
    assert finished == [("first", {"first"}), ("second", {"first", "second"})]  # and not when one has failed


def test_what_is_finished_is_not_done_again(tmp_path: Path) -> None:
    (tmp_path / "first").write_text("before")
    failed, words = run([Task("first", does="fails"), Task("second", ("first",))], tmp_path)
    assert not failed
    assert (tmp_path / "first").read_text() == "before"
    assert "2 jobs, 1 to do" in words


def test_a_failure_is_told_in_a_sentence_and_stops_only_what_needs_it(tmp_path: Path) -> None:
    jobs = [Task("bad", does="fails"), Task("hopeless", ("bad",)), Task("broken", does="breaks"), Task("good")]
    failed, words = run(jobs, tmp_path)
    assert failed["bad"] == "There is no disk."
    assert failed["hopeless"] == "It needs bad, which was not finished."
    assert failed["broken"].startswith("ZeroDivisionError: by zero")
    assert "ZeroDivisionError" in (tmp_path / "broken.log").read_text()
    assert (tmp_path / "good").exists()
    assert "bad failed. There is no disk." in words


def test_a_killed_process_takes_only_its_own_job_with_it(tmp_path: Path) -> None:
    failed, _ = run([Task("killed", does="is killed"), Task("good")], tmp_path, workers=1)
    assert set(failed) == {"killed"}
    assert "-9" in failed["killed"]
    assert (tmp_path / "good").exists()


def test_other_settings_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(SkillstackError, match="Other settings"):
        run([Task("good"), Task("other", does="refuses")], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_it_ends_the_children_and_says_how_to_go_on(number: signal.Signals, tmp_path: Path) -> None:
    """Unless it is killed, when it cannot say anything; its child then says nothing either."""
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from test_schedule import Task, run_jobs, Console\n"
        "if __name__ == '__main__':\n"
        "    run_jobs([Task('slow', does='sleeps')], Path(sys.argv[1]), 1, Console(width=200))\n"
    )
    file = tmp_path / "script.py"
    file.write_text(script)
    parts = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, file, tmp_path], text=True, **parts)
    while not (tmp_path / "slow.log").exists():
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(number)
    output, errors = child.communicate(timeout=120)  # until the job, which has them too, has ended
    assert ("The same command goes on" in output) == (number != signal.SIGKILL)
    assert "BrokenPipeError" not in errors
    assert not (tmp_path / "slow").exists()


def test_each_job_is_there_once_and_behind_what_it_needs() -> None:
    first, second = Task("first"), Task("second", ("first",))
    assert in_order([second, first, second]) == [first, second]
    with pytest.raises(AssertionError, match="two jobs"):
        in_order([first, Task("first", does="fails")])


def test_the_time_left_follows_from_what_was_done_so_far(tmp_path: Path) -> None:
    jobs = [Task("short", expected_seconds=1.0), Task("long", expected_seconds=3.0)]
    overview = Overview(Console(file=io.StringIO()), jobs, tmp_path, 1)
    assert overview.seconds_left() is None
    overview._begun -= 10.0  # as if ten seconds had passed
    overview.ended("short", "")
    left = overview.seconds_left()
    assert left is not None
    assert left == pytest.approx(30.0, rel=0.05)
