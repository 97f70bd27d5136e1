"""The room from above: a map for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

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
    X,
    Z,
)
from skillstack.worlds.rooms.looks import make_materials

WALL, AGENT, PATH, DARK, LIGHT = (64, 66, 70), (28, 30, 34), (255, 255, 255), (20, 20, 20), (250, 250, 250)

LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue


def draw_map(
    config: RoomsConfig, state: Any, size: int = 336, path: Sequence[tuple[float, float]] = ()
) -> npt.NDArray[np.uint8]:
    """One game's state from above, north up, at most `size` pixels high and wide enough for both rooms.

    Blocks carry their names, so that colours need not be told apart; a stack shows its lower block as a rim. `path` is
    where the agent has been, as cells.
    """
    rooms = config.rooms.astype(int)
    width, depth = rooms[:, X1].max() + 2, rooms[:, Z1].max() + 2  # with the walls around
    cell = max(size // depth, 8)
    picture = Image.new("RGB", (width * cell, depth * cell), WALL)
    pen = ImageDraw.Draw(picture)
    colours = make_materials(config.items).mean(axis=(1, 2)).astype(int)  # floor and wall of each theme, then wools
    for room in rooms:
        _draw_floor(pen, room, cell, tuple(colours[2 * room[THEME]]))
    here = (int(state["agent"][X]), int(state["agent"][Z]))
    if path:
        pen.line([_centre(x, z, cell) for x, z in (*path, here)], fill=PATH, width=max(cell // 14, 1))
    for block in sorted(state["blocks"].astype(int).tolist(), key=lambda block: block[BLOCK_Y]):
        if block[ITEM] != NOTHING:
            inset = cell // 10 + block[BLOCK_Y] * cell // 7
            left, top = (block[BLOCK_X] + 1) * cell + inset, (block[BLOCK_Z] + 1) * cell + inset
            _draw_block(pen, left, top, cell - 2 * inset, config.items[block[ITEM]], tuple(colours[4 + block[ITEM]]))
    _draw_agent(pen, state["agent"].astype(int), cell, config, colours)
    return np.asarray(picture)


def _draw_floor(pen: ImageDraw.ImageDraw, room: Any, cell: int, colour: tuple[int, ...]) -> None:
    line = tuple(int(part * 0.85) for part in colour)
    for x in range(room[X0], room[X1]):
        for z in range(room[Z0], room[Z1]):
            left, top = (x + 1) * cell, (z + 1) * cell
            pen.rectangle([left, top, left + cell - 1, top + cell - 1], fill=colour, outline=line)


def _draw_block(pen: ImageDraw.ImageDraw, left: int, top: int, edge: int, name: str, colour: tuple[int, ...]) -> None:
    pen.rectangle([left, top, left + edge - 1, top + edge - 1], fill=colour, outline=DARK, width=max(edge // 20, 1))
    if edge < 16:
        return
    ink = DARK if np.dot(colour, LUMINANCE) > 128 else LIGHT
    font = ImageFont.load_default(max(edge * 0.25, 7.0))
    pen.text((left + edge / 2, top + edge / 2), name, fill=ink, font=font, anchor="mm")


def _draw_agent(pen: ImageDraw.ImageDraw, agent: Any, cell: int, config: RoomsConfig, colours: Any) -> None:
    """A dart that points where the agent looks, with what it holds on its back."""
    x, z = _centre(agent[X], agent[Z], cell)
    fx, fz = int(FORWARD_X[agent[FACING]]), int(FORWARD_Z[agent[FACING]])
    length, half = cell * 0.42, cell * 0.30
    corners = [
        (x + fx * length, z + fz * length),
        (x - fx * half - fz * half, z - fz * half + fx * half),
        (x - fx * half * 0.5, z - fz * half * 0.5),
        (x - fx * half + fz * half, z - fz * half - fx * half),
    ]
    pen.polygon(corners, fill=AGENT, outline=LIGHT)
    if agent[HELD] != NOTHING:
        edge = cell * 0.34
        pen.rectangle(
            [x - edge / 2, z - edge / 2, x + edge / 2, z + edge / 2],
            fill=tuple(colours[4 + agent[HELD]]), outline=LIGHT,
        )  # fmt: skip


def _centre(x: float, z: float, cell: int) -> tuple[float, float]:
    return (x + 1.5) * cell, (z + 1.5) * cell
