"""Writing so that nothing is ever half written: aside, flushed, then renamed."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

_ASIDE = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.(?P<kind>new|old|gone)")
"""What is not there yet, what gives way to something new, and what is being removed."""


def write_folder(folder: Path, files: Mapping[str, bytes], ours: re.Pattern[str]) -> None:
    """Write the files aside, flush them, and only then give the folder its name.

    A folder that is there gives way; files in it whose names are not `ours` are carried over.
    """
    make_folder(folder.parent)
    new, old = _aside(folder, "new"), _aside(folder, "old")
    try:
        new.mkdir()
        for name, data in files.items():
            write_flushed(new / name, data)
        flush_folder(new)
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except BaseException:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(new, ignore_errors=True)
        raise
    flush_folder(folder.parent)
    _discard(old, folder, ours)


def write_file(path: Path, data: bytes) -> None:
    """Write a file aside, flush it, and only then give it its name, in place of a file that is there."""
    new = _aside(path, "new")
    try:
        write_flushed(new, data)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder with all above it, flushed, so that what is flushed into it can be found after a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder so that nothing under its name is ever half of it."""
    gone = _aside(folder, "gone")
    folder.rename(gone)
    shutil.rmtree(gone)


def is_leftover(name: str) -> bool:
    """Whether something is named as the functions here name what they write or remove aside."""
    return _ASIDE.fullmatch(name) is not None


def clear_leftovers(parent: Path) -> None:
    """Clear up after writers that were killed: nobody else may be writing into the folder now."""
    for entry in sorted(parent.iterdir()):
        match = _ASIDE.fullmatch(entry.name)
        if match is None:
            continue
        named = parent / match["name"]
        if match["kind"] == "old" and not named.exists():  # killed between the two renamings of `write_folder`
            entry.rename(named)
        elif entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _aside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{kind}")


def _discard(old: Path, folder: Path, ours: re.Pattern[str]) -> None:
    """Remove the folder that was replaced, but keep what others had put into it."""
    if not old.exists():
        return
    for entry in old.iterdir():
        if not ours.fullmatch(entry.name):
            entry.rename(folder / entry.name)
    shutil.rmtree(old, ignore_errors=True)


def write_flushed(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
