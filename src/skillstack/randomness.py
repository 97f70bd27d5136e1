"""Random numbers as pure functions of a seed and a counter, so that games do not depend on how they are batched.

The generator is SplitMix64 (Steele, Lea, Flood 2014). The same formulas serve compiled loops (`draw`) and arrays
(`mix`, `uniforms`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skillstack.jit import jit

U64 = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_A = np.uint64(0xBF58476D1CE4E5B9)
_B = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53


@jit
def draw(state: np.uint64) -> tuple[np.uint64, float]:
    """The next state and a number in [0, 1); for compiled loops."""
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return state, (z >> np.uint64(11)) * 2.0**-53


@jit
def draw_below(state: np.uint64, bound: int) -> tuple[np.uint64, int]:
    """The next state and a whole number in [0, bound); for compiled loops."""
    state, unit = draw(state)
    return state, int(unit * bound)


def mix(seed: npt.ArrayLike, counter: npt.ArrayLike) -> U64:
    """New seeds from seeds and counters, elementwise: the counter-th output of the seed's own generator.

    >>> bool(mix(1, 0) == mix(1, 0)), bool(mix(1, 0) == mix(0, 1))
    (True, False)
    """
    with np.errstate(over="ignore"):
        state = _bits(np.asarray(seed, dtype=np.uint64)) + (np.asarray(counter, dtype=np.uint64) + np.uint64(1)) * _STEP
        return _bits(state)


def uniforms(seed: npt.ArrayLike, counter: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1) from seeds and counters, elementwise."""
    return np.asarray((mix(seed, counter) >> np.uint64(11)) * _UNIT, dtype=np.float64)


def _bits(z: U64) -> U64:
    z = (z ^ (z >> np.uint64(30))) * _A
    z = (z ^ (z >> np.uint64(27))) * _B
    return z ^ (z >> np.uint64(31))
