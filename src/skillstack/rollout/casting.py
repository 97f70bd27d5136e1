"""Who can be asked to play, by name: an agent's folder, the oracle, the random player, or an untrained agent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from skillstack.errors import SkillstackError
from skillstack.instructions import make_stages
from skillstack.policies.agent import Agent
from skillstack.rollout.oracle_player import OraclePlayer
from skillstack.rollout.player import AgentPlayer, Player, RandomPlayer
from skillstack.worlds.making import WorldName, make_world
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.world import World

NAMES = {
    "oracle": "knows the shortest way to everything",
    "random": "decides everything by chance",
    "untrained": "an agent before it has learned anything",
}


def cast(
    name: str,
    config: RoomsConfig,
    num_games: int = 1,
    threads: int = 1,
    world_name: WorldName = "rooms",
    server: str | None = None,
) -> tuple[RoomGames, Player]:
    """A world and a player for it. An agent's own words and picture size go before those of the config."""
    if name in NAMES:
        world = make_world(world_name, config, num_games, threads, server)
        stages = make_stages(items=config.items)
        if name == "oracle":
            return world, OraclePlayer(world, stages)
        if name == "random":
            return world, RandomPlayer(stages, len(world.description.actions))
        return world, AgentPlayer(Agent.create(world.description, stages))
    if not Path(name).exists():
        raise SkillstackError(
            f'There is no agent "{name}": give the folder of a saved agent, or one of '
            + ", ".join(f'"{known}" ({what})' for known, what in NAMES.items())
            + "."
        )
    agent = Agent.load(name)
    config = replace(config, items=agent.world.vocabulary.items, image_size=agent.world.image_shape[0])
    world = make_world(world_name, config, num_games, threads, server)
    check_fits(agent, world)
    return world, AgentPlayer(agent)


def check_fits(agent: Agent, world: World) -> None:
    """Refuse an agent in a world whose actions, words or frames are not the ones it learned."""
    mine, its = agent.world, world.description
    if mine.actions != its.actions:
        raise SkillstackError(
            f'The agent learned the actions of the world "{mine.name}", which "{its.name}" does not have.'
        )
    if mine.image_shape != its.image_shape:
        raise SkillstackError(
            f"The agent sees frames of {mine.image_shape[0]} x {mine.image_shape[1]} pixels, and the world gives "
            f"{its.image_shape[0]} x {its.image_shape[1]}."
        )
    for task in agent.stages[-1].tasks:
        its.vocabulary.check(task)
