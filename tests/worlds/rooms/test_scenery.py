from dataclasses import replace

import numpy as np
import pytest
from rooms_helpers import STANDARD, looks_of, play, start, world_of

from skillstack.worlds.rooms import Randomisation, RoomsConfig
from skillstack.worlds.rooms.layout import NOTHING, State, state_dtype
from skillstack.worlds.rooms.raycaster import cast_frames
from skillstack.worlds.rooms.scenery import fits, make_scenery, paste_frames
from skillstack.worlds.rooms.sprites import make_hand

CONFIGS = {
    "both rooms": STANDARD,
    "the big room": RoomsConfig(big=True),
    "a deep room": RoomsConfig(3, 9, max_blocks=9),
    "looking down": RoomsConfig(pitch=30),
    "looking up with a wide view": RoomsConfig(pitch=-20, fov=95),
    "a wide view of an odd number of pixels": RoomsConfig(fov=90, image_size=85, pitch=20),
    "a low eye and small pictures": RoomsConfig(eye=1.1, image_size=16),
}


def pasted_and_cast(config: RoomsConfig, state: State) -> tuple[np.ndarray, np.ndarray]:
    looks, hand, games = looks_of(config), make_hand(config.image_size), np.arange(len(state))
    pasted, cast = np.empty((2, len(state), *config.description.image_shape), dtype=np.uint8)
    paste_frames(state, games, make_scenery(config, looks), looks, hand, pasted)
    cast_frames(state, games, looks, np.zeros(len(state), dtype=np.int64), hand, cast)
    return pasted, cast


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_pasted_pictures_are_the_ray_casters_bit_for_bit(config: RoomsConfig) -> None:
    world = start(config, 144)
    play(world, 80)
    pasted, cast = pasted_and_cast(config, world.state)
    np.testing.assert_array_equal(pasted, cast)


@pytest.mark.parametrize("big", [False, True])
def test_they_are_so_from_every_place_with_blocks_and_stacks_everywhere(big: bool) -> None:
    config = RoomsConfig(big=big, max_blocks=12)
    poses = [
        (x, z, facing, room)
        for room in config.rooms.tolist()
        for x in range(room[0], room[2])
        for z in range(room[1], room[3])
        for facing in range(4)
    ]
    state = np.zeros(len(poses), dtype=state_dtype(12))
    rng = np.random.default_rng(0)
    for game, (x, z, facing, room) in zip(state, poses, strict=True):
        game["agent"], game["room"] = [x, z, facing, NOTHING, NOTHING, NOTHING], room
        cells = [(cx, cz) for cx in range(room[0], room[2]) for cz in range(room[1], room[3]) if (cx, cz) != (x, z)]
        places = rng.permutation(cells)[:8]
        stack = [*((*cell, 0) for cell in places), *((*cell, 1) for cell in places[:4])]
        game["blocks"] = [(rng.integers(6), *place) for place in stack]
    pasted, cast = pasted_and_cast(config, state)
    np.testing.assert_array_equal(pasted, cast)


def test_the_world_pastes_where_it_can_and_casts_where_it_must() -> None:
    assert fits(STANDARD)
    assert fits(RoomsConfig(big=True))
    assert not fits(replace(STANDARD, randomise=Randomisation()))
    assert not fits(replace(STANDARD, image_size=512))
    assert not fits(RoomsConfig(40, 9))
    assert not fits(RoomsConfig(grow=1))


@pytest.mark.parametrize(
    "config", [replace(STANDARD, image_size=512), RoomsConfig(40, 9)], ids=["huge picture", "huge room"]
)
def test_what_does_not_fit_is_drawn_all_the_same(config: RoomsConfig) -> None:
    world = world_of(config, 4)
    world.reset(np.array([[0, 0], [1, 1], [2, 2], [3, 3]]), np.arange(4))
    assert world.observe().shape == (4, config.image_size, config.image_size, 3)
