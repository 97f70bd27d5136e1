"""Statistics against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillstack.experiments.statistics import Estimate, band, estimate, interquartile_mean, is_more


def test_the_interquartile_mean_is_the_mean_of_the_middle_half() -> None:
    assert interquartile_mean([8, 1, 2, 3, 4, 5, 6, 100]) == (3 + 4 + 5 + 6) / 4


def test_values_at_the_edge_of_a_quarter_count_in_part() -> None:
    # Five values: a quarter is 1.25 of them, so of the second and the fourth 0.75 count, and the third whole.
    assert interquartile_mean([10, 20, 40, 80, 1000]) == pytest.approx((0.75 * 20 + 40 + 0.75 * 80) / 2.5)


def test_of_one_value_the_interquartile_mean_is_that_value() -> None:
    assert interquartile_mean([0.3]) == pytest.approx(0.3)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_the_interquartile_mean_lies_between_the_least_and_the_greatest_value(values: list[float]) -> None:
    assert min(values) - 1e-9 <= interquartile_mean(values) <= max(values) + 1e-9


def test_seeds_that_agree_leave_no_interval() -> None:
    found = estimate([[0.5, 0.7], [0.5, 0.7], [0.5, 0.7]])
    assert (found.value, found.low, found.high, found.seeds) == pytest.approx((0.6, 0.6, 0.6, 3))


def test_the_bootstrap_draws_seeds_within_each_task_and_keeps_the_tasks() -> None:
    # Tasks differ by much and seeds by nothing: an unstratified bootstrap would give a wide interval.
    found = estimate([[0.0, 1.0]] * 4, middle=False)
    assert (found.low, found.high) == (0.5, 0.5)


def test_the_interval_of_a_plain_mean_is_that_of_the_binomial() -> None:
    # Two seeds, 0 and 1: resampled means are 0, 1/2, 1 with 1/4, 1/2, 1/4, so the interval is all of it.
    found = estimate([0.0, 1.0], middle=False)
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_a_band_has_the_mean_and_an_interval_at_each_point() -> None:
    mean, low, high = band([[0.0, 0.2], [1.0, 0.2], [0.5, 0.2]])
    np.testing.assert_allclose(mean, [0.5, 0.2])
    assert low[0] < 0.5 < high[0]
    np.testing.assert_allclose([low[1], high[1]], [0.2, 0.2])


def test_the_same_data_give_the_same_interval() -> None:
    scores = np.random.default_rng(1).random((5, 3))
    assert estimate(scores) == estimate(scores)


def test_numbers_whose_intervals_overlap_cannot_be_told_apart() -> None:
    low, middle, high = Estimate(0.1, 0.0, 0.2, 3), Estimate(0.25, 0.15, 0.35, 3), Estimate(0.5, 0.4, 0.6, 3)
    assert is_more(high, low) is True
    assert is_more(low, high) is False
    assert is_more(low, middle) is None
