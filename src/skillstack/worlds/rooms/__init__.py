"""The embedded two-room world: Minecraft's discrete commands and looks, without Minecraft."""

from skillstack.worlds.rooms.layout import ACTIONS, RoomsConfig
from skillstack.worlds.rooms.looks import Randomisation
from skillstack.worlds.rooms.world import RoomsWorld

__all__ = ["ACTIONS", "Randomisation", "RoomsConfig", "RoomsWorld"]
