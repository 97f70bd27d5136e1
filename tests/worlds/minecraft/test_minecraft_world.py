"""The two rooms in Minecraft: the same games as in the embedded world, judged by the game's own blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from minecraft_helpers import PICK_UP, PUT_DOWN, STANDARD, seen_by_an_onlooker

from skillstack.errors import SkillstackError
from skillstack.worlds.conformance import check_world
from skillstack.worlds.making import make_world
from skillstack.worlds.minecraft import MinecraftWorld
from skillstack.worlds.minecraft.materials import plan_rooms
from skillstack.worlds.rooms import Randomisation, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.rooms.layout import BLOCK_Y, EAST, HELD, ITEM, NOTHING, make_state

pytestmark = pytest.mark.usefixtures("server")


def standing(world: RoomGames, game: int) -> list[tuple[int, ...]]:
    """The blocks of a game, whatever slots they are in."""
    blocks = world.state["blocks"][game]
    return sorted(map(tuple, blocks[blocks[:, ITEM] != NOTHING].tolist()))


def same_games(minecraft: RoomGames, rooms: RoomGames, tasks: np.ndarray) -> None:
    np.testing.assert_array_equal(minecraft.state["agent"], rooms.state["agent"])
    np.testing.assert_array_equal(minecraft.state["room"], rooms.state["room"])
    for game in range(rooms.num_games):
        assert standing(minecraft, game) == standing(rooms, game)
    for ask in ("achieved", "executable"):
        np.testing.assert_array_equal(getattr(minecraft, ask)(tasks), getattr(rooms, ask)(tasks))


@pytest.mark.parametrize(("config", "rounds"), [(STANDARD, 10), (RoomsConfig(big=True, room_width=4, room_depth=5), 3)])
def test_the_same_actions_make_the_same_games_as_in_the_embedded_rooms(config: RoomsConfig, rounds: int) -> None:
    """Some three hundred games, with many picks and puts: same places, blocks, goals and so rewards after each step."""
    games, steps = 24, 30
    minecraft, rooms = MinecraftWorld(config, games), RoomsWorld(config, games)
    every = rooms.description.vocabulary.encode(rooms.description.vocabulary.tasks)
    all_tasks = np.broadcast_to(every, (games, *every.shape))
    rng = np.random.default_rng(5)
    puts = 0
    for number in range(rounds):
        tasks = every[(np.arange(games) + number) % len(every)]
        seeds = np.arange(games, dtype=np.uint64) + np.uint64(1000 * number)
        minecraft.reset(tasks, seeds)
        rooms.reset(tasks, seeds)
        same_games(minecraft, rooms, all_tasks)
        for _ in range(steps):
            actions = rng.choice(8, p=[0.2, 0.05, 0.05, 0.05, 0.1, 0.1, 0.25, 0.2], size=games)
            minecraft.step(actions)
            rooms.step(actions)
            same_games(minecraft, rooms, all_tasks)
            puts += int(rooms.achieved(all_tasks)[:, 12:18].sum())
    assert puts > 5 * rounds  # so much was put down that the games are worth comparing
    minecraft.close()


def test_it_fulfils_the_world_contract() -> None:
    assert check_world(lambda num_games: MinecraftWorld(num_games=num_games), games=4, steps=12) == []


def test_somebody_else_on_the_server_sees_the_rooms_and_what_was_put_down(server: MinecraftWorld) -> None:
    held = make_state(STANDARD, (2, 2, EAST), {(3, 2): "blue", (0, 5): "red"}, held="green")
    server.restore(held)
    server.step([PUT_DOWN])  # on top of blue
    server.step([5])  # turn right
    assert server._session.address is not None
    wool = [["blue_wool", 4, 1, 3], ["green_wool", 4, 2, 3], ["red_wool", 1, 1, 6]]
    seen = seen_by_an_onlooker(server._session.address, server._plots[0])
    assert seen == sorted([*map(list, plan_rooms(STANDARD)), *wool])


def test_goals_are_judged_by_the_games_blocks_not_by_a_copy(server: MinecraftWorld) -> None:
    """What happens in the game behind our back counts from the next step on."""
    server.restore(make_state(STANDARD, (2, 2, EAST), {(3, 2): "blue", (0, 5): "red"}))
    find = server.description.vocabulary.encode([server.description.vocabulary.tasks[number] for number in (3, 4)])
    assert server.achieved(find[None])[0].tolist() == [True, False]  # find blue, find purple
    changed = server._description_of(make_state(STANDARD, (2, 2, EAST), {(3, 2): "purple"})[0])
    server._session.ask({"do": "place", "games": [[server._plots[0], changed]]})
    server.step([4])
    server.step([5])
    assert server.achieved(find[None])[0].tolist() == [False, True]
    assert standing(server, 0) == [(4, 3, 2, 0)]


def test_a_block_is_not_put_down_where_two_stand_or_in_a_wall(server: MinecraftWorld) -> None:
    server.restore(make_state(STANDARD, (2, 2, EAST), {(3, 2): "blue red"}, held="white"))
    before = server.snapshot()
    server.step([PUT_DOWN])
    assert standing(server, 0) == sorted(map(tuple, before["blocks"][0, :2].tolist()))
    assert server.state["agent"][0, HELD] == STANDARD.items.index("white")
    server.restore(make_state(STANDARD, (5, 2, EAST), {}, held="white"))
    server.step([PUT_DOWN])
    assert standing(server, 0) == []
    server.step([PICK_UP])  # a wall cannot be picked up either
    assert server.state["agent"][0, HELD] == STANDARD.items.index("white")
    assert (server.state["blocks"][0, :, BLOCK_Y] == 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"config": RoomsConfig(randomise=Randomisation())}, "one look only"),
        ({"config": RoomsConfig(items=("red", "mauve"))}, "no mauve wool"),
        ({"num_games": 0}, "at least one game"),
        ({"server": "nowhere"}, "HOST:PORT"),
        ({"server": "127.0.0.1:1"}, "No Minecraft server answers at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_played_is_refused_in_a_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SkillstackError, match=message):
        MinecraftWorld(**settings)


def test_a_closed_world_says_so() -> None:
    world = MinecraftWorld()
    world.close()
    with pytest.raises(SkillstackError, match="closed"):
        world.step([0])


def test_the_embedded_rooms_join_no_server() -> None:
    with pytest.raises(SkillstackError, match="--world minecraft"):
        make_world("rooms", STANDARD, server="localhost:25565")
