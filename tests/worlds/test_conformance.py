"""The checker finds nothing wrong with our world, and says what is wrong with broken ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skillstack.worlds.conformance import check_world
from skillstack.worlds.rooms import Randomisation, RoomsConfig, RoomsWorld


@pytest.mark.parametrize(
    "config",
    [RoomsConfig(), RoomsConfig(big=True), RoomsConfig(distractors=False, randomise=Randomisation(variety=8))],
)
def test_our_world_fulfils_the_contract(config: RoomsConfig) -> None:
    assert check_world(lambda num_games: RoomsWorld(config, num_games)) == []


class Forgetful(RoomsWorld):
    """Keeps only half of its state in a snapshot."""

    def restore(self, snapshots: Any, games: Any = None) -> None:
        snapshots = snapshots.copy()
        snapshots["agent"][:, 2] = 0  # everyone faces north
        super().restore(snapshots, games)


class Entangled(RoomsWorld):
    """Its games depend on each other."""

    def step(self, actions: Any, games: Any = None) -> None:
        super().step(np.full_like(np.asarray(actions), np.asarray(actions).sum() % 8), games)


class Grabby(RoomsWorld):
    """Steps every game, whichever are named."""

    def step(self, actions: Any, games: Any = None) -> None:
        super().step(np.resize(np.asarray(actions), self.num_games))


class Lenient(RoomsWorld):
    """Takes any action."""

    def step(self, actions: Any, games: Any = None) -> None:
        super().step(np.resize(np.asarray(actions), self.num_games if games is None else len(games)) % 8, games)


class Solved(RoomsWorld):
    """Everything is achieved from the start."""

    def achieved(self, tasks: Any, games: Any = None) -> Any:
        return np.ones(np.asarray(tasks).shape[:-1], dtype=np.bool_)


class Clairvoyant(RoomsWorld):
    """Foresees what will not be."""

    def ahead(self, snapshots: Any, tasks: Any) -> Any:
        after, achieved = super().ahead(snapshots, tasks)
        return after[:, ::-1], achieved


class Restless(RoomsWorld):
    """Goes there to see what it is like."""

    def ahead(self, snapshots: Any, tasks: Any) -> Any:
        self.step(np.full(self.num_games, 4))
        return super().ahead(snapshots, tasks)


class Vague(RoomsWorld):
    """Tells what is so in other numbers."""

    def facts(self, snapshots: Any, tasks: Any) -> Any:
        return super().facts(snapshots, tasks) * 2


class Terse(RoomsWorld):
    """Leaves a fact out."""

    def facts(self, snapshots: Any, tasks: Any) -> Any:
        return super().facts(snapshots, tasks)[:, 1:]


class Sharing(RoomsWorld):
    """Hands out its own picture."""

    picture: Any = None

    def observe(self, games: Any = None) -> Any:
        self.picture = super().observe(games) if self.picture is None or games is not None else self.picture
        return self.picture


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (Forgetful, "put back from a snapshot"),
        (Entangled, "comes out differently alone"),
        (Grabby, "changes other games"),
        (Lenient, "an action that does not exist"),
        (Solved, "starts with it achieved"),
        (Sharing, "an array of its own"),
        (Restless, "`ahead` changes the games"),
        (Vague, "zeros and ones"),
        (Terse, "of shape (n, num_facts)"),
        (Clairvoyant, 'does not tell what "move forward" leads to'),
    ],
)
def test_a_broken_world_is_told_what_is_wrong(broken: type[RoomsWorld], sentence: str) -> None:
    problems = check_world(lambda num_games: broken(num_games=num_games), games=4, steps=12)
    assert any(sentence in problem for problem in problems)


def test_missing_methods_are_named() -> None:
    class Half:
        num_games = 1
        snapshot = RoomsWorld.snapshot

    problems = check_world(lambda num_games: Half())  # type: ignore[arg-type, return-value]
    assert "The world has no method `achieved`." in problems
    assert any("lacks `restore`, `render`" in problem for problem in problems)


def test_a_world_that_shows_half_of_what_a_critic_needs_is_told_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(RoomsWorld, "ahead")
    (problem,) = check_world(lambda num_games: RoomsWorld(num_games=num_games), games=2, steps=3)
    assert "lacks `ahead`: give all or none" in problem


def test_an_exception_is_reported_and_does_not_end_the_check() -> None:
    class Broken(RoomsWorld):
        def executable(self, tasks: Any, games: Any = None) -> Any:
            raise RuntimeError("out of order")

    problems = check_world(lambda num_games: Broken(num_games=num_games), games=2, steps=3)
    assert any("out of order" in problem for problem in problems)
