"""The four skills' goals, and when each can be carried out: every one a small named function of a state."""

from __future__ import annotations

from typing import Any

from skillstack.jit import jit
from skillstack.worlds.rooms.layout import (
    ANYTHING,
    BLOCK_X,
    BLOCK_Z,
    FACING,
    FIND,
    FORWARD_X,
    FORWARD_Z,
    GET,
    HELD,
    ITEM,
    KEPT,
    NOTHING,
    PLACED,
    PUT,
    State,
    X,
    Z,
    inside,
)
from skillstack.worlds.rooms.physics import top_block


@jit
def found(agent: Any, blocks: Any, item: int) -> bool:
    """The agent faces, from the cell beside it, a stack whose top is the item.

    In a game of finding, the hand must be as it was at the start, empty or not.
    """
    x, z = agent[X] + FORWARD_X[agent[FACING]], agent[Z] + FORWARD_Z[agent[FACING]]
    top = top_block(blocks, x, z)
    kept = agent[KEPT] == ANYTHING or agent[KEPT] == agent[HELD]
    return bool(kept and top != NOTHING and blocks[top, ITEM] == item)


@jit
def got(agent: Any, item: int) -> bool:
    """The item is in the hand."""
    return bool(agent[HELD] == item)


@jit
def was_put(agent: Any, item: int) -> bool:
    """The last step put the item down."""
    return bool(agent[PLACED] == item)


@jit
def stacked(blocks: Any, item: int) -> bool:
    """Two of the item stand on top of each other."""
    for lower in range(len(blocks)):
        for upper in range(lower + 1, len(blocks)):
            if (
                blocks[lower, ITEM] == item
                and blocks[upper, ITEM] == item
                and blocks[lower, BLOCK_X] == blocks[upper, BLOCK_X]
                and blocks[lower, BLOCK_Z] == blocks[upper, BLOCK_Z]
            ):
                return True
    return False


@jit
def standing(room: Any, blocks: Any, item: int) -> int:
    """How many of the item stand in the agent's room."""
    count = 0
    for slot in range(len(blocks)):
        count += blocks[slot, ITEM] == item and inside(room, blocks[slot, BLOCK_X], blocks[slot, BLOCK_Z])
    return count


@jit
def is_achieved(skill: int, item: int, agent: Any, blocks: Any) -> bool:
    if skill == FIND:
        return found(agent, blocks, item)
    if skill == GET:
        return got(agent, item)
    if skill == PUT:
        return was_put(agent, item)
    return stacked(blocks, item)


@jit
def is_executable(skill: int, item: int, agent: Any, room: Any, blocks: Any) -> bool:
    if skill == FIND:
        return standing(room, blocks, item) > 0
    if skill == GET:
        return standing(room, blocks, item) > 0 and agent[HELD] == NOTHING
    if skill == PUT:
        return bool(agent[HELD] == item)
    return standing(room, blocks, item) + int(agent[HELD] == item) >= 2


def judge_achieved(state: State, games: Any, tasks: Any, answers: Any) -> None:
    """Fill answers (n, m) for tasks (n, m, 2) asked of `state[games]`."""
    _judge_achieved(state["agent"], state["blocks"], games, tasks, answers)


def judge_executable(state: State, games: Any, tasks: Any, answers: Any) -> None:
    """Fill answers (n, m) for tasks (n, m, 2) asked of `state[games]`."""
    _judge_executable(state["agent"], state["room"], state["blocks"], games, tasks, answers)


@jit
def _judge_achieved(agents: Any, blocks: Any, games: Any, tasks: Any, answers: Any) -> None:
    for i in range(len(games)):
        game = games[i]
        for j in range(tasks.shape[1]):
            answers[i, j] = is_achieved(tasks[i, j, 0], tasks[i, j, 1], agents[game], blocks[game])


@jit
def _judge_executable(agents: Any, rooms: Any, blocks: Any, games: Any, tasks: Any, answers: Any) -> None:
    for i in range(len(games)):
        game = games[i]
        for j in range(tasks.shape[1]):
            answers[i, j] = is_executable(tasks[i, j, 0], tasks[i, j, 1], agents[game], rooms[game], blocks[game])
