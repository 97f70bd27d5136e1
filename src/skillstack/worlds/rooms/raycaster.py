"""The egocentric view, cast in software: exact perspective for any pitch, a row of pixels at a time.

All faces are axis-aligned and the agent looks along an axis. In one row of pixels the forward and vertical parts of the
rays are the same and only the sideways part differs, so the floor, the front wall and a block's front or top are met at
the same distance along the whole row: a row is a few spans, each with texture coordinates that are simple in the
column. The room is an empty box, open above, so the background is at most three spans a row; blocks are painted over it
from far to near.

Camera coordinates: a ahead, b to the right, y upwards, from the eye. A ray is t * (ahead, side, up).
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    THEME,
    X0,
    X1,
    Z0,
    Z1,
    State,
    X,
    Z,
)
from skillstack.worlds.rooms.looks import FACE_X, FACE_Z, FLOOR, TEXELS, THEMES, TOP, WALL_X, WALL_Z, Looks
from skillstack.worlds.rooms.sprites import Sprites, paint_sprite
from skillstack.worlds.world import Frames

WALL_HEIGHT = 3.0
_FAR = 1e9
_POSITIVE = 1024.0  # added to coordinates before truncation, so that it rounds down below zero too


def cast_frames(state: State, games: Any, looks: Looks, look_of: Any, hand: Sprites, frames: Frames) -> None:
    """Draw what is seen in `state[games]` into frames (n, size, size, 3), with look number `look_of[i]` for each."""
    _cast_frames(
        state["agent"], state["room"], state["blocks"], games,
        looks.texels, looks.texels.reshape(len(looks.texels), -1), looks.sky, looks.view, look_of,
        hand.starts, hand.pixels, frames, frames.reshape(len(frames), -1),
    )  # fmt: skip


@jit
def _cast_frames(
    agents: Any, rooms: Any, blocks: Any, games: Any,
    texels: Any, flat_texels: Any, skies: Any, views: Any, look_of: Any,
    hand_starts: Any, hand_pixels: Any, frames: Any, flat_frames: Any,
) -> None:  # fmt: skip
    order = np.zeros(blocks.shape[1], dtype=np.int64)
    for i in range(len(games)):
        game, look = games[i], look_of[i]
        cast_room(agents[game], rooms[game], texels[look], skies[look], views[look], frames[i])
        count = sort_blocks(agents[game], blocks[game], order)
        for j in range(count):
            cast_block(agents[game], blocks[game, order[j]], texels[look], views[look], frames[i])
        if agents[game, HELD] != NOTHING:
            paint_sprite(0, agents[game, HELD], flat_texels[look], hand_starts, hand_pixels, flat_frames[i])


@jit
def cast_room(agent: Any, room: Any, texels: Any, sky: Any, view: Any, frame: Any) -> None:
    """Sky, walls and floor of the agent's room."""
    size = frame.shape[0]
    tangent, eye, cosine, sine = view[0], view[1], view[2], view[3]
    fx, fz = FORWARD_X[agent[FACING]], FORWARD_Z[agent[FACING]]
    x, z = agent[X] + 0.5, agent[Z] + 0.5
    west, east, north, south = x - room[X0], room[X1] - x, z - room[Z0], room[Z1] - z
    if fx == 0:  # looking along z
        front = north if fz < 0 else south
        left, right = (west, east) if fz < 0 else (east, west)
    else:
        front = east if fx > 0 else west
        left, right = (north, south) if fx > 0 else (south, north)
    theme = 3 * room[THEME]
    front_face = theme + (WALL_Z if fx == 0 else WALL_X)
    side_face = theme + (WALL_X if fx == 0 else WALL_Z)
    scale = 2.0 * tangent / size  # from columns to the ray's side part
    for row in range(size):
        v = (row + 0.5) * scale - tangent
        ahead, up = cosine - v * sine, -(sine + v * cosine)
        t = front / ahead
        on_floor = up * t < -eye
        if on_floor:
            t = -eye / up
        # The columns whose rays come to the front wall or the floor before they come to a side wall.
        first = _column(-left / t, scale, tangent, size)
        last = _column(right / t, scale, tangent, size)
        line = frame[row]
        _cast_side(line, 0, first, -left, ahead, up, eye, x, z, fx, fz, scale, tangent, texels[side_face], sky)
        if on_floor:
            _cast_floor(line, first, last, t, ahead, x, z, fx, fz, scale, tangent, texels[theme + FLOOR])
        elif eye + t * up < WALL_HEIGHT:
            _cast_front(line, first, last, t, eye + t * up, x, z, fx, fz, scale, tangent, texels[front_face])
        else:
            _fill_sky(line, first, last, up / ahead, sky)
        _cast_side(line, last, size, right, ahead, up, eye, x, z, fx, fz, scale, tangent, texels[side_face], sky)


@jit
def _column(side: float, scale: float, tangent: float, size: int) -> int:
    """The first column whose ray has at least this side part."""
    place = np.ceil((side + tangent) / scale - 0.5)
    return int(min(max(place, 0.0), float(size)))


@jit
def _texel(coordinate: float) -> int:
    return int((coordinate + _POSITIVE) * TEXELS) & (TEXELS - 1)


@jit
def _copy(line: Any, column: int, texture: Any, texel: int) -> None:
    line[column, 0] = texture[texel, 0]
    line[column, 1] = texture[texel, 1]
    line[column, 2] = texture[texel, 2]


@jit
def _cast_floor(
    line: Any, first: int, last: int, t: float, ahead: float, x: float, z: float, fx: int, fz: int,
    scale: float, tangent: float, texture: Any,
) -> None:  # fmt: skip
    for column in range(first, last):
        b = t * ((column + 0.5) * scale - tangent)
        u, v = x + fx * t * ahead - fz * b, z + fz * t * ahead + fx * b
        _copy(line, column, texture, _texel(v) * TEXELS + _texel(u))


@jit
def _cast_front(
    line: Any, first: int, last: int, t: float, height: float, x: float, z: float, fx: int, fz: int,
    scale: float, tangent: float, texture: Any,
) -> None:  # fmt: skip
    row = (TEXELS - 1 - _texel(height)) * TEXELS
    for column in range(first, last):
        b = t * ((column + 0.5) * scale - tangent)
        along = x - fz * b if fx == 0 else z + fx * b
        _copy(line, column, texture, row + _texel(along))


@jit
def _cast_side(
    line: Any, first: int, last: int, side: float, ahead: float, up: float, eye: float, x: float, z: float,
    fx: int, fz: int, scale: float, tangent: float, texture: Any, sky: Any,
) -> None:  # fmt: skip
    for column in range(first, last):
        t = side / ((column + 0.5) * scale - tangent)
        height = eye + t * up
        if height < WALL_HEIGHT:
            along = z + fz * t * ahead if fx == 0 else x + fx * t * ahead
            _copy(line, column, texture, (TEXELS - 1 - _texel(height)) * TEXELS + _texel(along))
        else:
            _fill_sky(line, column, column + 1, up / ahead, sky)


@jit
def _fill_sky(line: Any, first: int, last: int, slope: float, sky: Any) -> None:
    """The sky gets deeper with the slope of the view."""
    depth = min(max(slope, 0.0), 1.0)
    for channel in range(3):
        value = np.uint8(sky[0, channel] + depth * (sky[1, channel] - sky[0, channel]))
        for column in range(first, last):
            line[column, channel] = value


@jit
def sort_blocks(agent: Any, blocks: Any, order: Any) -> int:
    """Slots of the blocks that may be seen, from far to near and upwards; returns how many.

    A ray moves away from the agent along both axes, so a block can only hide blocks of a larger city-block distance.
    """
    fx, fz = FORWARD_X[agent[FACING]], FORWARD_Z[agent[FACING]]
    count = 0
    for slot in range(len(blocks)):
        dx, dz = blocks[slot, BLOCK_X] - agent[X], blocks[slot, BLOCK_Z] - agent[Z]
        if blocks[slot, ITEM] == NOTHING or dx * fx + dz * fz < 0:
            continue
        key = 2 * (abs(dx) + abs(dz)) - blocks[slot, BLOCK_Y]
        place = count
        while place > 0:
            other = order[place - 1]
            distance = abs(blocks[other, BLOCK_X] - agent[X]) + abs(blocks[other, BLOCK_Z] - agent[Z])
            if 2 * distance - blocks[other, BLOCK_Y] >= key:
                break
            order[place] = other
            place -= 1
        order[place] = slot
        count += 1
    return count


@jit
def cast_block(agent: Any, block: Any, texels: Any, view: Any, frame: Any) -> None:
    """Paint one block over what is there."""
    size = frame.shape[0]
    tangent, eye, cosine, sine = view[0], view[1], view[2], view[3]
    fx, fz = FORWARD_X[agent[FACING]], FORWARD_Z[agent[FACING]]
    x, z = agent[X] + 0.5, agent[Z] + 0.5
    dx, dz = block[BLOCK_X] - agent[X], block[BLOCK_Z] - agent[Z]
    a, b = dx * fx + dz * fz, dz * fx - dx * fz
    a0, a1, b0, b1 = a - 0.5, a + 0.5, b - 0.5, b + 0.5
    y0, y1 = block[BLOCK_Y] - eye, block[BLOCK_Y] + 1.0 - eye
    face = 3 * (THEMES + block[ITEM])
    front_face = face + (FACE_Z if fx == 0 else FACE_X)
    side_face = face + (FACE_X if fx == 0 else FACE_Z)
    scale = 2.0 * tangent / size
    for row in range(size):
        v = (row + 0.5) * scale - tangent
        ahead, up = cosine - v * sine, -(sine + v * cosine)
        # Where this row's rays are between the block's front and back, and between its bottom and top.
        enter_front, leave = a0 / ahead, a1 / ahead
        enter_top = -_FAR
        if up < 0.0:
            enter_top, leave = y1 / up, min(leave, y0 / up)
        elif y1 < 0.0:
            continue  # level and rising rays pass over a block on the floor
        elif up > 0.0:
            leave = min(leave, y1 / up)
        enter = max(enter_front, enter_top, 1e-6)
        if enter >= leave:
            continue
        first = _column(b0 / (enter if b0 < 0.0 else leave), scale, tangent, size)
        last = _column(b1 / (leave if b1 < 0.0 else enter), scale, tangent, size)
        line = frame[row]
        for column in range(first, last):
            side = (column + 0.5) * scale - tangent
            t = enter
            on_side = False
            if b0 > 0.0 or b1 < 0.0:
                t_side = (b0 if b0 > 0.0 else b1) / side
                on_side = t_side > enter
                t = max(t_side, enter)
            u = x + t * (fx * ahead - fz * side)
            w = z + t * (fz * ahead + fx * side)
            if on_side:
                texel = (TEXELS - 1 - _texel(eye + t * up)) * TEXELS + _texel(w if fx == 0 else u)
                _copy(line, column, texels[side_face], texel)
            elif enter_front >= enter_top:
                texel = (TEXELS - 1 - _texel(eye + t * up)) * TEXELS + _texel(u if fx == 0 else w)
                _copy(line, column, texels[front_face], texel)
            else:
                _copy(line, column, texels[face + TOP], _texel(w) * TEXELS + _texel(u))
