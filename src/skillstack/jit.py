"""One way to compile: cached on disk, without the interpreter lock (threads run side by side), and typed for mypy."""

from collections.abc import Callable, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile with Numba at the first call. `parallel=True` is avoided: its cache is not safe in several processes."""
    return _compiled(function, frozenset())


def jit_sums(function: Function) -> Function:
    """The same, but sums may be added up in another order, and with products rounded once: several terms at a time."""
    return _compiled(function, {"reassoc", "contract"})


def _compiled(function: Function, liberties: Set[str]) -> Function:
    compiler = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=set(liberties) or False)
    return cast(Function, compiler(function))


def drop_stale_caches(package: Path) -> None:
    """Remove compiled code that is older than any source.

    Numba looks at the file of the compiled function alone, and would go on using what it compiled in from other files.
    """
    newest = max(source.stat().st_mtime for source in package.rglob("*.py"))
    folders = [package, *([Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else [])]
    for index in (index for folder in folders for index in folder.rglob("*.nbi")):
        with suppress(OSError):  # another process may be at it, too, or the folder belongs to somebody else
            if index.stat().st_mtime < newest:
                index.unlink()


drop_stale_caches(Path(__file__).parent)
