"""Minecraft for the tests: where Node, its packages and EGL are; in CI they must be."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from skillstack.errors import SkillstackError
from skillstack.worlds.minecraft import MinecraftWorld
from skillstack.worlds.minecraft.renderer import open_context
from skillstack.worlds.minecraft.session import check_installed


@pytest.fixture(scope="session")
def minecraft() -> None:
    """Skip what cannot be played here."""
    try:
        check_installed()
        open_context()
    except SkillstackError as error:
        if "CI" in os.environ:
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def server(minecraft: None) -> Iterator[MinecraftWorld]:
    """A world that lives as long as the tests, so that all of them share one server."""
    world = MinecraftWorld()
    yield world
    world.close()
