"""Who plays for whom, and that everyone leaves in the end; in place of Minecraft there is a stand-in."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from viewer_helpers import Server

from skillstack import SkillstackError
from skillstack.rollout.plan import PlanTree
from skillstack.viewer import screen
from skillstack.viewer.house import House, ViewerLimits, open_house
from skillstack.viewer.lane import Lane
from skillstack.viewer.screen import Place, Screen
from skillstack.worlds import making
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld


class FakeMinecraft(RoomsWorld):
    """The embedded rooms under the other name; knows which of its kind are open."""

    there: list[FakeMinecraft] = []  # noqa: RUF012 - shared on purpose

    def __init__(self, config: RoomsConfig, num_games: int = 1, server: str | None = None) -> None:
        super().__init__(config, num_games)
        self.description = replace(self.description, name="minecraft")
        self.there.append(self)

    def close(self) -> None:
        if self in self.there:
            self.there.remove(self)


def make_fake(name: str, config: RoomsConfig, num_games: int = 1, threads: int = 1, server: str | None = None) -> Any:
    return FakeMinecraft(config, num_games) if name == "minecraft" else making.make_world("rooms", config, num_games)


@pytest.fixture
def minecraft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setattr("skillstack.rollout.casting.make_world", make_fake)
    monkeypatch.setattr(screen, "make_world", make_fake)
    FakeMinecraft.there.clear()
    place, limits = Place("minecraft"), ViewerLimits(players=3)
    return open_house([], tmp_path / "gallery", tmp_path / "runs", limits, place)


def wait_for(count: int) -> None:
    """Until so many players are there."""
    until = time.monotonic() + 60
    while len(FakeMinecraft.there) != count and time.monotonic() < until:
        time.sleep(0.02)
    assert len(FakeMinecraft.there) == count


def test_players_join_with_a_page_and_leave_with_it(minecraft: House) -> None:
    minecraft.warm_up()
    with Server(minecraft) as server:
        wait_for(1)  # who stays for recorded games
        with server.page() as page:
            assert page.hello["world"] == "minecraft"
            page.set_up()
            wait_for(2)
            page.set_up(room="big")  # another room, another game
            wait_for(2)
            page.set_up("stack blue", "oracle", "random")
            wait_for(3)
            page.send("start")
            page.receive()
        wait_for(1)
    wait_for(0)


def test_what_is_refused_leaves_no_player_behind(minecraft: House) -> None:
    with Server(minecraft) as server, server.page() as page:
        assert page.set_up("stak blue")["type"] == "error"
        wait_for(0)
        assert page.set_up("stack blue", "oracle", "nobody")["type"] == "error"
        wait_for(0)
        assert page.set_up()["type"] == "game"
        wait_for(1)


def test_no_more_players_join_than_may(minecraft: House) -> None:
    with Server(minecraft) as server, server.page() as first, server.page() as second:
        first.set_up("stack blue", "oracle", "random")
        told = second.set_up("stack blue", "oracle", "random")
        assert told["message"] == "3 players are in Minecraft already, as many as may be; close another page."
        assert second.set_up()["type"] == "game"
        wait_for(3)


def test_games_of_minecraft_are_exported_kept_and_shown_there(minecraft: House) -> None:
    with Server(minecraft) as server, server.page() as page:
        page.set_up("get red")
        page.send("start")
        act = page.play()[0]["act"]
        for kind in ("gif", "svg", "html"):
            assert page.ask("export", act=act, kind=kind)["type"] == "file"
        name = page.ask("save", act=act)["name"]
        assert name in [card["name"] for card in page.ask("gallery")["games"]]
        reel = page.ask("open", name=name)
        assert reel["plan"]["world"] == "minecraft"


def test_elsewhere_they_are_left_out_with_a_sentence(minecraft: House, tmp_path: Path) -> None:
    lane = minecraft.hire("oracle", RoomsConfig(), False)
    lane.begin(lane.parse("get red"), 0, None)
    assert lane.act is not None
    tree: PlanTree = lane.act.tree
    with pytest.raises(SkillstackError, match="start the viewer with --world minecraft"):
        Screen(Place()).world_of(tree)
    minecraft.gallery.save(tree)
    elsewhere = open_house([], minecraft.gallery.folder, tmp_path)
    assert all(card["name"].endswith(".json") for card in elsewhere.gallery.cards())
    assert len(elsewhere.gallery.cards()) == len(minecraft.gallery.cards()) - 1


def test_a_moment_that_has_begun_ends_before_its_player_leaves(minecraft: House) -> None:
    order: list[str] = []
    begun = threading.Event()

    def moment() -> None:
        begun.set()
        time.sleep(0.2)
        order.append("moment")

    async def leave() -> None:
        playing = asyncio.create_task(minecraft.play(moment))
        await asyncio.to_thread(begun.wait)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
        await minecraft.play(order.append, "left")

    asyncio.run(leave())
    assert order == ["moment", "left"]


def test_closing_the_house_closes_every_game(minecraft: House) -> None:
    lanes: list[Lane] = [minecraft.hire("oracle", RoomsConfig(), False) for _ in range(2)]
    assert len(FakeMinecraft.there) == len(lanes)
    minecraft.close()
    assert FakeMinecraft.there == []
