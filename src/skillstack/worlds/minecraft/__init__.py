"""The two rooms in a real Minecraft game: the same tasks, played by a player on a server."""

from skillstack.worlds.minecraft.world import MinecraftWorld

__all__ = ["MinecraftWorld"]
