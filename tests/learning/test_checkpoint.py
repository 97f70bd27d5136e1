from __future__ import annotations

import errno
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_disk import small_disk

from skillstack import disk
from skillstack.errors import SkillstackError
from skillstack.learning import checkpoint
from skillstack.learning.checkpoint import MANIFEST, Checkpoints, kept


def files(number: int, size: int = 1000) -> dict[str, bytes]:
    """What a checkpoint of this number holds, so that it can be told whether it is whole."""
    return {"arrays.safetensors": random.Random(number).randbytes(size), "state.json": b"%d" % number}


def saved(folder: Path, *numbers: int, keep: int = 100, size: int = 1000) -> Checkpoints:
    checkpoints = Checkpoints(folder, keep)
    for number in numbers:
        checkpoints.save(number, files(number, size))
    return checkpoints


def no_warning(sentence: str) -> None:
    raise AssertionError(sentence)


def all_bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Saving and loading


def test_the_newest_checkpoint_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path / "runs" / "checkpoints", 7, 12, 100)
    assert checkpoints.load_newest(no_warning) == (100, files(100))


def test_where_nothing_was_saved_there_is_nothing_to_load(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "not there").load_newest(no_warning) is None
    assert Checkpoints(tmp_path).load_newest(no_warning) is None


def test_a_checkpoint_is_a_folder_named_by_its_number_with_hashes_of_its_files(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path).save(12, {"state.json": b"{}"})
    assert path == tmp_path / "000000012"
    assert sorted(entry.name for entry in path.iterdir()) == [MANIFEST, "state.json"]
    assert json.loads((path / MANIFEST).read_bytes()) == {
        "format": "skillstack-checkpoint",
        "format_version": 1,
        "number": 12,
        "files": {
            "state.json": {
                "size": 2,
                "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
            }
        },
    }


def test_what_is_not_named_as_a_checkpoint_is_not_taken_for_one(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 5)
    for name in [".000000006.0123abcd.new", "000000007.0123abcd.damaged", "8", "0000000000009", "notes", "00000001a"]:
        (tmp_path / name).mkdir()
    assert checkpoints.numbers() == [5]
    assert checkpoints.load_newest(no_warning) == (5, files(5))


def test_numbers_of_more_digits_than_names_are_padded_to_sort_as_numbers(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 2 * 10**9, 999_999_999)
    assert checkpoints.numbers() == [999_999_999, 2 * 10**9]
    assert checkpoints.load_newest(no_warning) == (2 * 10**9, files(2 * 10**9))


def test_a_whole_checkpoint_is_never_overwritten(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 5)
    with pytest.raises(SkillstackError, match=r"Checkpoint 5 is in .* already"):
        checkpoints.save(5, {"state.json": b"other"})
    assert checkpoints.load_newest(no_warning) == (5, files(5))


def test_a_damaged_checkpoint_gives_way_to_a_new_one_and_is_set_aside(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 4, 5)
    (tmp_path / "000000005" / "state.json").write_bytes(b"damaged")
    checkpoints.save(5, files(5))
    assert checkpoints.load_newest(no_warning) == (5, files(5))
    (aside,) = tmp_path.glob("*.damaged")
    assert (aside / "state.json").read_bytes() == b"damaged"
    assert checkpoints.numbers() == [4, 5]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 5)
    for name in [".000000006.0123abcd.new", ".000000001.0123abcd.gone"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "state.json").write_bytes(b"half")
    checkpoints.save(6, files(6))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["000000005", "000000006"]


@pytest.mark.parametrize("name", ["../state.json", "/state.json", "a/b", "", ".state", "a\n", MANIFEST])
def test_a_file_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SkillstackError, match="cannot have a file named"):
        Checkpoints(tmp_path).save(1, {name: b""})


@pytest.mark.parametrize("number", [-1, 10**18])
def test_a_number_that_is_no_name_is_refused(tmp_path: Path, number: int) -> None:
    with pytest.raises(SkillstackError, match=str(number)):
        Checkpoints(tmp_path).save(number, {})


def test_to_keep_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SkillstackError, match="At least 1"):
        Checkpoints(tmp_path, keep=0)


# Damage


def flip(position: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[min(int(position * len(data)), len(data) - 1)] ^= 1
        path.write_bytes(data)

    return damage


def truncate(position: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(position * path.stat().st_size))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


DAMAGE: Mapping[str, Callable[[Path], None]] = {
    **{f"flip at {position}": flip(position) for position in (0.0, 0.3, 0.5, 0.9, 1.0)},
    **{f"truncate to {position}": truncate(position) for position in (0.0, 0.5, 0.999)},
    "append": append,
    "remove": Path.unlink,
}


@pytest.mark.parametrize("name", [*files(0), MANIFEST])
@pytest.mark.parametrize("kind", DAMAGE)
def test_with_a_damaged_file_the_one_before_is_loaded_and_a_sentence_says_why(
    tmp_path: Path, name: str, kind: str
) -> None:
    checkpoints = saved(tmp_path, 1, 2, 3)
    DAMAGE[kind](tmp_path / "000000003" / name)
    after = all_bytes(tmp_path)
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (2, files(2))
    (sentence,) = warnings
    assert sentence.startswith(f"Checkpoint 3 in {tmp_path} is passed over, as its ")
    assert name in sentence or name == MANIFEST  # with a damaged manifest, any other file can seem to be wrong
    assert all_bytes(tmp_path) == after, "nothing is removed or repaired unasked"


def test_any_changed_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2, size=50)
    for path in sorted((tmp_path / "000000002").iterdir()):
        whole = path.read_bytes()
        for place in range(len(whole)):
            for bit in (1, 32):
                path.write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
                warnings: list[str] = []
                assert checkpoints.load_newest(warnings.append) == (1, files(1, 50)), (path.name, place)
                assert len(warnings) == 1
        path.write_bytes(whole)
    assert checkpoints.load_newest(no_warning) == (2, files(2, 50))


def test_a_folder_that_goes_away_while_it_is_looked_at_has_no_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that comes to its end drops its checkpoints while another process looks how far it is."""
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    assert Checkpoints(tmp_path / "gone").numbers() == []


def test_a_checkpoint_under_the_number_of_another_is_passed_over(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    (tmp_path / "000000002").rename(tmp_path / "000000003")
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (1, files(1))
    assert "manifest.json is not the one that was saved" in warnings[0]


def test_a_manifest_that_names_files_elsewhere_is_passed_over(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path / "checkpoints", 1, 2)
    (tmp_path / "secret").write_bytes(b"{}")
    path = tmp_path / "checkpoints" / "000000002" / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"state.json"', b'"../../secret"'))
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (1, files(1))
    assert "names files that cannot be" in warnings[0]


def test_a_checkpoint_of_a_later_format_is_passed_over_with_its_version(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    path = tmp_path / "000000002" / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"format_version": 1', b'"format_version": 2'))
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (1, files(1))
    assert "format version 2" in warnings[0]


def test_several_damaged_ones_are_passed_over_one_by_one(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2, 3, 4)
    for number in (2, 4):
        (tmp_path / f"{number:09d}" / "state.json").unlink()
    (tmp_path / "000000003" / MANIFEST).unlink()
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (1, files(1))
    assert [sentence.split(" in ")[0] for sentence in warnings] == ["Checkpoint 4", "Checkpoint 3", "Checkpoint 2"]


def test_when_all_are_damaged_that_is_said_rather_than_to_begin_anew(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    (tmp_path / "000000001" / "state.json").unlink()
    with pytest.raises(SkillstackError, match=r"All checkpoints in .* are damaged"):
        checkpoints.load_newest(lambda sentence: None)


def test_without_anyone_to_tell_a_python_warning_tells_of_damage(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    (tmp_path / "000000002" / "state.json").unlink()
    with pytest.warns(UserWarning, match="Checkpoint 2 .* is passed over"):
        assert checkpoints.load_newest() == (1, files(1))


# Thinning


def thinned(numbers: Iterator[int] | range, keep: int) -> set[int]:
    """What is there in the end, if one thins after each save."""
    there: set[int] = set()
    for number in numbers:
        there = kept({*there, number}, keep)
    return there


def test_the_newest_stay_and_of_the_older_ones_one_for_each_doubling_of_age() -> None:
    assert sorted(kept(range(1025), keep=1)) == [0, 512, 768, 896, 960, 992, 1008, 1016, 1020, 1022, 1023, 1024]
    assert sorted(kept(range(1025), keep=5))[-6:] == [1016, 1020, 1021, 1022, 1023, 1024]


@pytest.mark.parametrize("keep", [1, 3, 10])
def test_the_number_of_checkpoints_grows_as_the_logarithm(keep: int) -> None:
    there: set[int] = set()
    for number in range(1, 3000):
        there = kept({*there, number}, keep)
        assert len(there) <= keep + math.log2(number) + 1
        assert set(range(max(1, number - keep + 1), number + 1)) <= there


@pytest.mark.parametrize("step", [1, 7, 100])
def test_there_is_always_one_about_half_as_old_or_twice_as_old(step: int) -> None:
    for last in (10, 64, 100, 777, 1000):
        there = thinned(range(0, last * step, step), keep=3)
        newest = max(there)
        for number in range(0, last * step, step):
            assert min(abs(number - other) for other in there) <= (newest - number) / 2
        assert len(there) <= 3 + math.log2(last) + 1


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 5000), min_size=1, max_size=60), st.integers(1, 5))
def test_thinning_twice_is_thinning_once_and_the_first_and_the_newest_stay(numbers: set[int], keep: int) -> None:
    there = kept(numbers, keep)
    assert kept(there, keep) == there
    assert {min(numbers), *sorted(numbers)[-keep:]} <= there <= numbers


def test_saving_thins_by_the_rule(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, *range(1, 41), keep=2)
    assert set(checkpoints.numbers()) == thinned(range(1, 41), keep=2)
    assert len(list(tmp_path.iterdir())) == len(checkpoints.numbers())
    assert checkpoints.load_newest(no_warning) == (40, files(40))


def test_damaged_ones_of_higher_numbers_do_not_push_out_a_new_one(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, *range(1, 10))
    for number in (6, 7, 8, 9):
        (tmp_path / f"{number:09d}" / "state.json").unlink()
    checkpoints.keep = 1
    checkpoints.save(6, files(6))
    warnings: list[str] = []
    assert checkpoints.load_newest(warnings.append) == (6, files(6))
    assert len(warnings) == 3


def test_old_ones_that_cannot_be_removed_are_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = saved(tmp_path, 1, 2, 3, 4, keep=1)

    def refuse(path: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("skillstack.learning.checkpoint.remove_folder", refuse)
    with pytest.raises(SkillstackError, match=r"Old checkpoints in .* cannot be removed \(Permission denied\)"):
        checkpoints.save(5, files(5))
    monkeypatch.undo()
    assert checkpoints.load_newest(no_warning) == (5, files(5))


# Killing

WRITER = """
import os, random, sys
from pathlib import Path
from skillstack.learning.checkpoint import Checkpoints

def say(*words):
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

checkpoints = Checkpoints(Path(sys.argv[1]), keep=2)
for _ in sys.stdin:  # each line asks for a writer, which goes on from where the one before was killed
    child = os.fork()
    if child == 0:
        number = max(checkpoints.numbers(), default=0)
        while True:
            number += 1
            files = {"arrays.safetensors": random.Random(number).randbytes(200_000), "state.json": b"%d" % number}
            checkpoints.save(number, files)
            say("saved", number)
    say("writer", child)
    os.waitpid(child, 0)
    say("ended")
"""


def kill_a_writer(process: subprocess.Popen[str], delay: float) -> int:
    """Have one more writer write, kill it, and tell which checkpoint it said to have finished last."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    last = 0
    lines: IO[str] = process.stdout
    while (words := lines.readline().split())[0] != "writer":
        last = int(words[1])
    time.sleep(delay)
    os.kill(int(words[1]), signal.SIGKILL)
    while (words := lines.readline().split())[0] != "ended":
        last = int(words[1])
    return last


def test_a_writer_killed_at_any_moment_loses_at_most_what_it_had_not_finished(tmp_path: Path) -> None:
    folder, rng, finished, lefts = tmp_path / "checkpoints", random.Random(0), 0, 0
    checkpoints = Checkpoints(folder, keep=2)
    begin = time.perf_counter()
    saved(tmp_path / "trial", 1, 2, 3, size=200_000)
    longest = min(max(0.03, time.perf_counter() - begin), 0.2)  # enough to start and to save some
    arguments = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(100):
            finished = max(finished, kill_a_writer(process, rng.uniform(0.0, longest)))
            newest = checkpoints.load_newest(no_warning)
            number = newest[0] if newest else 0
            assert finished <= number <= finished + 1
            assert newest is None or newest[1] == files(number, 200_000)
            finished = number
            lefts += any(entry.name.startswith(".") for entry in folder.iterdir()) if folder.exists() else 0
        process.stdin.close()  # type: ignore[union-attr]
    assert finished > 10, "the writers must have got somewhere"
    assert lefts > 10, "many of the moments must have been in the middle of writing"


# A full disk


def check_that_saving_fails_cleanly(checkpoints: Checkpoints, number: int, size: int, reason: str) -> None:
    before = all_bytes(checkpoints.folder)
    with pytest.raises(SkillstackError, match=rf"Checkpoint {number} cannot be saved to .*{number} \({reason}\); "):
        checkpoints.save(number, files(number, size))
    assert all_bytes(checkpoints.folder) == before, "nothing half written is left, and nothing older is lost"


def test_a_full_disk_leaves_the_older_checkpoints_and_saving_works_again_with_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1_000_000) as reason:
        checkpoints = saved(tmp_path / "disk" / "checkpoints", 1, 2, size=200_000)
        check_that_saving_fails_cleanly(checkpoints, 3, 1_200_000, reason)
        assert checkpoints.load_newest(no_warning) == (2, files(2, 200_000))
        checkpoints.save(3, files(3, 200_000))
        assert checkpoints.load_newest(no_warning) == (3, files(3, 200_000))


def test_a_full_disk_is_thinned_before_giving_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1_000_000):
        checkpoints = saved(tmp_path / "disk", 1, 2, 3, 4, size=200_000)
        checkpoints.keep = 1
        checkpoints.save(5, files(5, 300_000))
        assert checkpoints.load_newest(no_warning) == (5, files(5, 300_000))
        assert set(checkpoints.numbers()) == kept(range(1, 6), keep=1)


def test_on_a_full_disk_old_ones_go_before_the_new_one_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints, there = saved(tmp_path, 1, 2, 3, 4), []
    checkpoints.keep, write = 1, checkpoint.write_folder

    def full_once(*arguments: Any) -> None:
        there.append(checkpoints.numbers())
        if len(there) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*arguments)

    monkeypatch.setattr(checkpoint, "write_folder", full_once)
    checkpoints.save(5, files(5))
    assert there == [[1, 2, 3, 4], sorted(kept(range(1, 6), keep=1) - {5})]
    assert len(there[1]) < 4
    assert checkpoints.load_newest(no_warning) == (5, files(5))


def test_a_limit_on_the_size_of_files_is_as_a_full_disk(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        check_that_saving_fails_cleanly(checkpoints, 3, 150_000, "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert checkpoints.load_newest(no_warning) == (2, files(2))


def full_after(monkeypatch: pytest.MonkeyPatch, calls: int, code: int = errno.ENOSPC) -> None:
    """Let the disk be full from some call of fsync on."""
    real, left = os.fsync, [calls]

    def fsync(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_whichever_file_fails_nothing_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, code: int
) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    full_after(monkeypatch, calls, code)
    check_that_saving_fails_cleanly(checkpoints, 3, 1000, os.strerror(code))
    assert checkpoints.load_newest(no_warning) == (2, files(2))


def test_a_full_disk_never_costs_the_newest_whole_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = saved(tmp_path, *range(1, 12))
    for number in (9, 10, 11):
        (tmp_path / f"{number:09d}" / "state.json").write_bytes(b"damaged")
    checkpoints.keep = 1
    assert 7 not in kept(range(1, 13), keep=1)
    (tmp_path / "000000008" / "state.json").write_bytes(b"damaged")
    full_after(monkeypatch, 0)
    with pytest.raises(SkillstackError, match="No space left on device"):
        checkpoints.save(12, files(12))
    assert checkpoints.load_newest(lambda sentence: None) == (7, files(7))


def test_a_folder_that_cannot_be_made_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(disk, "make_folder", refuse)
    with pytest.raises(SkillstackError, match=r"Checkpoint 1 cannot be saved to .* \(Permission denied\)"):
        Checkpoints(tmp_path / "checkpoints").save(1, files(1))
