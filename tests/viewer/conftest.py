"""A viewer for all tests of a module, and one with narrow limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from viewer_helpers import Server, make_agent

from skillstack.viewer.house import House, ViewerLimits, open_house


@pytest.fixture(scope="session")
def agent_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_agent(tmp_path_factory.mktemp("agents") / "stacker")


@pytest.fixture(scope="module")
def house(agent_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> House:
    folder = tmp_path_factory.mktemp("viewer")
    house = open_house([str(agent_folder)], folder / "gallery", folder / "runs")
    house.warm_up()
    return house


@pytest.fixture(scope="module")
def server(house: House) -> Iterator[Server]:
    with Server(house) as running:
        yield running


@pytest.fixture
def strict_server(agent_folder: Path, tmp_path: Path) -> Iterator[Server]:
    """One with narrow limits."""
    limits = ViewerLimits(connections=2, acts=3, kept=2, wrong=4, rate=20.0, burst=30.0)
    with Server(open_house([], tmp_path / "gallery", tmp_path / "runs", limits)) as running:
        yield running
