"""The bench measures what it says."""

from __future__ import annotations

from typing import Literal

import pytest

from skillstack.bench import measure_first_frame, measure_learning, measure_runner, measure_world


def test_the_first_frame_comes_sooner_the_second_time() -> None:
    cold, warm = measure_first_frame()
    assert warm < cold


@pytest.mark.parametrize(("levels", "items"), [(1, 6), (4, 12), (6, 6)])
def test_ladders_of_any_height_and_width_can_be_measured(levels: int, items: int) -> None:
    result = measure_runner(levels, items, num_games=4, episodes=4, runs=1)
    assert (result.levels, result.items) == (levels, items)
    assert result.steps_per_second > 0
    assert 0 < result.ratio < 1.5
    assert {"world", "network"} == set(result.timing.parts)
    assert 0 < result.timing.rest < result.timing.seconds


def test_the_world_is_measured_with_and_without_random_looks() -> None:
    for randomise in (False, True):
        speed = measure_world(4, randomise, seconds=0.05, runs=2)
        assert speed.steps_per_second > 100


@pytest.mark.parametrize("encoder", ["own", "frozen"])
def test_learning_is_measured_beside_the_bare_passes_it_needs(encoder: Literal["own", "frozen"]) -> None:
    speed = measure_learning(encoder, updates=3, games=4)
    assert speed.encoder == encoder
    assert speed.decisions_per_second > 0
    assert 0 < speed.ratio < 1.5
