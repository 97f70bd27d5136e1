"""Checkpoints that survive being killed, a damaged file and a full disk: the newest one that is whole is loaded."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillstack.disk import clear_leftovers, remove_folder, write_folder
from skillstack.errors import SkillstackError

FORMAT = "skillstack-checkpoint"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"

_FILE_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class _DamagedError(Exception):
    """Why a checkpoint cannot be loaded, to follow the word "as"."""


@dataclass
class Checkpoints:
    """The checkpoints in a folder, into which one process at a time may write; each is a folder named by its number.

    After each save they are thinned to those that `kept` names: the newest `keep`, and one for every doubling of age.
    """

    folder: Path
    keep: int = 3

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise SkillstackError(f"At least 1 checkpoint must be kept, not {self.keep}.")

    def numbers(self) -> list[int]:
        """The numbers of all checkpoints that are there, damaged ones too, in ascending order."""
        try:
            return sorted(int(entry.name) for entry in self.folder.iterdir() if _is_checkpoint_name(entry.name))
        except (FileNotFoundError, NotADirectoryError):  # there are none yet, or the run was finished as we looked
            return []

    def save(self, number: int, files: Mapping[str, bytes]) -> Path:
        """Write a checkpoint, whole or not at all, then thin the older ones.

        A checkpoint with this number is never overwritten: a whole one is refused, and a damaged one is set aside under
        a name that ends in ".damaged". On a full disk, the thinning is done first, and writing tried once more.
        """
        _check_names(number, files)
        folder = self._path(number)
        try:
            if self.folder.is_dir():
                clear_leftovers(self.folder)
            self._make_way(number)
            self._write(number, {**files, MANIFEST: _manifest(number, _seals(files))})
        except OSError as error:
            raise SkillstackError(
                f"Checkpoint {number} cannot be saved to {folder} ({error.strerror or error}); what was saved last "
                "is still there: make space, or make the folder writable, and resume the run."
            ) from error
        try:
            self._thin(number)
        except OSError as error:
            raise SkillstackError(
                f"Old checkpoints in {self.folder} cannot be removed ({error.strerror or error}); "
                "make the folder writable, and resume the run."
            ) from error
        return folder

    def load_newest(self, warn: Callable[[str], None] = warnings.warn) -> tuple[int, dict[str, bytes]] | None:
        """The number and files of the newest checkpoint that is whole, or None if there is no checkpoint at all.

        Of each damaged one that is passed over, `warn` gets a sentence that says why; it stays where it is. If all
        are damaged that is an error, as to begin anew unasked would be worse.
        """
        numbers = self.numbers()
        for number in reversed(numbers):
            try:
                return number, self._read(number)
            except _DamagedError as error:
                warn(f"Checkpoint {number} in {self.folder} is passed over, as {error}.")
        if numbers:
            raise SkillstackError(f"All checkpoints in {self.folder} are damaged; restore one of them, or begin anew.")
        return None

    def _path(self, number: int) -> Path:
        return self.folder / _name(number)

    def _make_way(self, number: int) -> None:
        folder = self._path(number)
        if not folder.exists():
            return
        if self.is_whole(number):
            raise SkillstackError(f"Checkpoint {number} is in {self.folder} already, and is not overwritten.")
        folder.rename(folder.with_name(f"{folder.name}.{secrets.token_hex(4)}.damaged"))

    def _write(self, number: int, files: Mapping[str, bytes]) -> None:
        ours = re.compile(".*")
        try:
            write_folder(self._path(number), files, ours)
        except OSError as error:
            if error.errno not in _FULL or not self._thin(number):
                raise
            write_folder(self._path(number), files, ours)

    def _thin(self, newest: int) -> int:
        """Remove what is not kept once `newest` is there, but never the newest whole one. How many these were."""
        numbers = [number for number in self.numbers() if number <= newest]
        surplus = sorted(set(numbers) - kept({*numbers, newest}, self.keep))
        if newest not in numbers and surplus:  # with the disk full, what is there is all there is: look twice
            whole = self._newest_whole()
            surplus = [number for number in surplus if number != whole]
        for number in surplus:
            remove_folder(self._path(number))
        return len(surplus)

    def _newest_whole(self) -> int | None:
        return next((number for number in reversed(self.numbers()) if self.is_whole(number)), None)

    def is_whole(self, number: int) -> bool:
        """Whether it is there, with every byte as it was saved."""
        try:
            self._read(number)
        except _DamagedError:
            return False
        return True

    def _read(self, number: int) -> dict[str, bytes]:
        """The files of a checkpoint, if every byte is as it was saved."""
        manifest = self._bytes(number, MANIFEST)
        expected = _seals_of_manifest(manifest)
        files = {name: self._bytes(number, name) for name in expected}
        for name, found in _seals(files).items():
            size = expected[name]["size"]
            if found["size"] != size:
                raise _DamagedError(f"its {name} has {found['size']} bytes in place of {size}")
            if found != expected[name]:
                raise _DamagedError(f"its {name} does not have the SHA-256 that its {MANIFEST} gives")
        if manifest != _manifest(number, expected):
            raise _DamagedError(f"its {MANIFEST} is not the one that was saved")
        return files

    def _bytes(self, number: int, name: str) -> bytes:
        try:
            return (self._path(number) / name).read_bytes()
        except OSError as error:
            raise _DamagedError(f"its {name} cannot be read ({error.strerror or error})") from error


def kept(numbers: Iterable[int], keep: int) -> set[int]:
    """Which checkpoints stay: the newest `keep`, and of the older ones about one for every doubling of age.

    A checkpoint's age is the newest number minus its own, and its stride the largest power of two not above its age.
    It stays if its number is a multiple of its stride, or, where numbers are missing, the first that is there from such
    a multiple to the next. So the first checkpoint of all stays, and of n there stay about `keep` + log2(n). Thinning
    often, or once at the end, comes to about the same: what this would keep later, it keeps now.

    >>> sorted(kept(range(1, 101), keep=3))
    [1, 64, 80, 88, 96, 98, 99, 100]
    """
    ascending = sorted(numbers)
    newest = ascending[-keep:]
    stay = set(newest)
    before = -1  # the next older one that is there, whether it stays or not
    for number in ascending[: -len(newest)]:
        stride = 1 << (ascending[-1] - number).bit_length() - 1
        if before < number // stride * stride:
            stay.add(number)
        before = number
    return stay


def _name(number: int) -> str:
    return f"{number:09d}"


def _is_checkpoint_name(name: str) -> bool:
    return re.fullmatch(r"[0-9]{9,18}", name) is not None and _name(int(name)) == name


def _check_names(number: int, files: Mapping[str, bytes]) -> None:
    if not 0 <= number < 10**18:
        raise SkillstackError(f"The number of a checkpoint is from 0 to 18 digits long, not {number}.")
    for name in files:
        if not _is_file_name(name):
            raise SkillstackError(f'A checkpoint cannot have a file named "{name}".')


def _is_file_name(name: str) -> bool:
    return _FILE_NAME.fullmatch(name) is not None and name != MANIFEST


def _seals(files: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """What tells the files from all others."""
    return {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in sorted(files.items())
    }


def _manifest(number: int, seals: Mapping[str, Mapping[str, Any]]) -> bytes:
    """What a checkpoint says of itself. The same files give the same bytes, so that any change is noticed."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "number": number, "files": seals}
    return (json.dumps(content, indent=1) + "\n").encode()


def _seals_of_manifest(manifest: bytes) -> dict[str, dict[str, Any]]:
    """The seals in a manifest; none of the names leads out of the checkpoint's folder."""
    try:
        content: Any = json.loads(manifest)
        if content["format"] != FORMAT:
            raise ValueError
        version = content["format_version"]
        if version != FORMAT_VERSION:
            raise _DamagedError(f"it has format version {version}, and this Skillstack reads {FORMAT_VERSION}")
        seals = {name: {"size": seal["size"], "sha256": seal["sha256"]} for name, seal in content["files"].items()}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise _DamagedError(f"its {MANIFEST} is not that of a checkpoint") from error
    if not all(_is_file_name(name) for name in seals):
        raise _DamagedError(f"its {MANIFEST} names files that cannot be")
    return seals
