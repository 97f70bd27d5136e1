"""What the rooms are built of in Minecraft, and how those blocks look: textures and models of prismarine-viewer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from skillstack.errors import SkillstackError
from skillstack.worlds.rooms.layout import THEME, X0, X1, Z0, Z1, RoomsConfig
from skillstack.worlds.rooms.looks import WOOL
from skillstack.worlds.rooms.raycaster import WALL_HEIGHT

FLOORS = ("oak_planks", "spruce_planks")  # by theme, as in `looks.make_materials`
WALLS = ("stone_bricks", "cut_sandstone")
OTHER_NAMES = {"silver": "light_gray", "turquoise": "light_blue"}  # wool that was renamed since
TEXTURES = "1.16.4"  # of the versions that prismarine-viewer has, the one for Minecraft 1.16.5

# The faces of a cube: its normal, its light as in Minecraft, and its corners as x, y, z and u, v, in two triangles' order
# 0 1 2, 2 1 3. prismarine-viewer's models are laid out so.
FACES: dict[str, tuple[tuple[int, int, int], float, tuple[tuple[int, int, int, int, int], ...]]] = {
    "up": ((0, 1, 0), 1.0, ((0, 1, 1, 0, 1), (1, 1, 1, 1, 1), (0, 1, 0, 0, 0), (1, 1, 0, 1, 0))),
    "down": ((0, -1, 0), 0.5, ((1, 0, 1, 0, 1), (0, 0, 1, 1, 1), (1, 0, 0, 0, 0), (0, 0, 0, 1, 0))),
    "east": ((1, 0, 0), 0.6, ((1, 1, 1, 0, 0), (1, 0, 1, 0, 1), (1, 1, 0, 1, 0), (1, 0, 0, 1, 1))),
    "west": ((-1, 0, 0), 0.6, ((0, 1, 0, 0, 0), (0, 0, 0, 0, 1), (0, 1, 1, 1, 0), (0, 0, 1, 1, 1))),
    "north": ((0, 0, -1), 0.8, ((1, 0, 0, 0, 1), (0, 0, 0, 1, 1), (1, 1, 0, 0, 0), (0, 1, 0, 1, 0))),
    "south": ((0, 0, 1), 0.8, ((0, 0, 1, 0, 1), (1, 0, 1, 1, 1), (0, 1, 1, 0, 0), (1, 1, 1, 1, 0))),
}
TRIANGLES = (0, 1, 2, 2, 1, 3)

Block = tuple[str, int, int, int]
"""A block's name and its place x, y, z in the box around the rooms: the floor is at y = 0, cell (0, 0) at x = z = 1."""
Vertices = npt.NDArray[np.float32]
"""(n, 8): x, y, z of a room's cells, u and v in pixels of the atlas, the texture's left upper pixel there, light."""


def wool_of(items: tuple[str, ...]) -> tuple[str, ...]:
    """The blocks' names of the items, or a clear error."""
    for item in items:
        if item not in WOOL:
            raise SkillstackError(f'There is no {item} wool in Minecraft, only: {", ".join(WOOL)}.')
    return tuple(f"{OTHER_NAMES.get(item, item)}_wool" for item in items)


def box_size(config: RoomsConfig) -> tuple[int, int, int]:
    """Width, height and depth of the box around the rooms, with floor and walls."""
    rooms = config.rooms.astype(int)
    return int(rooms[:, X1].max()) + 2, int(WALL_HEIGHT) + 1, int(rooms[:, Z1].max()) + 2


def plan_rooms(config: RoomsConfig) -> list[Block]:
    """Every block of the empty rooms; the wall between two rooms is the western one's."""
    width, height, depth = box_size(config)
    rooms = config.rooms.astype(int).tolist()
    blocks: list[Block] = []
    for x in range(width):
        for z in range(depth):
            room = next(room for room in rooms if x <= room[X1] + 1)
            if room[X0] < x <= room[X1] and room[Z0] < z <= room[Z1]:
                blocks.append((FLOORS[room[THEME]], x, 0, z))
            else:
                blocks += [(WALLS[room[THEME]], x, y, z) for y in range(height)]
    return blocks


@dataclass(frozen=True)
class BlockLooks:
    """The textures of all blocks in one picture, and where in it each face of a block is."""

    atlas: npt.NDArray[np.uint8]
    """(height, width, 4)."""
    models: dict[str, Any]

    @staticmethod
    def load(viewer: Path) -> BlockLooks:
        """From the folder of the installed prismarine-viewer."""
        with Image.open(viewer / "public" / "textures" / f"{TEXTURES}.png") as picture:
            atlas = np.asarray(picture.convert("RGBA"))
        states = viewer / "public" / "blocksStates" / f"{TEXTURES}.json"
        return BlockLooks(atlas, json.loads(states.read_text(encoding="utf-8")))

    def face(self, block: str, face: str, place: tuple[int, int, int]) -> list[list[float]]:
        """The six vertices of one face of a block."""
        _, light, corners = FACES[face]
        element = self._model(block)["elements"][0]
        texture = element["faces"][face]["texture"]
        high, wide = self.atlas.shape[:2]
        u, v, su, sv = (texture["u"] * wide, texture["v"] * high, texture["su"] * wide, texture["sv"] * high)
        left, top = min(u, u + su), min(v, v + sv)
        vertices = [
            [place[0] + x, place[1] + y, place[2] + z, u + a * su, v + b * sv, left, top, light]
            for x, y, z, a, b in corners
        ]
        return [vertices[number] for number in TRIANGLES]

    def cube(self, block: str) -> Vertices:
        """All faces of a block at 0, 0, 0."""
        return np.array([vertex for face in FACES for vertex in self.face(block, face, (0, 0, 0))], dtype=np.float32)

    def mesh(self, cells: list[str], size: tuple[int, int, int]) -> Vertices:
        """The faces of a box of blocks that border on air; what is outside of the box cannot be seen."""
        width, height, depth = size
        names = np.array(cells).reshape(height, depth, width)
        found = []
        for y, z, x in np.argwhere(names != "air").tolist():
            for face, ((dx, dy, dz), _, _) in FACES.items():
                inside = 0 <= x + dx < width and 0 <= y + dy < height and 0 <= z + dz < depth
                if inside and names[y + dy, z + dz, x + dx] == "air":
                    found += self.face(names[y, z, x], face, (x - 1, y - 1, z - 1))
        return np.array(found, dtype=np.float32)

    def _model(self, block: str) -> Any:
        variants = self.models[block]["variants"]
        variant = next(iter(variants.values()))
        return (variant[0] if isinstance(variant, list) else variant)["model"]
