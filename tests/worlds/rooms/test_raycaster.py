"""The ray caster against a slow picture made in another way (`voxel_reference`), and its own promises."""

from dataclasses import replace

import numpy as np
import pytest
from rooms_helpers import STANDARD, looks_of, play, scene, start, world_of
from voxel_reference import held_block, reference_frame

from skillstack.worlds.rooms import Randomisation, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST
from skillstack.worlds.rooms.looks import WOOL

# Where a ray meets an edge exactly (many edges lie at simple fractions), rounding decides which side of it is seen.
MOST_DIFFERENT = 0.001
CROWDED = RoomsConfig(4, 4, min_blocks=4, max_blocks=5)  # where random play makes many stacks
CONFIGS = {
    "both rooms": STANDARD,
    "the big room": RoomsConfig(big=True),
    "a long room": RoomsConfig(3, 12, max_blocks=12, big=True),
    "stacks": CROWDED,
    "looking down 15 degrees": replace(CROWDED, pitch=15),
    "looking down 30 degrees": replace(CROWDED, pitch=30),
    "looking down as far as it goes": replace(CROWDED, pitch=50),
    "looking up": replace(CROWDED, pitch=-25),
    "a narrow view": replace(CROWDED, fov=30, pitch=40),
    "the widest view": replace(CROWDED, fov=100, pitch=10),
    "a low eye": replace(CROWDED, eye=1.05, pitch=20),
    "a high eye": replace(CROWDED, eye=1.95, pitch=20),
    "an odd number of pixels": replace(CROWDED, image_size=63),
    "an odd number of pixels, looking down": replace(CROWDED, image_size=63, pitch=20),
    "a small picture": replace(CROWDED, image_size=16),
    "random looks": replace(CROWDED, randomise=Randomisation(variety=40), pitch=10),
    "random looks in the big room": RoomsConfig(big=True, randomise=Randomisation(variety=40)),
}


def played(config: RoomsConfig, games: int = 20) -> RoomsWorld:
    """Games after random play, so that blocks are held and stacked."""
    world = start(config, games)
    play(world, 150)
    return world


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_picture_is_what_rays_through_voxels_see(config: RoomsConfig) -> None:
    world, looks = played(config), looks_of(config)
    frames = world.observe()
    wrong = np.stack(
        [
            (frame != reference_frame(config, looks, game)).any(axis=-1)
            for frame, game in zip(frames, world.state, strict=True)
        ]
    )
    assert wrong.mean() < MOST_DIFFERENT
    assert wrong.mean(axis=(1, 2)).max() < 5 * MOST_DIFFERENT


def test_random_play_makes_the_states_that_are_hard_to_draw() -> None:
    state = played(CROWDED).state
    assert (state["agent"][:, 3] >= 0).sum() > 3
    assert ((state["blocks"][..., 3] == 1) & (state["blocks"][..., 0] >= 0)).sum() > 3


@pytest.mark.parametrize("size", [16, 63, 84])
def test_the_held_block_is_where_rays_walk_into_it(size: int) -> None:
    config = replace(STANDARD, image_size=size)
    empty = scene((2, 3, NORTH), config=config).observe()[0]
    full = scene((2, 3, NORTH), held="yellow", config=config).observe()[0]
    assert ((empty != full).any(axis=-1) != held_block(size)[0]).mean() < MOST_DIFFERENT
    rows, columns = np.nonzero((empty != full).any(axis=-1))
    assert rows.min() > size / 2
    assert columns.min() > size / 2


@pytest.mark.parametrize("colour", STANDARD.items)
def test_each_colour_is_seen_in_front_and_in_the_hand(colour: str) -> None:
    front = scene((2, 3, NORTH), {(2, 2): colour}).observe()[0, 70, 42]
    hand = scene((2, 3, NORTH), held=colour).observe()[0, 75, 72]
    for pixel in (front, hand):
        lit = pixel / np.array(WOOL[colour])
        assert lit.min() > 0.5
        assert lit.max() < 1.2


def test_a_picture_is_a_function_of_the_state_alone() -> None:
    world = played(replace(CROWDED, randomise=Randomisation(variety=40)))
    first = world.observe()
    np.testing.assert_array_equal(world.observe(), first)
    np.testing.assert_array_equal(RoomsWorld(world.config, 3).render(world.snapshot()), first)


def test_the_frames_belong_to_the_caller() -> None:
    world = played(CROWDED)
    frames = world.observe()
    frames[:] = 0
    assert world.observe().any()


@pytest.mark.parametrize(("facing", "near"), [(NORTH, (3, 0)), (EAST, (5, 3)), (SOUTH, (3, 5)), (WEST, (0, 3))])
def test_the_two_rooms_look_different(facing: int, near: tuple[int, int]) -> None:
    west = scene((*near, facing)).observe()[0].mean(axis=(0, 1))
    east = scene((near[0] + 7, near[1], facing), room=1).observe()[0].mean(axis=(0, 1))
    assert np.abs(west - east).max() > 20


def test_a_level_row_shows_no_block_that_lies_below_the_eye() -> None:
    # With an odd number of pixels the middle row's rays are exactly level.
    config = replace(STANDARD, image_size=63)
    without = scene((2, 5, NORTH), config=config).observe()[0]
    with_block = scene((2, 5, NORTH), {(2, 2): "white"}, config=config).observe()[0]
    np.testing.assert_array_equal(with_block[:32], without[:32])
    assert (with_block[32:] != without[32:]).any()


def test_a_stack_rises_above_the_horizon_and_a_single_block_does_not() -> None:
    empty = scene((2, 5, NORTH)).observe()[0]
    single = scene((2, 5, NORTH), {(2, 3): "red"}).observe()[0]
    double = scene((2, 5, NORTH), {(2, 3): "red red"}).observe()[0]
    np.testing.assert_array_equal(single[:42], empty[:42])
    assert (double[:42] != empty[:42]).any()


def test_looking_down_brings_the_block_in_front_to_the_middle() -> None:
    def middle_of_block(pitch: float) -> float:
        config = replace(STANDARD, pitch=pitch)
        empty, full = (scene((2, 5, NORTH), blocks, config=config).observe()[0] for blocks in ({}, {(2, 3): "white"}))
        return float(np.nonzero((empty != full).any(axis=(1, 2)))[0].mean())

    assert middle_of_block(0) > middle_of_block(15) > middle_of_block(30)
    assert abs(middle_of_block(30) - 42) < 8


def test_blocks_behind_the_agent_and_behind_others_are_not_seen() -> None:
    empty = scene((2, 3, NORTH)).observe()
    for cell in [(2, 4), (1, 4), (3, 5), (0, 4)]:
        np.testing.assert_array_equal(scene((2, 3, NORTH), {cell: "red"}).observe(), empty)
    wall_of_blocks = {(2, 2): "red red"}
    hidden = scene((2, 3, NORTH), {**wall_of_blocks, (2, 0): "blue"}).observe()
    np.testing.assert_array_equal(hidden, scene((2, 3, NORTH), wall_of_blocks).observe())


def test_the_order_of_the_slots_does_not_matter() -> None:
    world = played(CROWDED)
    frames, state = world.observe(), world.snapshot()
    state["blocks"] = state["blocks"][:, ::-1]
    np.testing.assert_array_equal(world_of(CROWDED).render(state), frames)
