"""A state of the rooms in plain words and numbers, and back: for plans, and for laying out a game by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import Instruction
from skillstack.worlds.rooms.layout import (
    ANYTHING,
    FACING,
    HELD,
    ITEM,
    KEPT,
    NOTHING,
    PLACED,
    RoomsConfig,
    State,
    X,
    Z,
    make_state,
)

EMPTY = ""
"""Of "kept": the hand must stay empty, where null says that anything may be in it."""

FACINGS = ("north", "east", "south", "west")
"""In the order of their numbers."""


def state_to_json(config: RoomsConfig, state: State) -> dict[str, Any]:
    """One game's state, a record or an array of one."""
    state = np.asarray(state).reshape(())
    agent = state["agent"].tolist()
    rooms = config.rooms.tolist()
    return {
        "room": rooms.index(state["room"].tolist()),
        "look": int(state["look"]),
        "agent": {"x": agent[X], "z": agent[Z], "facing": FACINGS[agent[FACING]]},
        "held": _word(config, agent[HELD]),
        "placed": _word(config, agent[PLACED]),
        "kept": EMPTY if agent[KEPT] == NOTHING else _word(config, agent[KEPT]),
        "blocks": [
            {"item": config.items[item], "x": x, "z": z, "y": y}
            for item, x, z, y in state["blocks"].tolist()
            if item != NOTHING
        ],
    }


def state_from_json(config: RoomsConfig, data: Any) -> State:
    """The state back, (1,), with all that is wrong with it said in a sentence: it may come from anyone."""
    try:
        return _read(config, data)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise SkillstackError(f"This is not a state of the rooms: {error!r}.") from error


def begun(data: Mapping[str, Any], task: Instruction) -> dict[str, Any]:
    """The same state as a game of this task begins in it: nothing was just put down.

    To find something means to keep the hand as it is, as in games that start so.
    """
    return {**data, "placed": None, "kept": (data["held"] or EMPTY) if task.skill == "find" else None}


def _read(config: RoomsConfig, data: Any) -> State:
    room = _whole(data["room"], len(config.rooms) - 1)
    x0, z0, x1, z1, _ = config.rooms[room].tolist()
    agent = data["agent"]
    if agent["facing"] not in FACINGS:
        raise unknown("facing", str(agent["facing"]), FACINGS)
    blocks = [(_item(config, block["item"]), *(_whole(block[key], 127) for key in "xzy")) for block in data["blocks"]]
    here = (_whole(agent["x"], 127), _whole(agent["z"], 127))
    _check_places(config, here, blocks, (x0, z0, x1, z1))
    state = make_state(config, (*here, FACINGS.index(agent["facing"])), {}, room=room)
    state["look"] = _whole(data["look"], config.num_looks - 1)
    for column, name in ((HELD, "held"), (PLACED, "placed")):
        state["agent"][0, column] = NOTHING if data[name] is None else _item(config, data[name])
    state["agent"][0, KEPT] = _kept(config, data["kept"])
    for slot, block in enumerate(blocks):
        state["blocks"][0, slot] = block
    state["blocks"][0, len(blocks) :, ITEM] = NOTHING
    return state


def _check_places(
    config: RoomsConfig, agent: tuple[int, int], blocks: list[tuple[int, ...]], room: tuple[int, int, int, int]
) -> None:
    if len(blocks) > config.slots:
        raise SkillstackError(f"There is place for {config.slots} blocks in a game, not for {len(blocks)}.")
    x0, z0, x1, z1 = room
    for x, z in (agent, *((x, z) for _, x, z, _ in blocks)):
        if not (x0 <= x < x1 and z0 <= z < z1):
            raise SkillstackError("The agent and the blocks must all be within the room of the game.")
    heights = Counter((x, z) for _, x, z, _ in blocks)
    if agent in heights:
        raise SkillstackError("The agent cannot stand where a block is.")
    if len({block[1:] for block in blocks}) < len(blocks) or max(heights.values(), default=0) > 2:
        raise SkillstackError("Two blocks cannot be in one place, and a stack is at most two blocks high.")
    if any(y >= heights[x, z] for _, x, z, y in blocks):
        raise SkillstackError("A block lies on the floor or on another block.")


def _word(config: RoomsConfig, number: int) -> str | None:
    return config.items[number] if number >= 0 else None


def _item(config: RoomsConfig, word: Any) -> int:
    if word not in config.items:
        raise unknown("item", str(word), config.items)
    return config.items.index(word)


def _kept(config: RoomsConfig, word: Any) -> int:
    if word is None:
        return ANYTHING
    return NOTHING if word == EMPTY else _item(config, word)


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not a whole number from 0 to {most}")
    return value
