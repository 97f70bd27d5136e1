import numpy as np
import pytest
from rooms_helpers import STANDARD, scene, start

from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST
from skillstack.worlds.rooms.looks import WOOL, make_materials
from skillstack.worlds.rooms.topdown import AGENT, PATH, WALL, draw_map

CELL = 42  # pixels of a cell at the standard size: 336 / (6 + 2)


def picture(*arguments: object, path: tuple[tuple[int, int], ...] = (), **keywords: object) -> np.ndarray:
    world = scene(*arguments, **keywords)  # type: ignore[arg-type]
    return draw_map(world.config, world.state[0], path=path)


def pixel(image: np.ndarray, x: float, z: float) -> np.ndarray:
    """The colour at a place in the world, in cells."""
    return image[int((z + 1) * CELL), int((x + 1) * CELL)].astype(int)


def is_wool(colour: np.ndarray, name: str) -> bool:
    return bool(np.abs(colour - WOOL[name]).max() < 12)


def test_it_shows_both_rooms_and_the_walls() -> None:
    image = picture((2, 3, NORTH))
    assert image.shape == (336, 15 * CELL, 3)
    assert image.dtype == np.uint8
    for x, z in [(-0.5, 2.5), (6.5, 2.5), (13.5, 2.5), (3.5, -0.5), (10.5, 6.5)]:
        assert tuple(pixel(image, x, z)) == WALL
    floors = make_materials(STANDARD.items)[[0, 2]].mean(axis=(1, 2))
    assert np.abs(pixel(image, 0.5, 0.5) - floors[0]).max() < 2
    assert np.abs(pixel(image, 12.5, 0.5) - floors[1]).max() < 2


def test_in_the_big_room_there_is_no_wall_between() -> None:
    image = picture((2, 3, NORTH), config=RoomsConfig(big=True))
    assert tuple(pixel(image, 6.5, 2.5)) != WALL


@pytest.mark.parametrize("colour", STANDARD.items)
def test_blocks_are_where_they_stand_in_their_colours(colour: str) -> None:
    assert is_wool(pixel(picture((2, 3, NORTH), {(4, 1): colour}), 4.5, 1.25), colour)
    assert is_wool(pixel(picture((8, 3, NORTH), {(9, 5): colour}, room=1), 9.5, 5.25), colour)


def test_a_stack_shows_its_lower_block_as_a_rim() -> None:
    image = picture((2, 3, NORTH), {(4, 1): "red yellow"})
    assert is_wool(pixel(image, 4.5, 1.17), "red")
    assert is_wool(pixel(image, 4.5, 1.33), "yellow")


def test_blocks_carry_their_names() -> None:
    one, other = (picture((2, 3, NORTH), {(4, 1): colour}) for colour in ("red", "blue"))
    inside = np.s_[2 * CELL + 8 : 3 * CELL - 8, 5 * CELL + 8 : 6 * CELL - 8]
    for image in (one, other):
        block = image[inside].reshape(-1, 3).astype(int)
        assert (np.abs(block - block[0]).max(axis=1) > 60).sum() > 10, "letters differ from the wool"


@pytest.mark.parametrize(("facing", "dx", "dz"), [(NORTH, 0, -1), (EAST, 1, 0), (SOUTH, 0, 1), (WEST, -1, 0)])
def test_the_agent_points_where_it_looks(facing: int, dx: int, dz: int) -> None:
    image = picture((2, 3, facing))
    assert tuple(pixel(image, 2.5 + 0.3 * dx, 3.5 + 0.3 * dz)) == AGENT
    assert tuple(pixel(image, 2.5 - 0.3 * dx, 3.5 - 0.3 * dz)) != AGENT


def test_the_agent_shows_what_it_holds() -> None:
    assert is_wool(pixel(picture((2, 3, NORTH), held="yellow"), 2.5, 3.5), "yellow")
    assert tuple(pixel(picture((2, 3, NORTH)), 2.5, 3.4)) == AGENT


def test_a_path_is_drawn_to_where_the_agent_is() -> None:
    image = picture((2, 3, NORTH), path=((0, 0), (0, 3)))
    assert tuple(pixel(image, 0.5, 1.5)) == PATH
    assert tuple(pixel(image, 1.2, 3.5)) == PATH
    assert tuple(pixel(picture((2, 3, NORTH)), 0.5, 1.5)) != PATH


@pytest.mark.parametrize("size", [64, 100, 336, 800])
def test_its_size_can_be_set(size: int) -> None:
    world = start(STANDARD, 1)
    height, width, _ = draw_map(STANDARD, world.state[0], size).shape
    assert size - 8 < height <= size
    assert width == height // 8 * 15


def test_a_world_draws_the_map_of_any_of_its_games() -> None:
    world = start(STANDARD, 3)
    np.testing.assert_array_equal(world.map_picture(2), draw_map(STANDARD, world.state[2]))
    path = (world.map_position(2), (0.0, 0.0))
    assert path[0] == tuple(world.state["agent"][2, :2].tolist())
    np.testing.assert_array_equal(world.map_picture(2, 160, path), draw_map(STANDARD, world.state[2], 160, path))


def test_drawing_changes_nothing() -> None:
    world = start(STANDARD, 1)
    before = world.snapshot()
    draw_map(STANDARD, world.state[0])
    np.testing.assert_array_equal(world.snapshot(), before)
