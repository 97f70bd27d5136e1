"""What is so in a state, as numbers, for a critic that sees more than the agent does while that agent learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.instructions import SKILLS, TaskArray
from skillstack.jit import jit
from skillstack.worlds.rooms.layout import (
    ANYTHING,
    BLOCK_X,
    BLOCK_Z,
    FACING,
    FORWARD_X,
    FORWARD_Z,
    HELD,
    ITEM,
    KEPT,
    NOTHING,
    RoomsConfig,
    State,
    X,
    Z,
    inside,
)
from skillstack.worlds.rooms.physics import top_block

Facts = npt.NDArray[np.uint8]

HAND = 4  # nothing in it, what the task is about, something else; and whether it is as a game of finding wants it


def num_facts(config: RoomsConfig) -> int:
    """Two maps around the agent, how far it is to the wall in each direction, the hand, and the skill."""
    reach = _reach(config)
    return 2 * (2 * reach + 1) ** 2 + 4 * (reach + 1) + HAND + len(SKILLS)


def tell_facts(config: RoomsConfig, states: State, count: int, tasks: TaskArray) -> Facts:
    """Zeros and ones (count, facts) of the first states, each seen from where its agent stands and looks."""
    facts = np.zeros((count, num_facts(config)), dtype=np.uint8)
    _tell(states["agent"], states["room"], states["blocks"], np.ascontiguousarray(tasks), _reach(config), facts)
    return facts


def _reach(config: RoomsConfig) -> int:
    """How far away a block of the same room can be."""
    return max(config.room_width * (2 if config.big else 1), config.room_depth) + config.grow - 1 + int(config.big)


@jit
def _tell(agents: Any, rooms: Any, blocks: Any, tasks: Any, reach: int, facts: Any) -> None:
    side = 2 * reach + 1
    for i in range(len(facts)):
        agent, skill, item = agents[i], tasks[i, 0], tasks[i, 1]
        for slot in range(blocks.shape[1]):
            if blocks[i, slot, ITEM] == NOTHING:
                continue
            forward, right = _seen_from(agent, blocks[i, slot, BLOCK_X], blocks[i, slot, BLOCK_Z])
            top = blocks[i, top_block(blocks[i], blocks[i, slot, BLOCK_X], blocks[i, slot, BLOCK_Z]), ITEM]
            other = int(top != item)
            facts[i, other * side * side + (forward + reach) * side + right + reach] = 1
        place = 2 * side * side
        for quarter in range(4):
            facts[i, place + _to_wall(agent, rooms[i], quarter)] = 1
            place += reach + 1
        held = agent[HELD]
        facts[i, place + (0 if held == NOTHING else 1 if held == item else 2)] = 1
        facts[i, place + 3] = agent[KEPT] == ANYTHING or agent[KEPT] == held
        facts[i, place + HAND + skill] = 1


@jit
def _seen_from(agent: Any, x: int, z: int) -> tuple[int, int]:
    """How far ahead of the agent a cell is, and how far to its right."""
    east, south = x - agent[X], z - agent[Z]
    ahead, right = agent[FACING], (agent[FACING] + 1) % 4
    return (
        east * FORWARD_X[ahead] + south * FORWARD_Z[ahead],
        east * FORWARD_X[right] + south * FORWARD_Z[right],
    )


@jit
def _to_wall(agent: Any, room: Any, quarter: int) -> int:
    """Free cells up to the wall, so many quarter turns to the right of where the agent looks."""
    direction = (agent[FACING] + quarter) % 4
    x, z, cells = int(agent[X]), int(agent[Z]), -1
    while inside(room, x, z):
        x, z, cells = x + FORWARD_X[direction], z + FORWARD_Z[direction], cells + 1
    return cells
