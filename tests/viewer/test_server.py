"""The server from outside: games over a real WebSocket, and everything that one may try against it."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest
from viewer_helpers import Page, Server
from websockets.exceptions import ConnectionClosed, InvalidStatus

from skillstack.rollout.plan import PlanTree
from skillstack.viewer.export import page_files
from skillstack.viewer.feed import apply


def plan_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    known: dict[str, Any] | None = None
    for event in events:
        known = apply(known, event["patch"])
    assert known is not None
    return known


def exported(page: Page, act: int, kind: str = "json") -> bytes:
    file = page.ask("export", act=act, kind=kind)
    assert file["type"] == "file", file
    return base64.b64decode(file["data"])


class TestPlaying:
    def test_a_game_is_streamed_from_its_start_to_its_goal_and_equals_its_export(self, server: Server) -> None:
        with server.page() as page:
            game = page.set_up()
            assert game["type"] == "game"
            page.send("start")
            events = page.play()
            assert [event["type"] for event in events] == ["act"] + ["moment"] * (len(events) - 1)
            assert [event["moment"] for event in events] == list(range(len(events)))
            assert events[0]["state"] == game["lanes"][0]["state"]
            assert events[-1]["sentence"].startswith("I stacked the blue blocks")
            plan = json.loads(exported(page, events[0]["act"]))
            assert plan_of(events) == plan["root"]
            assert plan["success"]
            assert plan["settings"]["player"] == "oracle"

    def test_the_same_seed_is_the_same_game_and_another_setup_another(self, server: Server) -> None:
        with server.page() as page:
            first = page.set_up(blocks=5)
            assert page.set_up(blocks=5) == first
            assert len(first["lanes"][0]["state"]["blocks"]) == 5
            big = page.set_up(room="big", blocks=2)
            assert len(big["scene"]["rooms"]) == 1
            assert len(big["lanes"][0]["state"]["blocks"]) == 2

    def test_unknown_words_are_answered_with_what_was_probably_meant(self, server: Server) -> None:
        with server.page() as page:
            error = page.set_up("stak blue")
            assert error["type"] == "error"
            assert 'Did you mean "stack"' in error["message"]
            assert 'Did you mean "oracle"' in page.set_up("stack blue", "orcale")["message"]

    def test_an_agents_own_reasons_come_with_its_decisions(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("stack blue", "stacker")
            page.send("speed", steps=0.5)
            page.send("start")
            begun = page.receive()
            odds = plan_of([begun, page.ask("step")])["decisions"][0]["odds"]["switch"]
            assert set(odds) == {"policy", "grammar", "reshaped"}
            assert odds["grammar"]["call"] > 0.9

    def test_a_paused_game_goes_on_step_by_step(self, server: Server) -> None:
        with server.page() as page:
            page.set_up()
            page.send("speed", steps=0.5)
            page.send("start")
            assert page.receive()["type"] == "act"
            page.send("pause")
            assert [page.ask("step")["moment"] for _ in range(3)] == [1, 2, 3]

    def test_another_instruction_interrupts_and_goes_on_from_there(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("stack blue")
            page.send("speed", steps=0.5)
            page.send("start")
            page.receive()
            page.send("pause")
            before = page.ask("step")
            begun = page.ask("instruct", instruction="find yellow")
            assert (begun["type"], begun["fresh"]) == ("act", False)
            assert begun["state"]["agent"] == before["state"]["agent"]
            page.send("pause")
            page.send("resume")
            events = [begun, *page.play()]
            assert events[-1]["patch"]["outcome"] == "achieved"
            interrupted = PlanTree.from_json(json.loads(exported(page, begun["act"] - 1)))
            assert interrupted.root.outcome == ""
            later = PlanTree.from_json(json.loads(exported(page, begun["act"])))
            assert later.settings["start"]["agent"] == before["state"]["agent"]
            assert exported(page, begun["act"], "gif").startswith(b"GIF89a")

    def test_what_cannot_be_done_from_here_is_refused_and_the_game_goes_on(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("get blue")
            assert "start one first" in page.ask("instruct", instruction="find blue")["message"]
            page.send("start")
            page.play()
            assert "must be in the hand" in page.ask("instruct", instruction="put red")["message"]
            assert "hand must be empty" in page.ask("instruct", instruction="get white")["message"]
            assert "achieved already" in page.ask("instruct", instruction="get blue")["message"]
            page.send("instruct", instruction="put blue")
            assert page.play()[-1]["patch"]["outcome"] == "achieved"

    def test_blocks_and_agent_are_put_elsewhere_before_a_run_and_only_then(self, server: Server) -> None:
        with server.page() as page:
            state = page.set_up("find blue", blocks=1)["lanes"][0]["state"]
            x0 = 7 * state["room"]
            agent = {"x": x0, "z": 0, "facing": "south"}
            blocks = [{"item": "blue", "x": x0 + 2, "z": 4}]
            moved = page.ask("arrange", agent=agent, blocks=blocks)["lanes"][0]["state"]
            assert (moved["agent"], moved["blocks"]) == (agent, [{**blocks[0], "y": 0}])
            outside = page.ask("arrange", agent=agent | {"x": 20}, blocks=blocks)
            assert "within the room" in outside["message"]
            assert "cannot stand" in page.ask("arrange", agent=agent, blocks=[blocks[0] | {"x": x0, "z": 0}])["message"]
            page.send("start")
            events = page.play()
            assert events[0]["state"]["agent"] == agent
            assert PlanTree.from_json(json.loads(exported(page, events[0]["act"]))).success
            assert "before a run" in page.ask("arrange", agent=agent, blocks=blocks)["message"]

    def test_a_person_drives_and_their_game_is_a_plan(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("stack blue")
            assert "take over first" in page.ask("act", action="turn left")["message"]
            begun = page.ask("start", drive=True)
            assert begun["player"] == "you"
            turned = page.ask("act", action="turn left")
            assert turned["state"]["agent"]["facing"] != begun["state"]["agent"]["facing"]
            assert 'Did you mean "turn left"' in page.ask("act", action="turn lift")["message"]
            plan = json.loads(exported(page, begun["act"]))
            assert [decision["action"] for decision in plan["root"]["decisions"]] == ["turn left"]
            page.send("instruct", instruction="stack blue")
            assert page.play()[-1]["patch"]["outcome"] == "achieved"
            assert "take over first" in page.ask("act", action="turn left")["message"]

    def test_two_players_are_compared_on_the_same_game(self, server: Server) -> None:
        with server.page() as page:
            game = page.set_up("find blue", "oracle", "random")
            assert [lane["player"] for lane in game["lanes"]] == ["oracle", "random"]
            assert game["lanes"][0]["state"] == game["lanes"][1]["state"]
            page.send("speed", steps=60.0)
            page.send("start")
            ended: dict[int, dict[str, Any]] = {}
            while len(ended) < 2:
                event = page.receive()
                if event.get("ended"):
                    ended[event["lane"]] = event
            assert ended[0]["patch"]["outcome"] == "achieved"


class TestKeeping:
    def test_every_kind_of_export_is_what_it_says(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("get blue")
            page.send("start")
            act = page.play()[0]["act"]
            assert exported(page, act, "svg").startswith(b"<svg")
            assert exported(page, act, "gif").startswith(b"GIF89a")
            whole = exported(page, act, "html").decode()
            assert whole.startswith("<!doctype html>")
            assert "/page/" not in whole
            assert "no longer kept" in page.ask("export", act=99, kind="json")["message"]

    def test_a_game_is_kept_in_the_gallery_and_opened_again(self, server: Server) -> None:
        with server.page() as page:
            page.set_up("find red")
            page.send("start")
            events = page.play()
            saved = page.ask("save", act=events[0]["act"])
            assert saved["name"] == "find-red-oracle-seed-3-1.json"
            cards = page.ask("gallery")["games"]
            assert saved["name"] in [card["name"] for card in cards]
            reel = page.ask("open", name=saved["name"])
            assert reel["plan"]["root"] == plan_of(events)
            assert [moment["sentence"] for moment in reel["moments"]] == [event["sentence"] for event in events]
            assert [reel["frames"][moment["step"]] for moment in reel["moments"]] == [
                event["frame"] for event in events
            ]
            assert [reel["states"][moment["step"]] for moment in reel["moments"]] == [
                event["state"] for event in events
            ]


class TestTabs:
    def test_the_grammar_of_a_task_is_told(self, server: Server) -> None:
        with server.page() as page:
            told = page.ask("grammar", agent="stacker", instruction="stack blue", level=3)
            names = [state["name"] for state in told["states"]]
            assert names == ["start", "get blue", "find blue", "put blue"]
            assert [(step["from"], step["to"]) for step in told["steps"]] == [(0, 1), (1, 2), (2, 3)]
            assert "no grammar" in page.ask("grammar", agent="oracle", instruction="stack blue", level=1)["message"]
            assert "Levels 1 to 3" in page.ask("grammar", agent="stacker", instruction="stack blue", level=9)["message"]

    def test_there_may_be_no_runs(self, server: Server) -> None:
        with server.page() as page:
            assert page.ask("runs")["runs"] == []
            assert "There is no run" in page.ask("curves", run="paper-0")["message"]


class TestSafety:
    @pytest.mark.parametrize(
        "path",
        [
            "/page/../session.py",
            "/page/%2e%2e/session.py",
            "/page/..%2fsession.py",
            "/page//etc/passwd",
            "/page/%2fetc%2fpasswd",
            "/../../etc/passwd",
            "/page/style.css%00",
            "/docs",
            "/openapi.json",
            "/page/",
        ],
    )
    def test_nothing_outside_of_the_page_is_served(self, server: Server, path: str) -> None:
        with socket.create_connection(
            ("127.0.0.1", server.port), timeout=60
        ) as connection:  # a client that cleans nothing up
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        status = int(answer.split()[1])
        assert status in (400, 404), answer[:200]
        assert b"root:" not in answer
        assert b"import" not in answer

    def test_the_page_comes_with_a_policy_that_keeps_it_to_itself(self, server: Server) -> None:
        for name in ("", *(f"page/{name}" for name in page_files())):
            answer = httpx.get(f"{server.address}/{name}", timeout=60)
            assert answer.status_code == 200
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
        assert httpx.post(server.address, timeout=60).status_code == 405

    def test_foreign_pages_and_names_are_refused(self, server: Server) -> None:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            assert httpx.get(server.address, headers=headers, timeout=60).status_code == 403
        for origin in ("http://evil.example", "null"):
            with pytest.raises(InvalidStatus), server.page(origin):
                pass

    def test_what_is_no_message_is_refused_and_the_page_goes_on(self, server: Server) -> None:
        with server.page() as page:
            for text in (
                "",
                "{",
                "[]",
                '{"type": "setup"}',
                '{"type": "arrange"}',
                "\x00",
                '{"type":"setup","seed":NaN}',
            ):
                page.connection.send(text)
                assert page.receive()["type"] == "error"
            page.connection.send(b"\xff\xfe")
            assert page.receive()["type"] == "error"
            for early in ("start", "pause", "resume", "step"):
                page.send(early)
            assert "set one up first" in page.receive()["message"]
            assert page.set_up()["type"] == "game"

    def test_a_message_that_is_too_long_ends_its_connection_alone(self, server: Server) -> None:
        with server.page() as other, server.page() as page:
            page.connection.send("x" * 1_000_000)
            with pytest.raises(ConnectionClosed):
                page.receive()
            assert other.set_up()["type"] == "game"

    def test_limits_hold_for_each_connection(self, strict_server: Server) -> None:
        with strict_server.page() as page, strict_server.page() as other:
            with pytest.raises(ConnectionClosed) as refused, strict_server.page():
                pass
            assert refused.value.rcvd is not None
            assert refused.value.rcvd.code == 1013
            page.set_up("find blue")
            for _ in range(3):
                page.send("start")
                page.play()
            assert "load it anew" in page.ask("start")["message"]
            assert "no longer kept" in page.ask("export", act=0, kind="json")["message"]
            for _ in range(5):
                other.connection.send("nonsense")
            assert until_closed(other) == 1008
            assert page.set_up("find red")["type"] == "game"

    def test_a_flood_is_cut_off(self, strict_server: Server) -> None:
        with strict_server.page() as page:
            with suppress(ConnectionClosed):
                for _ in range(2000):
                    page.send("pause")
            assert until_closed(page) == 1008
        with strict_server.page() as page:
            assert page.set_up("find blue")["type"] == "game"


def until_closed(page: Page) -> int:
    """The code with which the server ends a connection."""
    while True:
        try:
            page.receive()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 0


def test_fifty_people_at_once_all_see_their_own_game_to_its_end(server: Server) -> None:
    with server.page() as page:  # so that everything is compiled
        page.set_up("get blue")
        page.send("start")
        expected = page.play()[-1]["sentence"]
    told: list[str] = []

    def person(number: int) -> None:
        with server.page() as page:
            if number % 10 == 9:  # some misbehave, and leave in the middle
                page.connection.send("nonsense")
                page.set_up("stack blue", "random")
                page.send("start")
                return
            page.set_up("get blue")
            page.send("start")
            told.append(page.play()[-1]["sentence"])

    people = [threading.Thread(target=person, args=(number,)) for number in range(50)]
    for one in people:
        one.start()
    for one in people:
        one.join(400)
    assert told == [expected] * 45
    deadline = time.monotonic() + 30
    while server.house.connections and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.house.connections == 0
