"""Sprites: the pixels that a block covers and the texels they show, worked out once and painted often."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.jit import jit
from skillstack.worlds.rooms.looks import FACE_X, FACE_Z, TEXELS, THEMES, TOP


@dataclass(frozen=True)
class Sprites:
    """Many sprites, one after the other."""

    starts: npt.NDArray[np.int64]
    """(sprites + 1,): where each begins in `pixels`."""
    pixels: npt.NDArray[np.int32]
    """(pixels, 2): where in the frame's bytes a pixel is, and where in an item's texels, as bytes too, its colour."""


def gather_sprites(pictures: Iterable[npt.NDArray[np.int32]]) -> Sprites:
    """Sprites of pictures (size, size) whose pixels are texel numbers, face * 256 + place, or -1 for nothing."""
    sprites = []
    for picture in pictures:
        place = np.flatnonzero(picture >= 0)
        sprites.append(3 * np.stack([place, picture.flat[place]], axis=1).astype(np.int32))
    return Sprites(np.cumsum([0, *map(len, sprites)]), np.concatenate(sprites))


@jit
def paint_sprite(number: int, item: int, texels: Any, starts: Any, pixels: Any, frame: Any) -> None:
    """Paint one sprite in the wool of an item; texels and frame are given as flat bytes."""
    wool = 3 * (THEMES + item) * TEXELS * TEXELS * 3
    for i in range(starts[number], starts[number + 1]):
        place, texel = pixels[i, 0], wool + pixels[i, 1]
        frame[place] = texels[texel]
        frame[place + 1] = texels[texel + 1]
        frame[place + 2] = texels[texel + 2]


def make_hand(size: int) -> Sprites:
    """The held block in the lower right corner: a cube turned by 30 degrees, drawn with a view of its own.

    As in Minecraft the held block looks the same whatever the camera does.
    """
    tangent = np.tan(np.radians(35.0))
    v, u = np.meshgrid(*[(np.arange(size) + 0.5) * 2 * tangent / size - tangent] * 2, indexing="ij")
    centre, edge, turn = np.array([0.52, -0.52, 1.10]), 0.36, np.radians(30.0)  # right, up, ahead
    axes = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])  # the cube's own
    rays = np.stack([u, -v, np.ones_like(u)], axis=-1) @ axes.T  # (size, size, 3), in the cube's coordinates
    rays[rays == 0] = 1e-12  # a ray along a face comes to it far away, but does come
    origin = -axes @ centre
    near = (-np.sign(rays) * edge / 2 - origin) / rays  # where each ray enters the three slabs
    far = (np.sign(rays) * edge / 2 - origin) / rays
    enter, axis = near.max(axis=-1), near.argmax(axis=-1)
    point = (origin + enter[..., None] * rays) / edge + 0.5
    place = np.clip((point * TEXELS).astype(np.int64), 0, TEXELS - 1)  # texel along each axis
    across = np.where(axis == 0, place[..., 2], place[..., 0])
    down = np.where(axis == 1, place[..., 2], TEXELS - 1 - place[..., 1])
    texel = np.array([FACE_X, TOP, FACE_Z])[axis] * TEXELS**2 + down * TEXELS + across
    return gather_sprites([np.where(enter < far.min(axis=-1), texel, -1).astype(np.int32)])
