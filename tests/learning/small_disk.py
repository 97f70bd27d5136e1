"""A disk that is soon full."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, size: int, file_size: int | None = None) -> Iterator[str]:
    """A folder with about `size` bytes of space where mounting is allowed, else with a limit on the size of files.

    That limit is `size` as well, unless a `file_size` is given.

    Gives the way in which writing too much fails.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if not mounted:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size or size, limits[1]))
    try:
        yield "No space left on device" if mounted else "File too large"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
