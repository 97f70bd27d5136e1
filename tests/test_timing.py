"""The timing tree adds up."""

from __future__ import annotations

import time

from skillstack.timing import REST, Timer


def test_parts_nest_and_what_is_left_is_the_rest() -> None:
    timer = Timer("work")
    for _ in range(2):
        with timer("outer"):
            time.sleep(0.01)
            with timer("inner"):
                time.sleep(0.01)
    outer = timer.root.parts["outer"]
    assert outer.times == outer.parts["inner"].times == 2
    assert timer.seconds("outer", "inner") >= 0.02
    assert outer.rest >= 0.02
    assert timer.root.seconds == outer.seconds
    assert timer.seconds("outer", "nothing") == 0.0
    lines = timer.root.lines()
    assert lines[0].startswith("work")
    assert any("inner" in line for line in lines)
    assert any(REST in line for line in lines)


def test_a_part_that_fails_is_timed_all_the_same() -> None:
    timer = Timer()
    try:
        with timer("broken"):
            raise RuntimeError
    except RuntimeError:
        pass
    with timer("next"):
        pass
    assert set(timer.root.parts) == {"broken", "next"}
