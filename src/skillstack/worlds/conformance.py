"""Does a world fulfil the contract? A checker for worlds of one's own that says exactly what is missing.

>>> from skillstack.worlds.rooms import RoomsWorld
>>> check_world(lambda num_games: RoomsWorld(num_games=num_games), games=4, steps=10)
[]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray, Vocabulary
from skillstack.worlds.world import IntArray, OpenWorld, SnapshotWorld, World, WorldDescription

MakeWorld = Callable[[int], World]
"""Makes a world with so many games."""


def check_world(make: MakeWorld, games: int = 8, steps: int = 40) -> list[str]:
    """Play at random and return what does not fulfil the contract, a sentence each; an empty list if all is well."""
    try:
        world = make(games)
    except Exception as error:  # whatever a user's own world may raise
        raise SkillstackError(
            f"A world of {games} games could not be made ({type(error).__name__}: {error}); the function must take the "
            "number of games and return a world."
        ) from error
    missing = _missing_parts(world)
    if missing:
        return missing
    checks = (_check_description, _check_shapes, _check_starts, _check_batching, _check_subsets, _check_refusals)
    problems: list[str] = []
    for check in checks:
        problems += _guarded(check, make, games, steps)
    if not problems and isinstance(world, SnapshotWorld):
        problems += _guarded(_check_snapshots, make, games, steps)
    if not problems and isinstance(world, OpenWorld):
        problems += _guarded(_check_openness, make, games, steps)
    return problems


def _guarded(check: Callable[..., Iterator[str]], make: MakeWorld, games: int, steps: int) -> list[str]:
    try:
        return list(check(make, games, steps))
    except Exception as error:
        what = (check.__doc__ or "").splitlines()[0]
        return [f"An exception was raised while checking: {what} {type(error).__name__}: {error}"]


def _missing_parts(world: Any) -> list[str]:
    attributes = ("description", "rewards", "num_games")
    methods = ("reset", "step", "observe", "achieved", "executable")
    found = [f"The world has no attribute `{name}`." for name in attributes if not hasattr(world, name)]
    found += [f"The world has no method `{name}`." for name in methods if not callable(getattr(world, name, None))]
    for together in (("snapshot", "restore", "render"), ("num_facts", "facts", "ahead")):
        missing = [f"`{name}`" for name in together if not hasattr(world, name)]
        if 0 < len(missing) < len(together):
            names = "`{}`, `{}` and `{}`".format(*together)
            found.append(f"The world has some of {names}, but lacks {', '.join(missing)}: give all or none.")
    return found


def _check_description(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """The description tells the words, the actions and the size of the picture."""
    world = make(games)
    description = world.description
    if not isinstance(description, WorldDescription):
        yield "`description` must be a WorldDescription."
        return
    if world.num_games != games:
        yield f"A world made for {games} games says that it has {world.num_games}."
    if not description.actions or len(set(description.actions)) != len(description.actions):
        yield "The actions must have names, each of its own."
    if len(description.image_shape) != 3 or description.image_shape[2] != 3:
        yield f"Frames must be height x width x 3, not {description.image_shape}."


def _check_shapes(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """Frames and answers have the promised shapes and types."""
    world = make(games)
    tasks = _tasks(world, games)
    world.reset(tasks, _seeds(games))
    frames = world.observe()
    if frames.shape != (games, *world.description.image_shape) or frames.dtype != np.uint8:
        wanted = (games, *world.description.image_shape)
        yield f"`observe` must give uint8 of shape {wanted}, not {frames.dtype} {frames.shape}."
    every = np.broadcast_to(
        _all_tasks(world.description.vocabulary), (games, len(world.description.vocabulary.tasks), 2)
    )
    for name in ("achieved", "executable"):
        ask = getattr(world, name)
        one, many = ask(tasks), ask(every)
        if one.shape != (games,) or one.dtype != np.bool_:
            yield f"`{name}` of tasks (n, 2) must give bool of shape (n,), not {one.dtype} {one.shape}."
        elif many.shape != every.shape[:2]:
            yield f"`{name}` of tasks (n, m, 2) must give shape (n, m), not {many.shape}."
        elif not all(np.array_equal(ask(every[:, m])[:], many[:, m]) for m in range(0, every.shape[1], 5)):
            yield f"`{name}` answers differently when several tasks are asked at once."
    frames[:] = 0
    if not world.observe().any():
        yield "`observe` gives an array that the world goes on using: give the caller an array of its own."


def _check_starts(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """A game starts with its task not achieved, and executable."""
    world = make(games)
    for task in world.description.vocabulary.tasks:
        tasks = np.tile(world.description.vocabulary.encode(task), (games, 1))
        world.reset(tasks, _seeds(games))
        if world.achieved(tasks).any():
            yield f'A game for "{task}" starts with it achieved.'
        if not world.executable(tasks).all():
            yield f'A game for "{task}" starts where it cannot be executed.'


def _check_batching(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """A game is a function of its task, seed and actions, whatever is played beside it."""
    together = _play(make(games), np.arange(games), games, steps)
    for game in range(min(games, 3)):
        alone = _play(make(1), np.array([game]), games, steps)
        for name in together:
            if not np.array_equal(together[name][:, game : game + 1], alone[name]):
                yield f"Game {game} comes out differently alone and beside {games - 1} others: its {name} differ."
    again = _play(make(games), np.arange(games), games, steps)
    if any(not np.array_equal(together[name], again[name]) for name in together):
        yield "The same seeds and actions do not give the same games twice."


def _check_subsets(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """With `games` given, the named games are meant and the others are left alone."""
    world = make(games)
    tasks = _tasks(world, games)
    world.reset(tasks, _seeds(games))
    before = world.observe()
    some = np.arange(games)[::2]
    rest = np.setdiff1d(np.arange(games), some)
    if not np.array_equal(world.observe(some), before[some]):
        yield "`observe(games)` does not give the frames of those games."
    for action in range(len(world.description.actions)):
        world.step(np.full(len(some), action), some)
    if not np.array_equal(world.observe(rest), before[rest]):
        yield "`step` with some games changes other games."
    world.reset(tasks[some], _seeds(games)[some], some)
    if not np.array_equal(world.observe(), before):
        yield "`reset` with the same tasks and seeds does not bring the same games back, or changes other games."


def _check_refusals(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """Wrong actions and tasks are refused with a SkillstackError or a ValueError."""
    world = make(games)
    tasks = _tasks(world, games)
    world.reset(tasks, _seeds(games))
    wrong: dict[str, Callable[[], Any]] = {
        "an action that does not exist": lambda: world.step(np.full(games, len(world.description.actions))),
        "too few actions": lambda: world.step(np.zeros(games - 1, dtype=np.int64)),
        "too many actions": lambda: world.step(np.zeros(games + 1, dtype=np.int64)),
        "a task that does not exist": lambda: world.achieved(np.full((games, 2), 10_000)),
    }
    for what, call in wrong.items():
        try:
            call()
        except (ValueError, SkillstackError):
            continue
        yield f"The world takes {what} without a SkillstackError or a ValueError."


def _check_snapshots(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """A snapshot holds the whole state: put back, all goes on as before; drawn, it looks the same."""
    world = make(games)
    other = make(games)
    assert isinstance(world, SnapshotWorld)
    assert isinstance(other, SnapshotWorld)
    tasks = _tasks(world, games)
    world.reset(tasks, _seeds(games))
    rng = np.random.default_rng(0)
    for _ in range(steps):
        world.step(rng.integers(len(world.description.actions), size=games))
    kept, frames = world.snapshot(), world.observe()
    if not np.array_equal(world.render(kept), frames):
        yield "`render` of a snapshot is not what `observe` gave."
    if not np.array_equal(world.render(kept[::-1].copy()), frames[::-1]):
        yield "`render` depends on the order of the snapshots."
    actions = rng.integers(len(world.description.actions), size=(steps, games))
    other.reset(tasks, _seeds(games) + np.uint64(99))
    other.restore(kept)
    for row in actions:
        world.step(row)
        other.step(row)
    if not np.array_equal(world.observe(), other.observe()):
        yield "A game that was put back from a snapshot does not go on as the original does."
    if not np.array_equal(world.render(kept), frames):
        yield "A snapshot changes when the game it was taken of goes on."


def _check_openness(make: MakeWorld, games: int, steps: int) -> Iterator[str]:
    """What a critic is shown is of the states that it names: their facts, and what each action would lead to."""
    world = make(games)
    assert isinstance(world, OpenWorld)
    tasks, rng = _tasks(world, games), np.random.default_rng(0)
    actions = len(world.description.actions)
    world.reset(tasks, _seeds(games))
    for _ in range(steps):
        world.step(rng.integers(actions, size=games))
    kept = world.snapshot()
    facts = world.facts(kept, tasks)
    if facts.shape != (games, world.num_facts) or facts.dtype != np.uint8:
        yield f"`facts` must be uint8 of shape (n, num_facts), not {facts.dtype} of shape {facts.shape}."
    elif (facts > 1).any():
        yield "`facts` must be zeros and ones."
    elif not np.array_equal(world.facts(kept[::-1].copy(), tasks[::-1].copy()), facts[::-1]):
        yield "`facts` depends on the order of the snapshots."
    after, achieved = world.ahead(kept, tasks)
    if not np.array_equal(world.render(world.snapshot()), world.render(kept)):
        yield "`ahead` changes the games."
    for action in range(actions):
        world.restore(kept)
        world.step(np.full(games, action))
        same = np.array_equal(world.render(after[:, action].copy()), world.observe())
        if not same or not np.array_equal(achieved[:, action], world.achieved(tasks)):
            yield f'`ahead` does not tell what "{world.description.actions[action]}" leads to.'


def _play(world: World, numbers: IntArray, games: int, steps: int) -> dict[str, Any]:
    """What the numbered games look like over some steps of random play: arrays (steps, n, ...)."""
    tasks = _tasks(world, games)[numbers]
    world.reset(tasks, _seeds(games)[numbers])
    actions = np.random.default_rng(3).integers(len(world.description.actions), size=(steps, games))[:, numbers]
    seen: dict[str, list[Any]] = {"frames": [], "achieved": [], "executable": []}
    for row in actions:
        world.step(row)
        seen["frames"].append(world.observe())
        seen["achieved"].append(world.achieved(tasks))
        seen["executable"].append(world.executable(tasks))
    return {name: np.stack(values) for name, values in seen.items()}


def _all_tasks(vocabulary: Vocabulary) -> TaskArray:
    return vocabulary.encode(vocabulary.tasks)


def _tasks(world: World, games: int) -> TaskArray:
    every = _all_tasks(world.description.vocabulary)
    return every[np.arange(games) * 7 % len(every)]


def _seeds(games: int) -> Any:
    return np.arange(games, dtype=np.uint64) + np.uint64(17)
