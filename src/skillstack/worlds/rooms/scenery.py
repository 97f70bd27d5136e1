"""Pictures made beforehand. Where every game has the same look, a frame is a copied background and a few sprites.

The agent stands in the middle of a cell and looks along an axis, so there are only so many views of an empty room, and
so many ways to see a block. The ray caster draws each of them once; what is pasted together from them is what it would
draw, pixel for pixel, at about the cost of copying a frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

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
    RoomsConfig,
    State,
    X,
    Z,
    state_dtype,
)
from skillstack.worlds.rooms.looks import TEXELS, THEMES, Looks
from skillstack.worlds.rooms.raycaster import cast_block, cast_room, sort_blocks
from skillstack.worlds.rooms.sprites import Sprites, gather_sprites, paint_sprite
from skillstack.worlds.world import Frames

# Larger sceneries are not worth their memory and the time to make them; the ray caster draws directly then.
MOST_BYTES, MOST_PICTURES = 64 * 2**20, 10_000


@dataclass(frozen=True)
class Scenery:
    """All views of the empty rooms, and all sprites of a block."""

    backgrounds: npt.NDArray[np.uint8]
    """(views, size, size, 3): by room, the agent's cell in it and its facing."""
    sprites: Sprites
    """See `_sprite_number`."""


def fits(config: RoomsConfig) -> bool:
    """Whether the pictures can be made beforehand: one look and one size for all games, and not too many views."""
    width, depth = _extent(config)
    reach = max(width, depth)
    views, sprites = 4 * len(config.rooms) * width * depth, 8 * reach * (2 * reach - 1)
    few = views + sprites <= MOST_PICTURES and views * config.image_size**2 * 3 <= MOST_BYTES
    return config.randomise is None and not config.grow and few


def _extent(config: RoomsConfig) -> tuple[int, int]:
    """Cells of a room from west to east and from north to south."""
    room = config.rooms[0].astype(int)
    return int(room[X1] - room[X0]), int(room[Z1] - room[Z0])


def make_scenery(config: RoomsConfig, looks: Looks) -> Scenery:
    """Draw every view of the empty rooms and every sprite with the ray caster."""
    rooms = config.rooms
    width, depth = _extent(config)
    poses = product(range(len(rooms)), range(width), range(depth), range(4))
    state = np.zeros(len(rooms) * width * depth * 4, dtype=state_dtype(1))
    for view, (room, x, z, facing) in zip(state, poses, strict=True):
        view["room"] = rooms[room]
        view["agent"][:3] = rooms[room, X0] + x, rooms[room, Z0] + z, facing
    size = config.image_size
    backgrounds = np.empty((len(state), size, size, 3), dtype=np.uint8)
    _draw_backgrounds(state["agent"], state["room"], looks.texels[0], looks.sky[0], looks.view[0], backgrounds)
    return Scenery(backgrounds, gather_sprites(_draw_blocks(max(width, depth), size, looks.view[0])))


@jit
def _draw_backgrounds(agents: Any, rooms: Any, texels: Any, sky: Any, view: Any, backgrounds: Any) -> None:
    for i in range(len(agents)):
        cast_room(agents[i], rooms[i], texels, sky, view, backgrounds[i])


def _draw_blocks(reach: int, size: int, view: npt.NDArray[np.float64]) -> Iterator[npt.NDArray[np.int32]]:
    """Let the ray caster draw a block whose texels are their own numbers, in the order of `_sprite_number`."""
    numbers = np.zeros((3 * (THEMES + 1), TEXELS * TEXELS, 3), dtype=np.uint8)
    face, place = np.divmod(np.arange(3 * TEXELS * TEXELS), TEXELS * TEXELS)
    numbers[3 * THEMES + face, place] = np.stack([face, place, np.full_like(place, 255)], axis=1)
    picture = np.zeros((size, size, 3), dtype=np.uint8)
    for facing, a, b, y in product(range(4), range(reach), range(1 - reach, reach), range(2)):
        fx, fz = FORWARD_X[facing], FORWARD_Z[facing]
        agent = np.array([0, 0, facing], dtype=np.int8)
        block = np.array([0, a * fx - b * fz, a * fz + b * fx, y], dtype=np.int8)
        picture[:] = 0
        cast_block(agent, block, numbers, view, picture)
        texel = picture[..., 0].astype(np.int32) * TEXELS * TEXELS + picture[..., 1]
        yield np.where(picture[..., 2] > 0, texel, -1)


@jit
def _sprite_number(facing: int, a: int, b: int, y: int, reach: int) -> int:
    """The sprite of a block that stands a cells ahead, b to the right, y up."""
    return ((facing * reach + a) * (2 * reach - 1) + b + reach - 1) * 2 + y


def paste_frames(state: State, games: Any, scenery: Scenery, looks: Looks, hand: Sprites, frames: Frames) -> None:
    """Draw what is seen in `state[games]` into frames (n, size, size, 3)."""
    _paste_frames(
        state["agent"], state["room"], state["blocks"], games,
        scenery.backgrounds.reshape(len(scenery.backgrounds), -1), looks.texels[0].reshape(-1),
        scenery.sprites.starts, scenery.sprites.pixels, hand.starts, hand.pixels, frames.reshape(len(frames), -1),
    )  # fmt: skip


@jit
def _paste_frames(
    agents: Any, rooms: Any, blocks: Any, games: Any, backgrounds: Any, texels: Any,
    starts: Any, pixels: Any, hand_starts: Any, hand_pixels: Any, frames: Any,
) -> None:  # fmt: skip
    order = np.zeros(blocks.shape[1], dtype=np.int64)
    for i in range(len(games)):
        agent, room, frame = agents[games[i]], rooms[games[i]], frames[i]
        width, depth = room[X1] - room[X0], room[Z1] - room[Z0]
        view = ((room[THEME] * width + agent[X] - room[X0]) * depth + agent[Z] - room[Z0]) * 4 + agent[FACING]
        background = backgrounds[view]
        for byte in range(len(frame)):
            frame[byte] = background[byte]
        facing, reach = agent[FACING], max(width, depth)
        fx, fz = FORWARD_X[facing], FORWARD_Z[facing]
        count = sort_blocks(agent, blocks[games[i]], order)
        for j in range(count):
            block = blocks[games[i], order[j]]
            dx, dz = block[BLOCK_X] - agent[X], block[BLOCK_Z] - agent[Z]
            number = _sprite_number(facing, dx * fx + dz * fz, dz * fx - dx * fz, block[BLOCK_Y], reach)
            paint_sprite(number, block[ITEM], texels, starts, pixels, frame)
        if agent[HELD] != NOTHING:
            paint_sprite(0, agent[HELD], texels, hand_starts, hand_pixels, frame)
