"""Where the two-room games can be played, by name: the one place that knows all worlds of the package."""

from __future__ import annotations

from typing import Literal

from skillstack.errors import SkillstackError
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.games import RoomGames

WorldName = Literal["rooms", "minecraft"]

USUAL_GAMES: dict[WorldName, int] = {"rooms": 64, "minecraft": 16}
"""How many games are best played at once: in Minecraft each is a player who must join."""


def make_world(
    name: WorldName, config: RoomsConfig, num_games: int = 1, threads: int = 1, server: str | None = None
) -> RoomGames:
    """A world of that name; `threads` share the drawing of the embedded one, `server` is for Minecraft to join."""
    if name == "minecraft":
        from skillstack.worlds.minecraft import MinecraftWorld  # an extra, and slow to import

        return MinecraftWorld(config, num_games, server)
    if server is not None:
        raise SkillstackError("A server can be joined by the world minecraft only: say --world minecraft.")
    return RoomsWorld(config, num_games, threads)
