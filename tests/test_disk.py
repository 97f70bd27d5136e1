from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from skillstack import disk
from skillstack.disk import clear_leftovers, is_leftover, make_folder, remove_folder, write_file, write_folder

OURS = re.compile("[ab]")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if not path.is_dir()}


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is flushed and renamed, in its order, with what is written aside named by what it will be."""
    calls: list[tuple[str, str]] = []

    def named(path: Path) -> str:
        return re.sub(r"^\.(.*)\.[0-9a-f]{8}", r"\1", path.name)

    def fsync(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        (path,) = (path for path in [tmp_path, *tmp_path.rglob("*")] if path.stat().st_ino == inode)
        calls.append(("flush", named(path)))

    def rename(path: Path, target: Path, real: Callable[[Path, Path], Path] = Path.replace) -> Path:
        calls.append(("rename", named(path)))
        return real(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "rename", rename)
    monkeypatch.setattr(Path, "replace", rename)
    return calls


def test_a_folder_gets_its_name_only_when_all_in_it_is_flushed(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    write_folder(tmp_path / "runs" / "it", {"a": b"1", "b": b"2"}, OURS)
    assert calls == [
        ("flush", tmp_path.name),  # it has "runs" now
        ("flush", "a"),
        ("flush", "b"),
        ("flush", "it.new"),
        ("rename", "it.new"),
        ("flush", "runs"),
    ]
    assert contents(tmp_path) == {"runs/it/a": b"1", "runs/it/b": b"2"}


def test_a_file_gets_its_name_only_when_it_is_flushed(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    (tmp_path / "a").write_bytes(b"old")
    write_file(tmp_path / "a", b"new")
    assert calls == [("flush", "a.new"), ("rename", "a.new"), ("flush", tmp_path.name)]
    assert contents(tmp_path) == {"a": b"new"}


def test_every_folder_that_is_made_is_flushed_into_the_one_above(tmp_path: Path, calls: list[tuple[str, str]]) -> None:
    make_folder(tmp_path / "a" / "b" / "c")
    assert calls == [("flush", tmp_path.name), ("flush", "a"), ("flush", "b")]
    make_folder(tmp_path / "a" / "b" / "c")
    assert len(calls) == 3


def test_a_folder_that_is_replaced_keeps_the_files_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    write_folder(folder, {"a": b"1", "b": b"2"}, OURS)
    (folder / "notes").write_bytes(b"mine")
    write_folder(folder, {"a": b"3"}, OURS)
    assert contents(tmp_path) == {"it/a": b"3", "it/notes": b"mine"}


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_is_full_leaves_what_was_there_and_nothing_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        write_folder(tmp_path / "it", {"a": b"1"}, OURS)
        write_file(tmp_path / "b", b"1")
    before = contents(tmp_path)

    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="No space"):
        write_folder(tmp_path / "it", {"a": b"2"}, OURS)
    with pytest.raises(OSError, match="No space"):
        write_file(tmp_path / "b", b"2")
    assert contents(tmp_path) == before


class KilledError(BaseException):
    """In place of a signal: nothing in a process that is killed can catch it."""


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Die in place of clearing up."""

    def die(*args: object, **options: object) -> None:
        raise KilledError

    monkeypatch.setattr(shutil, "rmtree", die)
    return monkeypatch


def test_what_a_killed_process_was_removing_is_not_there_under_its_name(
    tmp_path: Path, killing: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "it", {"a": b"1"}, OURS)
    with pytest.raises(KilledError):
        remove_folder(tmp_path / "it")
    assert not (tmp_path / "it").exists()
    killing.undo()
    clear_leftovers(tmp_path)
    assert contents(tmp_path) == {}


def test_what_a_killed_process_had_written_aside_is_cleared(tmp_path: Path, killing: pytest.MonkeyPatch) -> None:
    def die(path: Path, data: bytes) -> None:
        path.write_bytes(data[:1])
        raise KilledError

    killing.setattr(disk, "write_flushed", die)
    with pytest.raises(KilledError):
        write_folder(tmp_path / "it", {"a": b"1"}, OURS)
    (tmp_path / ".a.0123abcd.new").write_bytes(b"1")
    assert [is_leftover(entry.name) for entry in tmp_path.iterdir()] == [True, True]
    killing.undo()
    clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_a_killed_process_was_replacing_is_put_back(tmp_path: Path, killing: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it"
    write_folder(folder, {"a": b"1"}, OURS)
    rename = Path.rename

    def die_between(path: Path, target: Path) -> Path:
        if path.name.endswith((".new", ".old")):
            raise KilledError
        return rename(path, target)

    killing.setattr(Path, "rename", die_between)
    with pytest.raises(KilledError):
        write_folder(folder, {"a": b"2"}, OURS)
    assert not folder.exists()
    killing.undo()
    clear_leftovers(tmp_path)
    assert contents(tmp_path) == {"it/a": b"1"}


def test_a_folder_that_was_replaced_already_is_cleared(tmp_path: Path, killing: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "it", {"a": b"1"}, OURS)
    with pytest.raises(KilledError):
        write_folder(tmp_path / "it", {"a": b"2"}, OURS)
    killing.undo()
    clear_leftovers(tmp_path)
    assert contents(tmp_path) == {"it/a": b"2"}


def test_what_others_have_put_beside_is_not_taken_for_a_leftover(tmp_path: Path) -> None:
    names = [".hidden", "it.0123abcd.new", ".it.0123abcd.new.txt", ".it.0123ABCD.old", "000000012"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    clear_leftovers(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(names)
