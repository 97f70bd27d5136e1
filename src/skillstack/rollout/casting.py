"""Who can be asked to play: an agent's folder, the shipped agent, the oracle, a random or an untrained player."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from skillstack.errors import SkillstackError
from skillstack.instructions import make_stages
from skillstack.policies.agent import Agent
from skillstack.rollout.oracle_player import OraclePlayer
from skillstack.rollout.player import AgentPlayer, Player, RandomPlayer
from skillstack.shipped import shipped_agent
from skillstack.worlds.making import WorldName, make_world
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.games import RoomGames
from skillstack.worlds.world import World

SHIPPED = "shipped"
NAMES = {
    SHIPPED: "the trained agent that comes with Skillstack",
    "oracle": "knows the shortest way to everything",
    "random": "decides everything by chance",
    "untrained": "an agent before it has learned anything",
}


@dataclass(frozen=True)
class Candidate:
    """Someone who can be asked to play, in as many worlds at once as one likes."""

    name: str
    agent: Agent | None
    """Whose networks play; None where it is no agent."""

    def config_for(self, config: RoomsConfig) -> RoomsConfig:
        """An agent's own words and picture size go before those of the config."""
        if self.agent is None or self.name == "untrained":
            return config
        return replace(config, items=self.agent.world.vocabulary.items, image_size=self.agent.world.image_shape[0])

    def play_in(
        self,
        config: RoomsConfig,
        num_games: int = 1,
        threads: int = 1,
        world_name: WorldName = "rooms",
        server: str | None = None,
    ) -> tuple[RoomGames, Player]:
        """A world, and the player for it."""
        world = make_world(world_name, self.config_for(config), num_games, threads, server)
        if self.agent is not None:
            check_fits(self.agent, world)
            return world, AgentPlayer(self.agent)
        stages = make_stages(items=config.items)
        if self.name == "oracle":
            return world, OraclePlayer(world, stages)
        return world, RandomPlayer(stages, len(world.description.actions))


def cast(
    name: str,
    config: RoomsConfig,
    num_games: int = 1,
    threads: int = 1,
    world_name: WorldName = "rooms",
    server: str | None = None,
) -> tuple[RoomGames, Player]:
    """A world and a player for it."""
    return find_candidate(name, config).play_in(config, num_games, threads, world_name, server)


def find_candidate(name: str, config: RoomsConfig | None = None) -> Candidate:
    """Whoever has this name, loaded once; an untrained agent is made for the config's words and pictures."""
    if name == "untrained":
        config = config or RoomsConfig()
        return Candidate(name, Agent.create(config.description, make_stages(items=config.items)))
    if name == SHIPPED:
        return Candidate(name, Agent.load(shipped_agent()))
    if name in NAMES:
        return Candidate(name, None)
    if not Path(name).exists():
        raise SkillstackError(
            f'There is no agent "{name}": give the folder of a saved agent, or one of '
            + ", ".join(f'"{known}" ({what})' for known, what in NAMES.items())
            + "."
        )
    return Candidate(name, Agent.load(name))


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
