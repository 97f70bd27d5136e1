"""The viewer in a real Minecraft game."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewer_helpers import Server

from skillstack.viewer.house import open_house
from skillstack.viewer.screen import Place
from skillstack.worlds.minecraft import MinecraftWorld
from skillstack.worlds.minecraft.session import session_for


@pytest.fixture(scope="module")
def viewer(server: MinecraftWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("viewer")
    house = open_house([], folder / "gallery", folder / "runs", place=Place("minecraft"))
    house.warm_up()
    with Server(house) as running:
        yield running


def leased_within(seconds: float, count: int) -> bool:
    until = time.monotonic() + seconds
    while len(session_for(None).leased) != count and time.monotonic() < until:
        time.sleep(0.05)
    return len(session_for(None).leased) == count


def test_a_game_is_watched_interrupted_compared_and_kept(viewer: Server) -> None:
    before = len(session_for(None).leased)
    with viewer.page() as page:
        assert page.set_up("stack blue", "oracle", "oracle")["type"] == "game"
        assert len(session_for(None).leased) == before + 2
        page.send("start")
        assert [page.receive()["lane"], page.receive()["lane"]] == [0, 1]
        page.send("pause")
        page.send("instruct", instruction="get blue")
        events = [page.receive()]
        while sum(bool(event.get("ended")) for event in events) < 2:
            events.append(page.receive())
        assert events[-1]["sentence"].startswith("I got the blue block")
        act = next(event["act"] for event in events if event["type"] == "act" and event["instruction"] == "get blue")
        assert page.ask("export", act=act, kind="gif")["type"] == "file"
    assert leased_within(60, before)


def test_blocks_are_dragged_and_a_person_drives(viewer: Server) -> None:
    with viewer.page() as page:
        game = page.set_up("put red", blocks=2)
        state = game["lanes"][0]["state"]
        agent = {**state["agent"], "facing": "north" if state["agent"]["facing"] != "north" else "south"}
        moved = page.ask("arrange", agent=agent, blocks=state["blocks"])
        assert moved["lanes"][0]["state"]["agent"] == agent
        assert moved["lanes"][0]["frame"] != game["lanes"][0]["frame"]
        page.send("start", drive=True)
        assert page.receive()["type"] == "act"
        turned = page.ask("act", action="turn left")
        assert turned["state"]["agent"]["facing"] != agent["facing"]


def test_the_big_room_is_built_when_it_is_asked_for(viewer: Server) -> None:
    with viewer.page() as page:
        small = page.set_up("find red")
        big = page.set_up("find red", room="big")
        assert (len(small["scene"]["rooms"]), len(big["scene"]["rooms"])) == (2, 1)
        page.send("start")
        assert page.play()[-1]["sentence"].startswith("I found the red block")


def test_nothing_is_left_running_when_the_viewer_is_interrupted(minecraft: None, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "skillstack.cli", "view", "--world", "minecraft", "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert re.search("The viewer is at", process.stdout.readline())
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == 2  # the server and the bridge
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)
    assert not any(os.path.exists(f"/proc/{child}") for child in children)  # noqa: PTH110
