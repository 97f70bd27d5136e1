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
from skillstack.worlds.rooms.layout import THEME, X0, X1, Z1, RoomsConfig
from skillstack.worlds.rooms.looks import WOOL
from skillstack.worlds.rooms.raycaster import WALL_HEIGHT

FLOORS = ("oak_planks", "spruce_planks")  # by theme, as in `looks.make_materials`
WALLS = ("stone_bricks", "cut_sandstone")
OTHER_NAMES = {"silver": "light_gray", "turquoise": "light_blue"}  # wool that was renamed since
TEXTURES = "1.16.4"  # of the versions that prismarine-viewer has, the one for Minecraft 1.16.5

# The faces of a cube: the normal, the light on it as in Minecraft, and four corners as x, y, z and u, v, which make the
# two triangles below. prismarine-viewer's models are laid out so.
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
"""A block's name and its place x, y, z on a plot: the floor is at y = 0, cell (0, 0) at x = z = 1."""
Vertices = npt.NDArray[np.float32]
"""(n, 8): x, y, z of a room's cells, u and v in pixels of the atlas, the texture's left upper pixel there, light."""


def wool_of(items: tuple[str, ...]) -> tuple[str, ...]:
    """The blocks' names of the items, or a clear error."""
    for item in items:
        if item not in WOOL:
            raise SkillstackError(f"There is no {item} wool in Minecraft, only: {', '.join(WOOL)}.")
    return tuple(f"{OTHER_NAMES.get(item, item)}_wool" for item in items)


def plot_shift(room: int) -> int:
    """What to add to the x of a cell for its place on the plot: each room has four walls of its own there."""
    return 1 + room


def box_size(config: RoomsConfig) -> tuple[int, int, int]:
    """Width, height and depth of the box around the rooms, with floor and walls."""
    last = config.rooms[-1].astype(int)
    return int(last[X1]) + plot_shift(len(config.rooms) - 1) + 1, int(WALL_HEIGHT) + 1, int(last[Z1]) + 2


def plan_rooms(config: RoomsConfig) -> list[Block]:
    """Every block of the empty rooms."""
    _, height, depth = box_size(config)
    blocks: list[Block] = []
    for number, room in enumerate(config.rooms.astype(int).tolist()):
        west, east = (room[side] + plot_shift(number) for side in (X0, X1))
        for x in range(west - 1, east + 1):
            for z in range(depth):
                if west <= x < east and 0 < z < depth - 1:
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

    def room_meshes(self, config: RoomsConfig, cells: list[str]) -> list[Vertices]:
        """For each room, those faces of its blocks that border on the air in it; nothing else is ever seen."""
        names = np.array(cells).reshape(box_size(config)[1], box_size(config)[2], box_size(config)[0])
        meshes = []
        for number, room in enumerate(config.rooms.astype(int).tolist()):
            shift = plot_shift(number)
            part = names[:, :, room[X0] + shift - 1 : room[X1] + shift + 1]
            meshes.append(self._mesh(part, room[X0]))
        return meshes

    def _mesh(self, names: npt.NDArray[Any], first: int) -> Vertices:
        """`names` by y, z, x; floor and northern wall are at -1, and the western wall is one before `first`."""
        height, depth, width = names.shape
        found = []
        for y, z, x in np.argwhere(names != "air").tolist():
            for face, ((dx, dy, dz), _, _) in FACES.items():
                inside = 0 <= x + dx < width and 0 <= y + dy < height and 0 <= z + dz < depth
                if inside and names[y + dy, z + dz, x + dx] == "air":
                    found += self.face(str(names[y, z, x]), face, (x - 1 + first, y - 1, z - 1))
        return np.array(found, dtype=np.float32)

    def _model(self, block: str) -> Any:
        variants = self.models[block]["variants"]
        variant = next(iter(variants.values()))
        return (variant[0] if isinstance(variant, list) else variant)["model"]
