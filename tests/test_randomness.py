import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.randomness import draw, draw_below, mix, uniforms

# The first outputs of SplitMix64 from state 1234567, as its public test vectors give them.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]
RELAXED = settings(deadline=None)  # the first call compiles
SEEDS = st.integers(0, 2**64 - 1)


def test_draws_are_the_published_outputs_of_splitmix64() -> None:
    state = 1234567
    for output in PUBLISHED:
        state, unit = draw(np.uint64(state))
        assert unit == (output >> 11) / 2**53


@RELAXED
@given(SEEDS, st.integers(0, 20))
def test_mix_is_the_counter_th_output_of_a_generator_that_the_seed_begins(seed: int, counter: int) -> None:
    state = mix_bits(seed)
    for _ in range(counter + 1):
        state, unit = draw(np.uint64(state))
    assert int(mix(seed, counter)) >> 11 == int(unit * 2**53)
    assert uniforms(seed, counter) == unit


def mix_bits(z: int) -> int:
    """The output function of SplitMix64, in Python's own numbers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


@RELAXED
@given(st.lists(SEEDS, min_size=1, max_size=20), st.integers(0, 2**40))
def test_mix_works_elementwise(seeds: list[int], counter: int) -> None:
    together = mix(np.array(seeds, dtype=np.uint64), counter)
    assert together.tolist() == [int(mix(seed, counter)) for seed in seeds]


def test_arrays_of_seeds_and_counters_broadcast() -> None:
    table = uniforms(np.arange(3, dtype=np.uint64)[:, None], np.arange(5))
    assert table.shape == (3, 5)
    assert table[2, 4] == uniforms(2, 4)


@RELAXED
@given(SEEDS, st.integers(1, 1000))
def test_whole_numbers_stay_below_their_bound(seed: int, bound: int) -> None:
    _, number = draw_below(np.uint64(seed), bound)
    assert 0 <= number < bound


def test_whole_numbers_are_equally_likely() -> None:
    state, counts = 5, np.zeros(6, dtype=int)
    for _ in range(12_000):
        state, number = draw_below(np.uint64(state), 6)
        counts[number] += 1
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)


@pytest.mark.parametrize("axis", ["seeds", "counters"])
def test_neighbouring_seeds_and_counters_give_unrelated_numbers(axis: str) -> None:
    numbers = np.arange(20_000, dtype=np.uint64)
    units = uniforms(numbers, 0) if axis == "seeds" else uniforms(0, numbers)
    assert units.min() >= 0
    assert units.max() < 1
    assert abs(units.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(units[:-1], units[1:])[0, 1]) < 0.03


def test_seeds_and_counters_are_not_interchangeable() -> None:
    grid = mix(np.arange(50, dtype=np.uint64)[:, None], np.arange(50))
    assert len(np.unique(grid)) == grid.size
