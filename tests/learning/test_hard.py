"""Games that went badly are played once more until they go well, and count for nothing but learning."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from tiny import tiny

from skillstack.instructions import Instruction
from skillstack.learning import hard as module
from skillstack.learning.hard import HardGames
from skillstack.learning.trainer import Trainer
from skillstack.rollout.episode import Episode

RED, BLUE = Instruction("find", "red"), Instruction("find", "blue")


class Played:
    """As much of an episode as matters here."""

    def __init__(self, success: bool, steps: int = 10) -> None:
        self.success, self.steps = success, steps


def note(games: HardGames, tasks: list[Instruction], seeds: list[int], won: list[bool], again: int = 0) -> None:
    games.note(tasks, seeds, cast(list[Episode], [Played(success) for success in won]), again)


def test_a_game_that_is_won_slowly_stays_until_it_is_won_as_soon_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 1)
    games, rng = HardGames(), np.random.default_rng(0)

    def played(*steps: int) -> list[Episode]:
        return cast(list[Episode], [Played(True, count) for count in steps])

    games.note([RED, RED, BLUE], [1, 2, 3], played(10, 10, 41), again=0)  # twice the mean is 40.7
    assert games.draw(1, rng) == [(BLUE, 3)]
    games.note([BLUE, RED], [3, 4], played(21, 10), again=1)  # the mean is of new games alone
    assert games.draw(1, rng) == [(BLUE, 3)]
    games.note([BLUE, RED], [3, 5], played(20, 10), again=1)
    assert games.draw(1, rng) == []


def test_a_game_is_slow_beside_those_of_its_own_skill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 1)
    games = HardGames()
    put, stack = Instruction("put", "red"), Instruction("stack", "red")
    steps = (1, 1, 1, 9, 30, 30)  # the long "put" is slow, and "stack" takes its time
    episodes = cast(list[Episode], [Played(True, count) for count in steps])
    games.note([put, put, put, put, stack, stack], list(range(6)), episodes, again=0)
    assert games.state() == [["put red", 3]]


def test_a_lost_game_stays_until_it_is_won(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 2)
    games, rng = HardGames(), np.random.default_rng(0)
    note(games, [RED, BLUE, RED], [1, 2, 3], [False, True, False])
    assert sorted(games.draw(2, rng)) == [(RED, 1), (RED, 3)]
    note(games, [RED, RED, BLUE], [1, 3, 4], [True, False, False], again=2)
    assert sorted(games.draw(2, rng)) == [(BLUE, 4), (RED, 3)]
    assert games.draw(3, rng) == []  # there are not so many


def test_few_are_not_played_over_and_over() -> None:
    games = HardGames()
    note(games, [RED] * 31, list(range(31)), [False] * 31)
    assert games.draw(4, np.random.default_rng(0)) == []
    note(games, [BLUE], [99], [False])
    assert len(games.draw(4, np.random.default_rng(0))) == 4


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    games = HardGames()
    note(games, [RED] * 5, list(range(5)), [False] * 5)
    assert [seed for _, seed in games.state()] == [2, 3, 4]


def test_its_state_brings_them_back() -> None:
    games, back = HardGames(), HardGames()
    note(games, [RED, BLUE], [1, 2**63], [False, False])
    back.load_state(games.state())
    assert back.state() == games.state() == [["find red", 1], ["find blue", 2**63]]


@pytest.mark.parametrize("level", [0, 1])
def test_hard_games_start_as_before_and_do_not_count_for_the_windows(
    level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENOUGH", 1)
    config = tiny(seeing=8)
    groups: dict[str, Any] = {"terminal": config.terminal, "level": config.level}
    changes = {name: replace(group, again=0.5) for name, group in groups.items()}
    trainer = Trainer(replace(config, **changes), first_stage=level)
    stage = trainer.stage
    drawn: set[tuple[str, int]] = set()
    for _ in range(3):
        before = {(task, seed) for task, seed in stage.hard.state()}
        tasks, seeds, again = stage._choose_games()
        chosen = {(str(task), seed) for task, seed in zip(tasks[:again], seeds[:again], strict=True)}
        assert chosen <= before
        drawn |= chosen
        metrics = stage.turn()
        assert ("success of hard games" in metrics) <= bool(before)
    assert drawn
    windows = sum(len(recent) for recent in stage.curriculum.state()["recent"].values())
    assert windows < stage.episodes
