"""Players that stand between an agent and the runner."""

from __future__ import annotations

import numpy as np
import pytest

from skillstack.cli import main
from skillstack.instructions import TaskArray, make_stages
from skillstack.rollout.player import MisledPlayer, Proposal, RandomPlayer
from skillstack.worlds.world import IntArray

STAGES = make_stages("find, get", ["red", "green", "blue"])


class Listener(RandomPlayer):
    """Notes what it is told."""

    def propose(self, level: int, slots: IntArray, tasks: TaskArray) -> Proposal:
        self.told = (level, tasks.tolist())
        return super().propose(level, slots, tasks)


@pytest.mark.parametrize(("level", "told"), [(1, [[1, 1], [0, 0]]), (0, [[1, 0], [0, 2]])])
def test_a_misled_player_is_told_the_next_item_at_its_top_level_alone(level: int, told: list[list[int]]) -> None:
    listener = Listener(STAGES, 8)
    player = MisledPlayer(listener, top=1)
    player.set_up(2)
    tasks = np.array([[1, 0], [0, 2]])
    player.propose(level, np.arange(2), tasks)
    assert listener.told == (level, told)
    assert tasks.tolist() == [[1, 0], [0, 2]]


def test_evaluation_says_that_the_agent_was_misled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "untrained", "--misled", "--episodes", "2", "--level", "0"]) == 0
    assert "misled" in capsys.readouterr().out


def test_the_oracle_cannot_be_misled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "oracle", "--misled"]) == 2
    assert "cannot be misled" in capsys.readouterr().err
