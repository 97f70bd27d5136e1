import re
import time
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rooms_helpers import ALL_TASKS, STANDARD, cycled, standing_blocks, start, tasks

from skillstack import SkillstackError
from skillstack.instructions import COLOURS
from skillstack.worlds.rooms import ACTIONS, Randomisation, RoomsConfig
from skillstack.worlds.rooms.layout import MAX_ITEMS, NOTHING, start_games, state_dtype

BIG = RoomsConfig(big=True)
SIZES = [STANDARD, BIG, RoomsConfig(room_width=3, room_depth=4, max_blocks=4), RoomsConfig(4, 2, max_blocks=2)]
GROWING = RoomsConfig(3, 4, max_blocks=4, grow=1)
GAMES = 24 * 40


def reached(game: Any) -> set[tuple[int, int]]:
    """The cells that the agent can walk to, by a flood from where it stands."""
    x0, z0, x1, z1, _ = game["room"].tolist()
    blocked = {(x, z) for _, x, z, _ in standing_blocks(game)}
    seen, queue = set(), deque([tuple(game["agent"][:2].tolist())])
    while queue:
        x, z = queue.popleft()
        if (x, z) in seen or (x, z) in blocked or not (x0 <= x < x1 and z0 <= z < z1):
            continue
        seen.add((x, z))
        queue.extend([(x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)])
    return seen


@pytest.mark.parametrize("config", [*SIZES, GROWING], ids=["small", "big", "3x4", "4x2", "growing"])
class TestStarts:
    def test_no_task_is_achieved_yet_and_every_one_is_executable(self, config: RoomsConfig) -> None:
        world = start(config, GAMES)
        own = cycled(ALL_TASKS, GAMES)
        assert not world.achieved(own).any()
        assert world.executable(own).all()

    def test_agent_and_blocks_stand_on_different_cells_of_one_room(self, config: RoomsConfig) -> None:
        rooms = config.rooms.tolist()
        for game in start(config, GAMES).state:
            x0, z0, x1, z1, _ = game["room"].tolist()
            assert game["room"].tolist() in rooms
            blocks = standing_blocks(game)
            cells = [tuple(game["agent"][:2].tolist()), *((x, z) for _, x, z, _ in blocks)]
            assert len(set(cells)) == len(cells)
            assert all(x0 <= x < x1 and z0 <= z < z1 for x, z in cells)
            assert all(y == 0 for *_, y in blocks)

    def test_every_block_can_be_walked_to(self, config: RoomsConfig) -> None:
        for game in start(config, GAMES).state:
            cells = reached(game)
            for _, x, z, _ in standing_blocks(game):
                assert {(x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)} & cells

    def test_both_rooms_all_facings_and_every_cell_occur(self, config: RoomsConfig) -> None:
        state = start(config, GAMES).state
        assert {tuple(room) for room in state["room"].tolist()} == {tuple(room) for room in config.rooms.tolist()}
        assert set(state["agent"][:, 2].tolist()) == {0, 1, 2, 3}
        cells = {tuple(cell) for cell in state["agent"][:, :2].tolist()}
        rooms = config.rooms.tolist()
        assert cells == {(x, z) for x0, z0, x1, z1, _ in rooms for x in range(x0, x1) for z in range(z0, z1)}


class TestBlocks:
    def test_a_game_has_one_to_six_blocks_of_all_six_colours(self) -> None:
        state = start(STANDARD, GAMES).state
        totals = {len(standing_blocks(game)) + int(game["agent"][3] != NOTHING) for game in state}
        assert totals == {1, 2, 3, 4, 5, 6}
        assert {item for game in state for item, *_ in standing_blocks(game)} == set(range(6))

    @pytest.mark.parametrize(("fewest", "most"), [(1, 1), (3, 3), (2, 5), (12, 12)])
    def test_the_number_of_blocks_can_be_set(self, fewest: int, most: int) -> None:
        config = RoomsConfig(min_blocks=fewest, max_blocks=most)
        for game, (skill, _) in zip(start(config, 240).state, cycled(ALL_TASKS, 240), strict=True):
            total = len(standing_blocks(game)) + int(game["agent"][3] != NOTHING)
            assert max(fewest, 2 if skill == 3 else 1) <= total <= max(most, 2 if skill == 3 else 1)

    def test_what_the_task_needs_is_there(self) -> None:
        world = start(STANDARD, GAMES)
        for game, (skill, item) in zip(world.state, cycled(ALL_TASKS, GAMES), strict=True):
            on_floor = [block[0] for block in standing_blocks(game)].count(item)
            assert on_floor >= (1, 1, 0, 2)[skill]
            assert skill == 2 or game["agent"][3] != item or skill == 0
            assert skill != 2 or game["agent"][3] == item

    def test_without_distractors_there_is_only_what_the_task_needs(self) -> None:
        world = start(replace(STANDARD, distractors=False, min_blocks=4), 240)
        for game, (skill, item) in zip(world.state, cycled(ALL_TASKS, 240), strict=True):
            assert [block[0] for block in standing_blocks(game)] == [item] * (1, 1, 0, 2)[skill]
            assert game["agent"][3] == (item if skill == 2 else NOTHING)

    @pytest.mark.parametrize("chance", [0.0, 0.25, 1.0])
    def test_some_find_games_start_with_a_block_in_the_hand(self, chance: float) -> None:
        world = start(replace(STANDARD, min_blocks=2, held_start=chance), 2000, tasks("find red"))
        share = (world.state["agent"][:, 3] != NOTHING).mean()
        assert abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / 2000)

    def test_only_find_and_put_games_start_with_a_block_in_the_hand(self) -> None:
        world = start(replace(STANDARD, held_start=1.0), GAMES)
        skills = cycled(ALL_TASKS, GAMES)[:, 0]
        holds = world.state["agent"][:, 3] != NOTHING
        assert holds[skills == 2].all()
        assert not holds[(skills == 1) | (skills == 3)].any()
        assert set(world.state["agent"][(skills == 0) & holds, 3].tolist()) == set(range(6))

    def test_other_items_can_be_used(self) -> None:
        config = RoomsConfig(items=("orange", "black"))
        world = start(config, 64, np.array([[3, 1], [0, 0]]))
        assert config.description.vocabulary.items == ("orange", "black")
        assert set(world.state["blocks"][..., 0].ravel().tolist()) == {NOTHING, 0, 1}


class TestRooms:
    def test_two_rooms_lie_side_by_side_with_a_wall_of_one_cell_between(self) -> None:
        west, east = RoomsConfig(room_width=5, room_depth=4).rooms.tolist()
        assert west == [0, 0, 5, 4, 0]
        assert east == [6, 0, 11, 4, 1]

    def test_the_big_room_is_both_rooms_and_the_walls_cell(self) -> None:
        assert RoomsConfig(room_width=5, room_depth=4, big=True).rooms.tolist() == [[0, 0, 11, 4, 0]]

    def test_growing_rooms_have_all_sizes_between_the_smallest_and_the_largest(self) -> None:
        sizes = {(x1 - x0, z1 - z0, theme) for x0, z0, x1, z1, theme in GROWING.rooms.tolist()}
        assert sizes == {(width, depth, theme) for width in (3, 4) for depth in (4, 5) for theme in (0, 1)}

    def test_there_are_eight_actions(self) -> None:
        assert len(ACTIONS) == 8
        assert STANDARD.description.actions == ACTIONS
        assert STANDARD.description.image_shape == (84, 84, 3)
        assert STANDARD.description.vocabulary.items == COLOURS

    def test_the_penalty_can_be_turned_off(self) -> None:
        assert STANDARD.rewards.refused == -0.5
        assert replace(STANDARD, penalty=False).rewards.refused == 0.0

    @pytest.mark.parametrize(("width", "depth", "blocks"), [(40, 2, 20), (3, 32, 32), (2, 4, 2), (40, 40, 32)])
    def test_the_most_crowded_rooms_allowed_still_start(self, width: int, depth: int, blocks: int) -> None:
        config = RoomsConfig(width, depth, min_blocks=blocks, max_blocks=blocks)
        state = np.zeros(20, dtype=state_dtype(config.slots))
        begin = time.perf_counter()
        start_games(config, state, np.arange(20), np.full((20, 2), 3), np.arange(20, dtype=np.uint64))
        assert time.perf_counter() - begin < 10
        assert all(len(standing_blocks(game)) == blocks for game in state)


class TestBadSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"room_width": 1}, "room_width must be from 2 to 40 cells, not 1"),
            ({"room_depth": 41}, "room_depth must be from 2 to 40 cells, not 41"),
            ({"room_width": 6.5}, "room_width must be a whole number, not 6.5"),
            ({"room_depth": "6"}, "room_depth must be a whole number, not '6'"),
            ({"grow": -1}, "Rooms can grow by 0 cells or more, to 40 at most, not by -1"),
            ({"grow": 35}, "to 40 at most, not by 35"),
            ({"grow": 1, "big": True}, "The big room has one size"),
            ({"min_blocks": 0}, "1 <= min_blocks <= max_blocks <= 32, not 0 and 6"),
            ({"min_blocks": 7}, "1 <= min_blocks <= max_blocks <= 32, not 7 and 6"),
            ({"max_blocks": 33}, "1 <= min_blocks <= max_blocks <= 32, not 1 and 33"),
            ({"max_blocks": 2.5}, "max_blocks must be a whole number"),
            ({"room_width": 3, "room_depth": 3}, "no room for 6 blocks in 3 x 3 cells: a block needs 3 cells"),
            ({"room_width": 2, "room_depth": 3, "max_blocks": 1}, "no room for 2 blocks in 2 x 3 cells"),
            ({"room_width": 40, "room_depth": 2, "max_blocks": 21}, "a block needs 4 cells"),
            ({"held_start": 1.5}, "held_start is a probability"),
            ({"held_start": float("nan")}, "held_start is a probability"),
            ({"items": ()}, "at least one item"),
            ({"items": ("red", "red")}, 'item "red" is listed twice'),
            ({"items": ("find",)}, "both a skill and an item"),
            ({"items": tuple(f"i{n}" for n in range(MAX_ITEMS + 1))}, "at most 64 items, not 65"),
            ({"image_size": 15}, "image_size must be from 16 to 512 pixels, not 15"),
            ({"image_size": 84.0}, "image_size must be a whole number"),
            ({"fov": 20}, "field of view must stay from 30 to 100 degrees; it is 20"),
            ({"fov": float("nan")}, "field of view must stay"),
            ({"fov": 98, "randomise": Randomisation()}, r"it is 98 \+- 5"),
            ({"eye": 1.0}, "eye must stay between"),
            ({"eye": 1.9, "randomise": Randomisation()}, r"it is 1.9 \+- 0.08"),
            ({"pitch": 51}, "come to 86 degrees, at most 85"),
            ({"pitch": -51}, "come to 86 degrees, at most 85"),
            ({"pitch": float("nan")}, "at most 85"),
            ({"pitch": 42, "randomise": Randomisation()}, "come to 85.5 degrees"),
            ({"randomise": True}, "must be a Randomisation or None, not True"),
        ],
        ids=str,
    )
    def test_an_impossible_setting_is_told_what_is_possible(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(SkillstackError, match=message if "\\" in message else re.escape(message)):
            RoomsConfig(**settings)
