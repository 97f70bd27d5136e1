"""Two phases, by the mean reward of the base tasks' last episodes, and which tasks are drawn in them."""

from __future__ import annotations

import numpy as np

from skillstack import Instruction, make_stages
from skillstack.learning.curriculum import BASE, NOVEL, Curriculum

STAGE = make_stages("find, get", ["red", "blue"])[1]
RED, BLUE, GET = Instruction("find", "red"), Instruction("find", "blue"), Instruction("get", "red")


def make(**settings: object) -> Curriculum:
    return Curriculum(STAGE, **{"threshold": 0.9, "window": 4, **settings})  # type: ignore[arg-type]


def test_the_base_phase_draws_base_tasks_alone_and_the_novel_phase_all() -> None:
    rng, curriculum = np.random.default_rng(0), make()
    assert {curriculum.draw(rng) for _ in range(100)} == set(STAGE.base)
    curriculum.phase = NOVEL
    assert {curriculum.draw(rng) for _ in range(100)} == set(STAGE.tasks)


def test_every_base_task_must_exceed_the_threshold_over_a_full_window() -> None:
    curriculum = make()
    for _ in range(8):
        assert not curriculum.record(RED, 1.0)
    assert curriculum.phase == BASE
    for reward in (1.0, -0.5, 1.0, 1.0, 1.0):
        assert not curriculum.record(BLUE, reward)  # the window still holds the -0.5
    assert curriculum.record(BLUE, 1.0)
    assert curriculum.phase == NOVEL


def test_a_mean_of_exactly_the_threshold_is_not_enough() -> None:
    curriculum = make(threshold=1.0)
    for task in (RED, BLUE) * 4:
        curriculum.record(task, 1.0)
    assert curriculum.phase == BASE


def test_without_the_curriculum_all_tasks_come_from_the_start() -> None:
    assert make(enabled=False).phase == NOVEL


def test_the_terminal_stage_has_no_base_phase() -> None:
    assert Curriculum(make_stages("find")[0], threshold=0.9, window=4).phase == NOVEL


def test_success_counts_rewards_above_zero_of_the_last_episodes() -> None:
    curriculum = make()
    assert curriculum.success("get") is None
    for reward in (1.0, 1.0, -0.5, 0.0, 1.0):
        curriculum.record(GET, reward)
    assert curriculum.success("get") == 0.5


def test_what_fails_is_the_share_of_lost_games_of_each_task() -> None:
    """Of the last four; one that was not played yet fails wholly."""
    curriculum = make()
    for reward in (-0.5, 1.0, 1.0, 0.0, 1.0):
        curriculum.record(BLUE, reward)
    curriculum.record(GET, 1.0)
    assert curriculum.failing().tolist() == [[1.0, 0.25], [0.0, 1.0]]


def test_its_state_brings_phase_and_windows_back() -> None:
    curriculum, other = make(), make()
    for task in (RED, BLUE, GET):
        curriculum.record(task, 1.0)
    curriculum.phase = NOVEL
    other.load_state(curriculum.state())
    assert other.state() == curriculum.state()


def test_a_task_that_is_left_out_is_never_drawn_and_nothing_waits_for_it() -> None:
    rng, curriculum = np.random.default_rng(0), make(enabled=False, left_out=[GET])
    assert {curriculum.draw(rng) for _ in range(100)} == set(STAGE.tasks) - {GET}
    for task in set(STAGE.tasks) - {GET}:
        for _ in range(4):
            curriculum.record(task, 1.0)
    assert curriculum.all_windows_full()
    assert curriculum.success("get") == 1.0


def test_all_base_tasks_together_may_have_to_exceed_the_threshold_in_place_of_each() -> None:
    curriculum = make(each=False, threshold=0.5)
    for _ in range(8):
        assert not curriculum.record(RED, 1.0)  # nothing is known of the other one yet
    for reward in (-0.5, 0.0, 0.0):
        assert not curriculum.record(BLUE, reward)  # its window is not full
    assert not curriculum.record(BLUE, 0.5)  # a mean of exactly 0.5
    assert curriculum.record(BLUE, 0.0)  # the window no longer holds the -0.5
    assert curriculum.phase == NOVEL


def test_a_share_of_the_novel_phase_may_be_of_new_tasks_however_many_there_are() -> None:
    stage = make_stages("find, get, put", ["red", "blue"])[2]
    rng, curriculum = np.random.default_rng(0), Curriculum(stage, threshold=0.9, window=4, novel=0.8)
    assert {curriculum.draw(rng) for _ in range(100)} == set(stage.base)
    curriculum.phase = NOVEL
    drawn = [curriculum.draw(rng) for _ in range(2000)]
    assert set(drawn) == set(stage.tasks)
    assert 0.77 < sum(task.skill == "put" for task in drawn) / len(drawn) < 0.83


def test_where_no_new_task_is_left_all_games_are_of_the_others() -> None:
    rng, curriculum = (
        np.random.default_rng(0),
        make(enabled=False, novel=0.8, left_out=[GET, Instruction("get", "blue")]),
    )
    assert {curriculum.draw(rng) for _ in range(100)} == set(STAGE.base)
