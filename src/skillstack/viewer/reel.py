"""A recorded plan with all that the page needs to show it, for the gallery and for files of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.rollout.plan import PlanRun, PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.plan_svg import level_colour
from skillstack.rollout.replay import replay
from skillstack.viewer.pictures import data_uri
from skillstack.viewer.screen import WorldOf, world_of
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.looks import THEMES, make_materials

MOST_MOMENTS = 2_000
"""A longer plan is not shown: each moment has its sentence, and most have a picture."""
PLAYER = "player"
"""The setting of a plan that tells who played."""


def scene(config: RoomsConfig) -> dict[str, Any]:
    """The rooms and the colours, for the map."""
    means = make_materials(config.items).mean(axis=(1, 2)).astype(int)  # floor and wall of each theme, then the wools
    colours = ["#{:02x}{:02x}{:02x}".format(*mean) for mean in means.tolist()]
    return {
        "rooms": config.rooms.tolist(),
        "floors": [colours[2 * theme] for theme in range(THEMES)],
        "colours": dict(zip(config.items, colours[2 * THEMES :], strict=True)),
        "levels": [level_colour(level) for level in range(12)],
    }


def reel(tree: PlanTree, find: WorldOf = world_of) -> dict[str, Any]:
    """The plan, its pictures and states by step, and what was said at each moment; `find` gives the world for it."""
    if tree.moments() > MOST_MOMENTS:
        raise SkillstackError(
            f"A plan of {tree.moments()} moments is too long to be shown; {MOST_MOMENTS} are possible."
        )
    world = find(tree)
    recording = replay(world, tree, map_size=0)
    assert recording.states is not None, "the rooms have snapshots"
    step, steps = 0, [0]
    for acted in _acted(tree.root):
        step += acted
        steps.append(step)
    return {
        "player": str(tree.settings.get(PLAYER, "")),
        "plan": tree.to_json(),
        "scene": scene(world.config),
        "frames": [data_uri(frame) for frame in recording.frames],
        "states": [world.state_to_json(state) for state in recording.states],
        "moments": [{"step": step, "sentence": plan_sentence(tree.until(moment))} for moment, step in enumerate(steps)],
    }


def _acted(run: PlanRun) -> Iterator[bool]:
    """For each moment, whether it was an action; else it was an utterance that could not be executed."""
    for decision in run.decisions:
        if decision.run is None:
            yield decision.action is not None
        else:
            yield from _acted(decision.run)
