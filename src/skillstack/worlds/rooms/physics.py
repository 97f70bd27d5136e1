"""What the eight actions do. A blocked move does nothing."""

from __future__ import annotations

from typing import Any

from skillstack.jit import jit
from skillstack.worlds.rooms.layout import (
    BLOCK_X,
    BLOCK_Y,
    BLOCK_Z,
    FACING,
    FORWARD_X,
    FORWARD_Z,
    HELD,
    ITEM,
    NOTHING,
    PLACED,
    State,
    X,
    Z,
    inside,
)

# Numbers of layout.ACTIONS. Moves are 0 to 3.
TURN_LEFT, TURN_RIGHT, PICK_UP, PUT_DOWN = range(4, 8)


def step_games(state: State, games: Any, actions: Any) -> None:
    """Take one action in each of `state[games]`."""
    _step_games(state["agent"], state["room"], state["blocks"], games, actions)


@jit
def _step_games(agents: Any, rooms: Any, blocks: Any, games: Any, actions: Any) -> None:
    for i in range(len(games)):
        act(agents[games[i]], rooms[games[i]], blocks[games[i]], actions[i])


@jit
def act(agent: Any, room: Any, blocks: Any, action: int) -> None:
    """Take one action in one game."""
    agent[PLACED] = NOTHING
    if action < TURN_LEFT:
        _move(agent, room, blocks, action)
    elif action == TURN_LEFT:
        agent[FACING] = (agent[FACING] + 3) % 4
    elif action == TURN_RIGHT:
        agent[FACING] = (agent[FACING] + 1) % 4
    elif action == PICK_UP:
        _pick_up(agent, blocks)
    else:
        _put_down(agent, room, blocks)


@jit
def _move(agent: Any, room: Any, blocks: Any, action: int) -> None:
    quarters = (0, 2, 3, 1)[action]  # forward, backward, left, right, in quarter turns to the right
    direction = (agent[FACING] + quarters) % 4
    x, z = agent[X] + FORWARD_X[direction], agent[Z] + FORWARD_Z[direction]
    if inside(room, x, z) and top_block(blocks, x, z) == NOTHING:
        agent[X], agent[Z] = x, z


@jit
def _pick_up(agent: Any, blocks: Any) -> None:
    slot = top_block(blocks, agent[X] + FORWARD_X[agent[FACING]], agent[Z] + FORWARD_Z[agent[FACING]])
    if slot != NOTHING and agent[HELD] == NOTHING:
        agent[HELD] = blocks[slot, ITEM]
        blocks[slot, ITEM] = NOTHING


@jit
def _put_down(agent: Any, room: Any, blocks: Any) -> None:
    x, z = agent[X] + FORWARD_X[agent[FACING]], agent[Z] + FORWARD_Z[agent[FACING]]
    below = top_block(blocks, x, z)
    y = 0 if below == NOTHING else blocks[below, BLOCK_Y] + 1
    if agent[HELD] == NOTHING or y > 1 or not inside(room, x, z):
        return
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] == NOTHING:
            blocks[slot, ITEM], blocks[slot, BLOCK_X], blocks[slot, BLOCK_Z], blocks[slot, BLOCK_Y] = (
                agent[HELD], x, z, y,
            )  # fmt: skip
            break
    agent[PLACED] = agent[HELD]
    agent[HELD] = NOTHING


@jit
def top_block(blocks: Any, x: int, z: int) -> int:
    """The slot of the topmost block on a cell, or NOTHING."""
    top = NOTHING
    for slot in range(len(blocks)):
        here = blocks[slot, ITEM] != NOTHING and blocks[slot, BLOCK_X] == x and blocks[slot, BLOCK_Z] == z
        if here and (top == NOTHING or blocks[slot, BLOCK_Y] > blocks[top, BLOCK_Y]):
            top = slot
    return top
