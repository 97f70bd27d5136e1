"""Writing so that nothing is ever half written: aside, flushed, then renamed."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path


def write_folder(folder: Path, files: Mapping[str, bytes], ours: re.Pattern[str]) -> None:
    """Write the files aside, flush them, and only then give the folder its name.

    A folder that is there gives way; files in it whose names are not `ours` are carried over.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    token = secrets.token_hex(4)
    new, old = (folder.with_name(f".{folder.name}.{token}.{which}") for which in ("new", "old"))
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


def _discard(old: Path, folder: Path, ours: re.Pattern[str]) -> None:
    """Remove the agent that was replaced, but keep what others had put into its folder."""
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
