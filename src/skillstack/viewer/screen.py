"""Where the viewer's games are played, and where recorded ones are played again for their pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skillstack.errors import SkillstackError
from skillstack.rollout.plan import PlanTree
from skillstack.worlds.making import WorldName, make_world
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.games import RoomGames

WorldOf = Callable[[PlanTree], RoomGames]
"""Finds the world that a plan can be played in again."""


def world_of(tree: PlanTree) -> RoomGames:
    """The embedded world that a plan was played in, made from the settings that it tells."""
    config = _config_of(tree)
    if tree.world != "rooms":
        raise SkillstackError(
            f'This game was played in the world "{tree.world}": start the viewer with --world {tree.world} to see it.'
        )
    return make_world("rooms", config)


def _config_of(tree: PlanTree) -> RoomsConfig:
    if tree.world not in ("rooms", "minecraft") or not tree.settings.get("world"):
        raise SkillstackError("This plan does not tell the settings of a two-room world, so it has no pictures.")
    return RoomsConfig.from_json(tree.settings["world"])


@dataclass(frozen=True)
class Place:
    """Where games are played."""

    world: WorldName = "rooms"
    server: str | None = None
    """A Minecraft server to join; by default one of our own is started."""

    @property
    def costs_players(self) -> bool:
        """Whether each game needs a player of its own on a server."""
        return self.world != "rooms"


class Screen:
    """Plays recorded games again, one at a time.

    In Minecraft it keeps one player, who stays between two games: so recorded games need not wait for one to join, and
    the embedded server does not end when the last page is closed.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._world: RoomGames | None = None

    def open(self, config: RoomsConfig) -> RoomGames:
        """A world with these settings; the last one is closed, but only once the new one is there."""
        if self._world is None or self._world.config != config:
            old, self._world = self._world, make_world(self.place.world, config, server=self.place.server)
            if old is not None:
                old.close()
        return self._world

    def world_of(self, tree: PlanTree) -> RoomGames:
        """The world that a plan was played in; plans of the embedded rooms can be shown everywhere."""
        return self.open(_config_of(tree)) if tree.world == self.place.world else world_of(tree)

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None
