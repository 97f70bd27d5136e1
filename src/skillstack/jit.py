"""One way to compile: cached on disk, without the interpreter lock (threads run side by side), and typed for mypy."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def jit(function: Function) -> Function:
    """Compile with Numba at the first call. `parallel=True` is avoided: its cache is not safe in several processes."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inline(function: Function) -> Function:
    """Compile a small helper into its callers."""
    return cast(Function, numba.njit(inline="always", error_model="numpy")(function))
