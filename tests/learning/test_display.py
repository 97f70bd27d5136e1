"""What a person sees of a run fits into a usual terminal."""

from __future__ import annotations

import io

from rich.console import Console
from tiny import TINY

from skillstack.learning.display import Display
from skillstack.learning.trainer import Progress, Trainer


def shown(terminal: bool, width: int = 80) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=width, color_system=None)
    trainer = Trainer(TINY)
    success = {"find": 0.991, "get": 0.982, "put": 1.0, "stack": 0.973}
    progress = Progress(3, 4, "stack", "novel", 12_345, 22_000, success, 1234.5, 754.0)
    trainer.progress = lambda: progress  # type: ignore[method-assign]
    with Display(console, trainer) as display:
        display.show({"event": "turn", "novel phase begins": False})
    return text.getvalue()


def test_all_of_it_is_there_in_eighty_columns() -> None:
    text = shown(terminal=True)
    assert "pi_3 of 3: stack, all tasks: 12,345 episodes" in text
    assert "find 0.991, get 0.982, put 1.000, stack 0.973  1,234 steps/s" in text
    assert "━" in text
    assert "-:--:--" in text  # nothing is known yet of the time left


def test_where_there_is_no_terminal_it_is_plain_lines() -> None:
    (line,) = shown(terminal=False, width=200).splitlines()
    assert line == (
        "pi_3 of 3: stack, all tasks: 12,345 episodes  find 0.991, get 0.982, put 1.000, stack 0.973  1,234 steps/s  "
        "some 13 min left of this stage"
    )
