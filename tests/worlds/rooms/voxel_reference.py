"""A slow picture of a state, made in another way than the ray caster's, to hold the ray caster to.

The world is a grid of unit voxels. From first principles, a pixel's ray is forward + u * right - v * up, and it marches
from voxel to voxel (Amanatides and Woo 1987) until it is in a solid one. The held block is found by walking along the
rays in small steps.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.looks import Looks

EMPTY, FLOOR, WALL, BLOCKS = 0, 1, 2, 3  # voxels; BLOCKS + item
X_AXIS, Y_AXIS, Z_AXIS = range(3)
HEADING = {0: (0, 0, -1), 1: (1, 0, 0), 2: (0, 0, 1), 3: (-1, 0, 0)}  # north, east, south, west


def reference_frame(config: RoomsConfig, looks: Looks, game: Any) -> np.ndarray:
    """What is seen in one game's state, (size, size, 3)."""
    look = int(game["look"])
    texels = looks.texels[look].reshape(-1, 16, 16, 3)
    tangent, height, cosine, sine = looks.view[look]
    x, z, facing, held, *_ = game["agent"].tolist()
    heading = np.array(HEADING[facing], dtype=float)
    rays = _rays(config.image_size, tangent, np.arctan2(sine, cosine), heading)  # (pixels, 3)
    eye = np.array([x + 0.5, height, z + 0.5])
    voxel, axis, point = _march(_voxels(config, game), eye, rays)
    frame = _sky(looks.sky[look], rays, heading)
    theme = int(game["room"][4])
    faces = {X_AXIS: 1, Y_AXIS: 0, Z_AXIS: 2}  # place among a material's three textures
    for material in np.unique(voxel[voxel != EMPTY]):
        for way, face in faces.items():
            hit = (voxel == material) & (axis == way)
            first = 3 * theme if material in (FLOOR, WALL) else 3 * (2 + material - BLOCKS)
            frame[hit] = texels[first + face][_texture_place(point[hit], way)]
    frame = frame.reshape(config.image_size, config.image_size, 3)
    if held >= 0:
        shown, face, row, column = held_block(config.image_size)
        frame[shown] = texels[3 * (2 + held) + face, row, column][shown]
    return frame


def _rays(size: int, tangent: float, pitch: float, heading: np.ndarray) -> np.ndarray:
    """One ray a pixel, from a camera that faces `heading`, turned down by the pitch."""
    upwards = np.array([0.0, 1.0, 0.0])
    forward = np.cos(pitch) * heading - np.sin(pitch) * upwards
    right = np.cross(heading, upwards)
    up = np.cross(right, forward)
    place = ((np.arange(size) + 0.5) / size * 2.0 - 1.0) * tangent
    v, u = np.meshgrid(place, place, indexing="ij")
    return (forward + u[..., None] * right - v[..., None] * up).reshape(-1, 3)


def _voxels(config: RoomsConfig, game: Any) -> np.ndarray:
    """The whole world, walls and floor included: [x + 1, y + 1, z + 1] is the voxel whose least corner is x, y, z."""
    rooms = config.rooms.astype(int)
    width, depth = rooms[:, 2].max() + 2, rooms[:, 3].max() + 2
    voxels = np.full((width, 5, depth), WALL)  # from under the floor to above the walls, which are 3 high
    voxels[:, 0] = FLOOR
    voxels[:, 4] = EMPTY
    for x0, z0, x1, z1, _ in rooms:
        voxels[x0 + 1 : x1 + 1, 1:4, z0 + 1 : z1 + 1] = EMPTY
    for item, x, z, y in game["blocks"].tolist():
        if item >= 0:
            voxels[x + 1, y + 1, z + 1] = BLOCKS + item
    return voxels


def _march(voxels: np.ndarray, eye: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first solid voxel on each ray (EMPTY where it leaves the grid), the axis of the face, the point of entry."""
    count = len(rays)
    found, face, point = np.zeros(count, int), np.zeros(count, int), np.zeros((count, 3))
    cell = np.tile(np.floor(eye).astype(int), (count, 1))
    way = np.where(rays >= 0, 1, -1)
    with np.errstate(divide="ignore"):
        apart = np.abs(1.0 / rays)
        crossing = np.where(rays >= 0, cell + 1 - eye, eye - cell) * apart
    marching = np.arange(count)
    while len(marching):
        axis = crossing[marching].argmin(axis=1)
        t = crossing[marching, axis]
        cell[marching, axis] += way[marching, axis]
        crossing[marching, axis] += apart[marching, axis]
        inside = ((cell[marching] >= -1) & (cell[marching] + 1 < voxels.shape)).all(axis=1)
        marching, axis, t = marching[inside], axis[inside], t[inside]
        here = voxels[tuple(cell[marching].T + 1)]
        hit = here != EMPTY
        at = marching[hit]
        found[at], face[at], point[at] = here[hit], axis[hit], eye + t[hit, None] * rays[at]
        marching = marching[~hit]
    return found, face, point


def _texture_place(point: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column in a texture. It lies north up on the floor and on tops, and upright on walls and sides."""
    x, y, z = np.floor((point - np.floor(point)) * 16).astype(int).clip(0, 15).T
    if axis == Y_AXIS:
        return z, x
    return 15 - y, (z if axis == X_AXIS else x)


def _sky(colours: np.ndarray, rays: np.ndarray, heading: np.ndarray) -> np.ndarray:
    """From the horizon's colour to the zenith's at a slope of 1 and more."""
    slope = np.clip(rays[:, 1] / (rays @ heading), 0, 1)[:, None]
    return (colours[0] + slope * (colours[1] - colours[0])).astype(np.uint8)


@lru_cache
def held_block(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Where the held block shows, and face, row and column of its texture there; each (size, size).

    A cube with an edge of 0.36 whose middle is 1.1 ahead, 0.52 to the right and 0.52 down, turned by 30 degrees, in a
    view of 70 degrees.
    """
    place = ((np.arange(size) + 0.5) / size * 2.0 - 1.0) * np.tan(np.radians(35))
    v, u = np.meshgrid(place, place, indexing="ij")
    half, cosine, sine = 0.18, np.sqrt(0.75), 0.5
    first_hit = np.full((size, size), np.inf)
    ray = np.stack([cosine * u + sine, -v, cosine - sine * u])  # in the cube's own axes: across, up, depth
    middle = np.array([cosine * 0.52 + sine * 1.1, -0.52, cosine * 1.1 - sine * 0.52])[:, None, None]
    step = 0.002
    for t in np.arange(0.6, 1.6, step):
        inside = (np.abs(t * ray - middle) < half).all(axis=0)
        first_hit[inside & np.isinf(first_hit)] = t
    shown = np.isfinite(first_hit)
    inner = np.where(shown, first_hit, 1.0)
    outer = inner - step
    for _ in range(40):  # the border lies between the last point outside and the first inside
        between = (inner + outer) / 2
        inside = (np.abs(between * ray - middle) < half).all(axis=0)
        inner, outer = np.where(inside, between, inner), np.where(inside, outer, between)
    point = inner * ray - middle
    axis = np.abs(point).argmax(axis=0)  # the face is where the point is farthest out
    across, up, depth = np.floor((point / (2 * half) + 0.5) * 16).astype(int).clip(0, 15)
    face = np.choose(axis, [1, 0, 2])
    row = np.where(axis == Y_AXIS, depth, 15 - up)
    column = np.where(axis == X_AXIS, depth, across)
    return shown, face, row, column
