"""A plan played again, to get its pictures: a game is a pure function of its task, its seed and its actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError, unknown
from skillstack.rollout.plan import START, PlanTree
from skillstack.worlds.world import Frames, IntArray, Snapshots, SnapshotWorld, ToldWorld, World

Picture = npt.NDArray[np.uint8]
"""One picture, shape (height, width, 3)."""

MAP_SIZE = 336
"""Pixels that a map is high, at the most."""


@runtime_checkable
class MapWorld(Protocol):
    """A world that can draw itself from above, for people to look at."""

    def map_picture(self, game: int, size: int, path: Sequence[tuple[float, float]] = ()) -> Picture:
        """One game from above, at most `size` pixels high; `path` is where the agent has been."""
        ...


@runtime_checkable
class PathWorld(MapWorld, Protocol):
    """A world that can also say where the agent is, so that its way can be drawn into the map."""

    def map_position(self, game: int) -> tuple[float, float]:
        """Where the agent is now, as `map_picture` wants its path."""
        ...


@dataclass(frozen=True)
class Recording:
    """What was to be seen in a game: before the first step, and after each."""

    frames: Frames
    """(steps + 1, height, width, 3): what the agent saw."""
    maps: list[Picture] | None = None
    """As many pictures from above; None where the world cannot draw them, or they were not wanted."""
    states: Snapshots | None = None
    """(steps + 1,): the states, where the world has snapshots."""

    def check(self, tree: PlanTree) -> None:
        """Refuse to go with a plan of another length."""
        steps = len(tree.actions())
        if len(self.frames) != steps + 1:
            raise SkillstackError(
                f"This recording has {len(self.frames)} frames, but a plan of {steps} steps needs {steps + 1}."
            )


def replay(world: World, tree: PlanTree, map_size: int = MAP_SIZE) -> Recording:
    """Play a plan again in the world's game 0, which is put back afterwards where the world can do that.

    A `map_size` of 0 leaves the maps out.
    """
    actions = _action_numbers(world, tree)
    game = np.array([0], dtype=np.int64)
    before = world.snapshot(game) if isinstance(world, SnapshotWorld) else None
    try:
        recording = _record(world, tree, actions, game, map_size)
        _check_ending(world, tree, game)
    finally:
        if before is not None and isinstance(world, SnapshotWorld):
            world.restore(before, game)
    return recording


def _action_numbers(world: World, tree: PlanTree) -> list[int]:
    if tree.world != world.description.name:
        raise SkillstackError(
            f'This plan was played in the world "{tree.world}"; it cannot be shown in "{world.description.name}".'
        )
    names = world.description.actions
    actions = [action for action, _ in tree.actions()]
    for action in actions:
        if action not in names:
            raise unknown("action", action, names)
    return [names.index(action) for action in actions]


def _record(world: World, tree: PlanTree, actions: Sequence[int], game: IntArray, map_size: int) -> Recording:
    task = world.description.vocabulary.encode([tree.root.instruction])
    world.reset(task, np.array([tree.seed], dtype=np.uint64), game)
    _restore_start(world, tree, game)
    frames, maps, states = [], [], []
    path: list[tuple[float, float]] = []
    for action in [None, *actions]:
        if action is not None:
            world.step(np.array([action], dtype=np.int64), game)
        frames.append(world.observe(game)[0])
        if isinstance(world, SnapshotWorld):
            states.append(world.snapshot(game))
        if map_size and isinstance(world, MapWorld):
            maps.append(world.map_picture(0, map_size, tuple(path)))
        if isinstance(world, PathWorld):
            path.append(world.map_position(0))
    return Recording(np.stack(frames), maps or None, np.concatenate(states) if states else None)


def _restore_start(world: World, tree: PlanTree, game: IntArray) -> None:
    """A game that did not begin as its seed has it says in its plan from where it began."""
    start = tree.settings.get(START)
    if start is None:
        return
    if not isinstance(world, ToldWorld):
        raise SkillstackError(f'This plan did not begin as its seed has it, and "{tree.world}" cannot read its start.')
    world.restore(world.state_from_json(start), game)


def _check_ending(world: World, tree: PlanTree, game: IntArray) -> None:
    """With other settings, a seed is another game: then a success is hardly ever one again."""
    task = world.description.vocabulary.encode([tree.root.instruction])
    if tree.success and not world.achieved(task, game)[0]:
        raise SkillstackError(
            f'Played again, this plan does not achieve "{tree.root.instruction}": the world\'s settings must be the '
            "ones that it was recorded with."
        )
