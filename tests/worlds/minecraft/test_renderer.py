"""Frames of Minecraft, held against the embedded rooms' own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from skillstack.worlds.minecraft.materials import (
    FACES,
    FLOORS,
    WALLS,
    BlockLooks,
    box_size,
    plan_rooms,
    plot_shift,
    wool_of,
)
from skillstack.worlds.minecraft.renderer import Renderer
from skillstack.worlds.minecraft.session import VIEWER
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.rooms import world as rooms_world
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST, make_state
from skillstack.worlds.rooms.looks import make_materials

pytestmark = pytest.mark.usefixtures("minecraft")

STANDARD = RoomsConfig()
CAMERAS = {
    "standard": STANDARD,
    "the big room": RoomsConfig(big=True),
    "looking down": RoomsConfig(pitch=25.0, fov=60.0),
    "a low eye and small pictures": RoomsConfig(eye=1.2, image_size=40),
}


def cells_of(config: RoomsConfig) -> list[str]:
    """The empty rooms as the bridge would read them."""
    width, height, depth = box_size(config)
    names = np.full((height, depth, width), "air", dtype=object)
    for name, x, y, z in plan_rooms(config):
        names[y, z, x] = name
    return list(names.flat)


def plain_looks(config: RoomsConfig, colours: np.ndarray) -> BlockLooks:
    """Blocks of one colour each, as floor and wall of both themes and the wools have them."""
    names = [FLOORS[0], WALLS[0], FLOORS[1], WALLS[1], *wool_of(config.items)]
    atlas = np.repeat(np.repeat(colours[None], 16, axis=0), 16, axis=1)  # (16, 16 * materials, 3)
    share = 1 / len(names)
    models = {
        name: {
            "variants": {
                "": {
                    "model": {
                        "elements": [
                            {"faces": {f: {"texture": {"u": i * share, "v": 0, "su": share, "sv": 1}} for f in FACES}}
                        ]
                    }
                }
            }
        }
        for i, name in enumerate(names)
    }
    alpha = np.full((*atlas.shape[:2], 1), 255)
    return BlockLooks(np.concatenate([atlas, alpha], axis=2).astype(np.uint8), models)


@pytest.mark.parametrize("config", CAMERAS.values(), ids=CAMERAS.keys())
def test_camera_light_hand_and_sky_are_the_embedded_rooms(config: RoomsConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """In plain colours, where textures cannot differ, both draw the same picture but for rounding at edges."""
    colours = make_materials(config.items).mean(axis=(1, 2)).round()  # (materials, 3)
    plain = np.broadcast_to(colours[:, None, None], (len(colours), 16, 16, 3)).copy()
    monkeypatch.setattr(rooms_world, "make_materials", lambda items: plain)
    embedded = RoomsWorld(replace(config, held_start=0.5), num_games=48)
    vocabulary = embedded.description.vocabulary
    embedded.reset(vocabulary.encode([vocabulary.tasks[game % 24] for game in range(48)]), range(48))
    rng = np.random.default_rng(0)
    for _ in range(30):
        embedded.step(rng.integers(8, size=48))
    looks = plain_looks(config, colours)
    renderer = Renderer(config, looks, looks.room_meshes(config, cells_of(config)), wool_of(config.items))
    drawn = renderer.draw(embedded.state, np.arange(48)).astype(int)
    differ = (np.abs(drawn - embedded.observe()) > 2).any(axis=-1)  # (games, height, width)
    assert differ.mean() < 0.004
    assert differ.mean(axis=(1, 2)).max() < 0.03  # of no single picture either


@pytest.fixture(scope="module")
def looks() -> BlockLooks:
    return BlockLooks.load(VIEWER)


class TestRealTextures:
    def test_their_mean_colours_are_those_of_the_embedded_materials(self, looks: BlockLooks) -> None:
        names = [FLOORS[0], WALLS[0], *wool_of(STANDARD.items)]
        embedded = make_materials(STANDARD.items).mean(axis=(1, 2))[[0, 1, *range(4, 10)]]
        for name, colour in zip(names, embedded, strict=True):
            vertices = np.array(looks.face(name, "north", (0, 0, 0)))
            left, top = vertices[0, 5:7].astype(int)
            texture = looks.atlas[top : top + 16, left : left + 16, :3]
            assert np.abs(texture.mean(axis=(0, 1)) - colour).max() < 16, name

    @pytest.mark.parametrize("facing", [NORTH, EAST, SOUTH, WEST])
    def test_a_block_in_front_fills_the_lower_middle_with_its_colour(self, looks: BlockLooks, facing: int) -> None:
        ahead = {NORTH: (3, 2), EAST: (4, 3), SOUTH: (3, 4), WEST: (2, 3)}[facing]
        rooms = looks.room_meshes(STANDARD, cells_of(STANDARD))
        renderer = Renderer(STANDARD, looks, rooms, wool_of(STANDARD.items))
        state = make_state(STANDARD, (3, 3, facing), {ahead: "red"})
        (picture,) = renderer.draw(state, np.array([0])).astype(int)
        red, green, blue = picture[70, 42]
        assert red > 2 * green
        assert red > 2 * blue
        assert picture[10, 42, 0] < 1.5 * picture[10, 42, 1]  # above it is no red


def test_every_room_is_planned_with_a_floor_four_walls_of_its_own_and_air_in_its_cells() -> None:
    for config in (STANDARD, RoomsConfig(big=True), RoomsConfig(3, 4, max_blocks=4)):
        width, height, depth = box_size(config)
        planned = {(x, y, z): name for name, x, y, z in plan_rooms(config)}
        assert len(planned) == len(plan_rooms(config))
        inside = {}
        for number, (x0, z0, x1, z1, theme) in enumerate(config.rooms.astype(int).tolist()):
            inside |= {(x + plot_shift(number), z + 1): theme for x in range(x0, x1) for z in range(z0, z1)}
        for x, z in product(range(width), range(depth)):
            column = [planned.get((x, y, z)) for y in range(height)]
            if (x, z) in inside:
                assert column == [FLOORS[inside[x, z]], None, None, None]
            else:
                neighbours = {inside.get((x + dx, z + dz)) for dx, dz in product((-1, 0, 1), repeat=2)} - {None}
                assert len(neighbours) == 1
                assert column == [WALLS[neighbours.pop()]] * height
