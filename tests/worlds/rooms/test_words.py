"""States in words, and back."""

from __future__ import annotations

from typing import Any

import pytest

from skillstack import Instruction, SkillstackError
from skillstack.worlds.rooms import Randomisation, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import make_state
from skillstack.worlds.rooms.words import begun
from skillstack.worlds.world import ToldWorld

CONFIG = RoomsConfig(items=("red", "blue"))


def told() -> dict[str, Any]:
    """The agent at (2, 3) looking east with a red block, before a stack of blue on red."""
    world = RoomsWorld(CONFIG)
    return world.state_to_json(make_state(CONFIG, (2, 3, 1), {(3, 3): "red blue"}, held="red"))


def test_a_state_reads_as_it_looks() -> None:
    assert told() == {
        "room": 0, "look": 0, "agent": {"x": 2, "z": 3, "facing": "east"}, "held": "red", "placed": None, "kept": None,
        "blocks": [{"item": "red", "x": 3, "z": 3, "y": 0}, {"item": "blue", "x": 3, "z": 3, "y": 1}],
    }  # fmt: skip


@pytest.mark.parametrize("config", [CONFIG, RoomsConfig(big=True), RoomsConfig(randomise=Randomisation(variety=4))])
def test_every_state_of_a_game_can_be_written_and_read_back(config: RoomsConfig) -> None:
    world = RoomsWorld(config, num_games=16)
    assert isinstance(world, ToldWorld)
    tasks = list(world.description.vocabulary.tasks)[:4] * 4
    world.reset(world.description.vocabulary.encode(tasks), range(16))
    for step in range(20):
        world.step([(step * game) % 8 for game in range(16)])
        for game in range(16):
            state = world.snapshot([game])
            back = world.state_from_json(world.state_to_json(state))
            assert world.state_to_json(back) == world.state_to_json(state)
            assert (world.render(back) == world.render(state)).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"agent": {"x": 3, "z": 3, "facing": "east"}}, "cannot stand where a block is"),
        ({"agent": {"x": 6, "z": 3, "facing": "east"}}, "within the room"),
        ({"agent": {"x": 2, "z": 3, "facing": "eats"}}, 'Did you mean "east"'),
        ({"blocks": [{"item": "pink", "x": 0, "z": 0, "y": 0}]}, "Unknown item"),
        ({"blocks": [{"item": "red", "x": 0, "z": 0, "y": 1}]}, "on the floor or on another block"),
        ({"blocks": [{"item": "red", "x": 0, "z": 0, "y": 0}] * 2}, "Two blocks cannot be in one place"),
        ({"blocks": [{"item": "red", "x": 0, "z": z, "y": 0} for z in range(7)]}, "place for 6 blocks"),
        ({"room": 2}, "not a state"),
        ({"look": 1}, "not a state"),
        ({"held": 3}, "Unknown item"),
        ({"blocks": None}, "not a state"),
        ({"agent": {"x": True, "z": 3, "facing": "east"}}, "not a state"),
        ({"agent": {"x": 1.5, "z": 3, "facing": "east"}}, "not a state"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(SkillstackError, match=words):
        RoomsWorld(CONFIG).state_from_json(told() | change)


def test_a_search_keeps_the_hand_as_it_is() -> None:
    assert begun(told(), Instruction("find", "blue"))["kept"] == "red"
    assert begun(told() | {"held": None}, Instruction("find", "blue"))["kept"] == ""
    assert begun(told() | {"kept": "red", "placed": "blue"}, Instruction("put", "red")) == told()


def test_settings_come_back_from_json() -> None:
    import dataclasses
    import json

    for config in (CONFIG, RoomsConfig(big=True, randomise=Randomisation(hue=0.1))):
        assert RoomsConfig.from_json(json.loads(json.dumps(dataclasses.asdict(config)))) == config
    for wrong in ({}, None, {"items": 3, "randomise": None}, {"items": [], "randomise": None, "colour": 1}):
        with pytest.raises(SkillstackError):
            RoomsConfig.from_json(wrong)
