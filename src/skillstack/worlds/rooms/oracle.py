"""The shortest way to do any task in any state: the yardstick for path lengths, and a player that needs no learning.

A* over whole states (agent, hand and blocks), because the shortest way may move other blocks: picking up the block in
the way saves walking around it. The estimate of what is left ignores everything that is in the way, so it is never too
large and the result is the optimum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.jit import jit
from skillstack.worlds.rooms.goals import is_achieved
from skillstack.worlds.rooms.layout import (
    ACTIONS,
    BLOCK_X,
    BLOCK_Y,
    BLOCK_Z,
    FACING,
    FIND,
    FORWARD_X,
    FORWARD_Z,
    GET,
    HELD,
    ITEM,
    NOTHING,
    PUT,
    State,
    X,
    Z,
    inside,
)
from skillstack.worlds.rooms.physics import PICK_UP, act
from skillstack.worlds.world import IntArray

MOST_STEPS = 400  # longer ways are not looked for
FIRST_NODES, MOST_NODES = 1 << 12, 1 << 22  # states kept in a search; it is begun anew with more if they run out
NO_WAY, NO_SPACE = -1, -2
UNREACHABLE = 10_000


def shortest_paths(state: State, tasks: npt.ArrayLike) -> list[IntArray]:
    """For each game the fewest actions that achieve its task, from its state; empty if it is achieved already."""
    pairs = np.asarray(tasks, dtype=np.int64)
    return [shortest_path(game, pair) for game, pair in zip(state, pairs, strict=True)]


def shortest_path(game: Any, task: npt.ArrayLike, hands: bool = True) -> IntArray:
    """The fewest actions that achieve a task from one game's state; without `hands`, by walking and turning alone.

    Where walking alone does not lead there, hands are used all the same.
    """
    skill, item = np.asarray(task, dtype=np.int64)
    path = np.empty(MOST_STEPS, dtype=np.int64)
    nodes, actions = FIRST_NODES, len(ACTIONS) if hands else PICK_UP
    while nodes <= MOST_NODES:
        length = _search(game["agent"].copy(), game["room"], game["blocks"].copy(), skill, item, actions, nodes, path)
        if length == NO_WAY and not hands:
            return shortest_path(game, task)
        if length == NO_WAY:
            raise SkillstackError("This task cannot be achieved from this state.")
        if length != NO_SPACE:
            return path[:length].copy()
        nodes *= 8
    raise SkillstackError(f"No way was found within {MOST_NODES} states.")


@jit
def _search(agent: Any, room: Any, blocks: Any, skill: int, item: int, actions: int, nodes: int, path: Any) -> int:
    """A*: fills `path` and returns its length."""
    agents = np.empty((nodes, agent.shape[0]), dtype=np.int8)
    stacks = np.empty((nodes, blocks.shape[0], blocks.shape[1]), dtype=np.int8)
    cost = np.empty(nodes, dtype=np.int32)
    parent = np.empty(nodes, dtype=np.int32)
    taken = np.empty(nodes, dtype=np.int8)  # the action that led here
    table = np.full(2 * nodes, -1, dtype=np.int32)  # hash table of nodes
    # Open nodes by cost and estimate together: `queues[total]` begins a linked list through `entry_*`.
    queues = np.full(MOST_STEPS + 1, -1, dtype=np.int32)
    entry_node = np.empty(4 * nodes, dtype=np.int32)
    entry_next = np.empty(4 * nodes, dtype=np.int32)
    entries, count, total = 1, 1, _estimate(agent, room, blocks, skill, item)
    _copy(agent, blocks, agents[0], stacks[0])
    cost[0], parent[0] = 0, -1
    table[_hash(agent, blocks) % np.uint64(2 * nodes)] = 0
    if total > MOST_STEPS:
        return NO_WAY
    queues[total], entry_node[0], entry_next[0] = 0, 0, -1
    while True:
        while total <= MOST_STEPS and queues[total] < 0:
            total += 1
        if total > MOST_STEPS:
            return NO_WAY
        node = entry_node[queues[total]]
        queues[total] = entry_next[queues[total]]
        if cost[node] + _estimate(agents[node], room, stacks[node], skill, item) < total:
            continue  # a shorter way to it was found after it had been queued
        if is_achieved(skill, item, agents[node], stacks[node]):
            return _trace(node, parent, taken, path)
        if count + len(ACTIONS) > nodes or entries + len(ACTIONS) > 4 * nodes:
            return NO_SPACE
        for action in range(actions):
            _copy(agents[node], stacks[node], agents[count], stacks[count])
            act(agents[count], room, stacks[count], action)
            child = _look_up(agents, stacks, count, table)
            if child == count:
                count += 1
            elif cost[child] <= cost[node] + 1:
                continue
            cost[child], parent[child], taken[child] = cost[node] + 1, node, action
            left = _estimate(agents[child], room, stacks[child], skill, item)
            if left >= UNREACHABLE or cost[child] + left > MOST_STEPS:
                continue
            place = cost[child] + left
            entry_node[entries], entry_next[entries] = child, queues[place]
            queues[place] = entries
            entries += 1
            total = min(total, place)


@jit
def _copy(agent: Any, blocks: Any, new_agent: Any, new_blocks: Any) -> None:
    for i in range(len(agent)):  # loops compile several times faster than assigned slices
        new_agent[i] = agent[i]
    for slot in range(len(blocks)):
        for column in range(4):
            new_blocks[slot, column] = blocks[slot, column]


@jit
def _trace(node: int, parent: Any, taken: Any, path: Any) -> int:
    length, back = 0, node
    while parent[back] >= 0:
        length += 1
        back = parent[back]
    for i in range(length - 1, -1, -1):
        path[i] = taken[node]
        node = parent[node]
    return length


@jit
def _hash(agent: Any, blocks: Any) -> Any:
    """The same for states that differ in the order of their blocks only."""
    value = np.uint64(0)
    for i in range(len(agent)):
        value = (value * np.uint64(31) + np.uint64(agent[i] + 2)) * np.uint64(0x9E3779B97F4A7C15)
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] != NOTHING:
            value += _block_hash(blocks[slot])
    value = (value ^ (value >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return value ^ (value >> np.uint64(32))


@jit
def _block_hash(block: Any) -> Any:
    key = ((block[ITEM] * 128 + block[BLOCK_X]) * 128 + block[BLOCK_Z]) * 2 + block[BLOCK_Y] + 1
    value = np.uint64(key) * np.uint64(0x94D049BB133111EB)
    return (value ^ (value >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)


@jit
def _look_up(agents: Any, stacks: Any, new: int, table: Any) -> int:
    """The node that has the new node's state; the new node itself, put into the table, if there was none."""
    place = _hash(agents[new], stacks[new]) % np.uint64(len(table))
    while table[place] >= 0:
        if _same(agents[table[place]], stacks[table[place]], agents[new], stacks[new]):
            return int(table[place])
        place = (place + np.uint64(1)) % np.uint64(len(table))
    table[place] = new
    return new


@jit
def _same(agent: Any, blocks: Any, other_agent: Any, other_blocks: Any) -> bool:
    for i in range(len(agent)):
        if agent[i] != other_agent[i]:
            return False
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] == NOTHING:
            continue
        found = False
        for other in range(len(other_blocks)):
            same = True
            for column in range(4):
                same = same and blocks[slot, column] == other_blocks[other, column]
            found = found or same
        if not found:
            return False
    return True  # as many blocks stand on both sides, since both hands hold the same


@jit
def _estimate(agent: Any, room: Any, blocks: Any, skill: int, item: int) -> int:
    """At least so many actions are left."""
    if is_achieved(skill, item, agent, blocks):
        return 0
    holds, empty = agent[HELD] == item, agent[HELD] == NOTHING
    if skill == PUT and holds:
        return 1
    best = UNREACHABLE
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] != item:
            continue
        walk = _walk(agent, room, blocks[slot])
        if skill == FIND:
            best = min(best, walk)
        elif skill in (GET, PUT):
            best = min(best, walk + (1 if skill == GET else 2) + (0 if empty else 1))
        elif holds:
            best = min(best, walk + 1)
        else:
            best = min(best, walk + 2 + _carry(blocks, slot, item) + (0 if empty else 1))
    if skill == FIND and holds:
        best = min(best, 1)  # put it down in front
    return best


@jit
def _walk(agent: Any, room: Any, block: Any) -> int:
    """Steps and turns to stand beside a block and face it, if nothing were in the way."""
    best = UNREACHABLE
    for facing in range(4):
        x, z = block[BLOCK_X] - FORWARD_X[facing], block[BLOCK_Z] - FORWARD_Z[facing]
        if inside(room, x, z):
            turns = abs(agent[FACING] - facing)
            best = min(best, abs(agent[X] - x) + abs(agent[Z] - z) + min(turns, 4 - turns))
    return best


@jit
def _carry(blocks: Any, slot: int, item: int) -> int:
    """Steps and turns from beside one block to beside the nearest other one of the item, at the least."""
    best = UNREACHABLE
    for other in range(len(blocks)):
        if other != slot and blocks[other, ITEM] == item:
            apart = abs(blocks[slot, BLOCK_X] - blocks[other, BLOCK_X]) + abs(
                blocks[slot, BLOCK_Z] - blocks[other, BLOCK_Z]
            )
            best = min(best, max(apart - 2, 1))
    return best
