"""The folder of a run: its settings, metrics, checkpoints and newest agent, written by one process at a time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np

from skillstack import __version__
from skillstack.disk import clear_leftovers, flush_folder, is_leftover, make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.learning.checkpoint import Checkpoints

FORMAT = "skillstack-run"
FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
METRICS_FILE = "metrics.jsonl"
CHECKPOINTS_FOLDER = "checkpoints"
AGENT_FOLDER = "agent"
TENSORBOARD_FOLDER = "tensorboard"
WANDB_FILE = "wandb.txt"
"""What Weights & Biases knows a run by."""
COMMAND_FILE = "command.txt"
"""What was typed to begin a run, and at which commit."""
LOCK_FILE = ".lock"


class RunFolder:
    """A run's folder, locked for this process until it is closed or the process ends, however it ends."""

    def __init__(self, path: Path, config: dict[str, Any], lock: _Lock, metrics: BinaryIO) -> None:
        """For `create` and `open`."""
        self.path = path
        self.config = config
        """Every setting of the run, as JSON has it."""
        self.agent_path = path / AGENT_FOLDER
        """Where the newest agent is."""
        self.checkpoints = Checkpoints(path / CHECKPOINTS_FOLDER)
        self._config_content = (path / CONFIG_FILE).read_bytes()
        self._lock = lock
        self._metrics = metrics

    @classmethod
    def create(cls, path: str | os.PathLike[str], config: Mapping[str, Any]) -> Self:
        """Begin a run in a folder that is not there yet, is empty, or holds one that has no checkpoint yet."""
        folder = Path(path)
        content = _config_content(config)
        try:
            _check_empty(folder)
            make_folder(folder)
            with _locked(folder) as lock:
                _check_empty(folder)  # another process may have begun in the meantime
                clear_leftovers(folder)
                (folder / METRICS_FILE).unlink(missing_ok=True)
                write_file(folder / CONFIG_FILE, content)
                metrics = _open_metrics(folder)
        except OSError as error:
            raise SkillstackError(
                f"A run cannot begin in {folder} ({error.strerror or error}); choose a folder that can be written."
            ) from error
        return cls(folder, read_config(folder), lock, metrics)

    @classmethod
    def open(cls, path: str | os.PathLike[str], warn: Callable[[str], None] = warnings.warn) -> Self:
        """Go on with a run, after clearing up what a killed process left: files half written, a line half written.

        Settings that were changed since are set aside for those that the newest checkpoint has; `warn` is told so.
        """
        folder = Path(path)
        _saved_config(folder)  # before anything is written into what may not be a run
        try:
            with _locked(folder) as lock:
                clear_leftovers(folder)
                _repair_config(folder, warn)
                config = read_config(folder)
                metrics = _open_metrics(folder)
        except OSError as error:
            raise SkillstackError(
                f"The run {folder} cannot go on ({error.strerror or error}); make all of it readable and writable."
            ) from error
        return cls(folder, config, lock, metrics)

    def config_files(self) -> dict[str, bytes]:
        """The settings as a checkpoint keeps them, too, in case their own file is damaged, even under way."""
        return {CONFIG_FILE: self._config_content}

    def append(self, event: Mapping[str, Any]) -> None:
        """Add a line to the metrics. NumPy's numbers are written as plain ones, and NaN and infinity as null."""
        line = (json.dumps(_plain(event), allow_nan=False) + "\n").encode()
        end = self._metrics.seek(0, os.SEEK_END)
        written = 0
        try:
            while written < len(line):
                written += self._metrics.write(line[written:])
        except OSError as error:
            os.ftruncate(self._metrics.fileno(), end)
            raise self._unwritable(error) from error

    def metrics_position(self) -> int:
        """The length of the metrics so far, in bytes, all of which are flushed to the disk: for a checkpoint."""
        try:
            os.fsync(self._metrics.fileno())
        except OSError as error:
            raise self._unwritable(error) from error
        return self._metrics.seek(0, os.SEEK_END)

    def truncate_metrics(self, position: int, warn: Callable[[str], None] = warnings.warn) -> None:
        """Drop the lines that were written after a checkpoint that holds this position.

        Where lines are missing because the file was changed, the run goes on without them, and `warn` gets a sentence.
        """
        path = self.path / METRICS_FILE
        size = self._metrics.seek(0, os.SEEK_END)
        os.ftruncate(self._metrics.fileno(), min(size, position))
        end = _end_of_last_line(path)
        os.ftruncate(self._metrics.fileno(), end)
        if end != position:
            warn(f"{path} was changed since the checkpoint was saved: it has {end} bytes up to there, not {position}.")

    def read_metrics(self) -> list[dict[str, Any]]:
        """All events so far."""
        return read_metrics(self.path)

    def close(self) -> None:
        """Give the folder free for another process."""
        self._metrics.close()
        self._lock.release()

    def _unwritable(self, error: OSError) -> SkillstackError:
        return SkillstackError(
            f"{self.path / METRICS_FILE} cannot be written ({error.strerror or error}); "
            "make space there, and resume the run."
        )

    def __enter__(self) -> Self:
        """The folder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def read_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The settings of a run, also of one that is going on; whatever is wrong with them is said in one sentence."""
    folder, file, advice = Path(path), Path(path) / CONFIG_FILE, "give the folder of a run"
    if not folder.exists():
        raise SkillstackError(f"{folder} does not exist; {advice}.")
    try:
        content = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DamagedConfigError(f"{folder} is not a run, as it has no {CONFIG_FILE}; {advice}.") from error
    except OSError as error:
        raise SkillstackError(f"{file} cannot be read ({error.strerror or error}); {advice}.") from error
    except (ValueError, RecursionError) as error:
        raise _damaged_config(folder, "is not JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DamagedConfigError(
            f'{folder} is not a run, as its {CONFIG_FILE} does not say "format": "{FORMAT}"; {advice}.'
        )
    version, config = content.get("format_version"), content.get("config")
    if version != FORMAT_VERSION:
        raise SkillstackError(
            f"The run {folder} has format version {version}, and Skillstack {__version__} reads {FORMAT_VERSION}; "
            "go on with the Skillstack that began it."
        )
    if not isinstance(config, dict) or content.get("checksum") != _checksum(config):
        raise _damaged_config(folder, "does not have its checksum")
    return config


def _saved_config(folder: Path) -> bytes | None:
    """None if a run's settings are as they were written; else those that its newest checkpoint has, if it has them."""
    try:
        read_config(folder)
    except DamagedConfigError:
        found = Checkpoints(folder / CHECKPOINTS_FOLDER).load_newest(warn=lambda sentence: None)
        if found is None or CONFIG_FILE not in found[1]:
            raise
        return found[1][CONFIG_FILE]
    return None


def _repair_config(folder: Path, warn: Callable[[str], None]) -> None:
    content = _saved_config(folder)
    if content is None:
        return
    file, aside = folder / CONFIG_FILE, folder / f"{CONFIG_FILE}.{secrets.token_hex(4)}.damaged"
    if file.exists():
        file.rename(aside)
    write_file(file, content)
    warn(
        f"{file} was not as the run wrote it, and is now {aside.name}; the settings are those of its last checkpoint. "
        "For others, begin a run by --fork or --from."
    )


def read_metrics(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All events of a run, also of one that is going on, whose last line may be half written."""
    file = Path(path) / METRICS_FILE
    try:
        *lines, _ = file.read_bytes().split(b"\n")
    except OSError as error:
        raise SkillstackError(f"{file} cannot be read ({error.strerror or error}); name another run.") from error
    return [_event(line, f"Line {number} of {file}") for number, line in enumerate(lines, start=1)]


# Settings


def _config_content(config: Mapping[str, Any]) -> bytes:
    settings = json.loads(json.dumps(config, allow_nan=False))
    content = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "skillstack_version": __version__,
        "config": settings,
        "checksum": _checksum(settings),
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _checksum(settings: Mapping[str, Any]) -> str:
    """Of the settings, however they are laid out."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


class DamagedConfigError(SkillstackError):
    """A run's settings are not as they were written, or it is no run at all."""


def _damaged_config(folder: Path, what: str) -> DamagedConfigError:
    return DamagedConfigError(
        f"The run {folder} cannot be used, as its {CONFIG_FILE} {what}; restore the file as it was, or let --resume "
        "take it from a checkpoint, if there is one."
    )


def _check_empty(folder: Path) -> None:
    """A run begins in an empty folder; what was left by a process that ended while beginning does not count."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise SkillstackError(f"{folder} is a file; choose another name for the run.")
    if _only_beginning(folder):
        return
    if (folder / CONFIG_FILE).exists():
        raise SkillstackError(f"{folder} is a run already; go on with it by --resume {folder}, or choose another name.")
    if not all(entry.name == LOCK_FILE or is_leftover(entry.name) for entry in folder.iterdir()):
        raise SkillstackError(f"{folder} is there already and is not empty; choose another name for the run.")


def _only_beginning(folder: Path) -> bool:
    """Whether there is nothing but what a run writes before its first checkpoint."""
    known = {CONFIG_FILE, METRICS_FILE, COMMAND_FILE, WANDB_FILE, TENSORBOARD_FOLDER, CHECKPOINTS_FOLDER, LOCK_FILE}
    if not all(entry.name in known or is_leftover(entry.name) for entry in folder.iterdir()):
        return False
    try:
        read_config(folder)
    except SkillstackError:  # it may be somebody else's
        return False
    return not Checkpoints(folder / CHECKPOINTS_FOLDER).numbers()


# Metrics


def _event(line: bytes, where: str) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise SkillstackError(f"{where} is damaged; remove the line, or restore the file.")
    return event


def _open_metrics(folder: Path) -> BinaryIO:
    """The metrics, to append to, without the half of a line that a killed process may have left."""
    path = folder / METRICS_FILE
    metrics = path.open("ab", buffering=0)
    try:
        os.ftruncate(metrics.fileno(), _end_of_last_line(path))
        flush_folder(folder)
    except BaseException:
        metrics.close()
        raise
    return metrics


def _plain(value: Any) -> Any:
    """As JSON has it, where every reader understands it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _end_of_last_line(path: Path, block: int = 1 << 16) -> int:
    """How many bytes there are up to the last end of a line."""
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - block)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


# The lock


class _Lock:
    """An exclusive lock on a folder. The system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise SkillstackError("Training needs the file locks of Linux or macOS.") from error
        self._descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise SkillstackError(
                f"Another process is training in {folder}; wait for it to end, or choose another name for the run."
            ) from error
        except BaseException:
            self.release()
            raise
        _locks.add(self)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1


@contextmanager
def _locked(folder: Path) -> Iterator[_Lock]:
    """A lock that stays, unless something goes wrong inside."""
    lock = _Lock(folder)
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


_locks: weakref.WeakSet[_Lock] = weakref.WeakSet()


def _leave_locks_to_parent() -> None:
    """A lock is held until every copy of its descriptor is closed, and worker processes outlive a killed parent."""
    for lock in list(_locks):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_locks_to_parent)
