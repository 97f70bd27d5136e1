"""Players by name, and agents only in worlds that fit them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillstack import SkillstackError, make_stages
from skillstack.policies.agent import Agent
from skillstack.rollout.casting import cast, check_fits
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld


def test_a_saved_agent_brings_its_words_and_its_picture_size(tmp_path: Path) -> None:
    config = RoomsConfig(items=("red", "pink"), image_size=40)
    Agent.create(config.description, make_stages("find", config.items)).save(tmp_path / "agent")
    world, player = cast(str(tmp_path / "agent"), RoomsConfig(big=True), num_games=3)
    assert world.description.vocabulary.items == ("red", "pink")
    assert world.description.image_shape == (40, 40, 3)
    assert world.config.big
    assert player.vocabulary.items == ("red", "pink")


def test_an_agent_does_not_play_in_a_world_that_does_not_fit() -> None:
    config = RoomsConfig()
    agent = Agent.create(config.description, make_stages("find"))
    check_fits(agent, RoomsWorld(config))
    with pytest.raises(SkillstackError, match="84 x 84 pixels, and the world gives 40 x 40"):
        check_fits(agent, RoomsWorld(replace(config, image_size=40)))
    with pytest.raises(SkillstackError, match="Unknown item"):
        check_fits(agent, RoomsWorld(replace(config, items=("red",))))
    agent.world = replace(agent.world, actions=("jump",))
    with pytest.raises(SkillstackError, match="actions"):
        check_fits(agent, RoomsWorld(config))


def test_an_unknown_name_is_told_who_there_is() -> None:
    with pytest.raises(SkillstackError, match="oracle"):
        cast("nobody", RoomsConfig())
