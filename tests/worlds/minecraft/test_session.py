"""Processes that die, hang or refuse: a clean restart or a clear error, and never an orphan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from minecraft_helpers import HERE, PUT_DOWN, STANDARD, seen_by_an_onlooker

from skillstack import Instruction
from skillstack.errors import SkillstackError
from skillstack.worlds.minecraft import MinecraftWorld, renderer, session
from skillstack.worlds.rooms.layout import EAST, HELD, make_state


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def all_end(pids: list[int], seconds: float = 30.0) -> bool:
    until = monotonic() + seconds
    while any(map(is_running, pids)) and monotonic() < until:
        sleep(0.1)
    return not any(map(is_running, pids))


@pytest.fixture
def world(minecraft: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[MinecraftWorld]:
    """A world with a session of its own, so that killing it hurts no other test."""
    monkeypatch.setattr(session, "_SESSIONS", {})
    world = MinecraftWorld(num_games=2)
    yield world
    pids = world._session.pids()
    world.close()
    assert all_end(pids)


class TestAfterAnAccident:
    """All games go on where they were, and nothing of the old processes is left."""

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
    @pytest.mark.parametrize("which", ["bridge", "server"])
    def test_of(self, which: str, number: signal.Signals, world: MinecraftWorld) -> None:
        world.restore(make_state(STANDARD, (2, 2, EAST), {(3, 2): "blue"}, held="blue"), [0])
        world._session.patience = 10.0  # who hangs is waited for, but not for ever
        before, pids = world.snapshot([1]), world._session.pids()
        os.kill(pids[("bridge", "server").index(which)], number)
        world.step([PUT_DOWN], [0])  # puts are answered by the server, so they notice that it is gone
        assert world._session.generation == 2
        stack = world.description.vocabulary.encode([Instruction("stack", "blue")])
        assert world.achieved(stack, [0]).all()
        np.testing.assert_array_equal(world.snapshot([1]), before)
        assert all_end(pids)


def other_server(kind: str) -> session._Process:
    return session._Process(
        "The other server", str(HERE / "other_server.js"), str(session.BRIDGE), kind, speaks="stderr"
    )


@pytest.mark.usefixtures("minecraft")
class TestAnExistingServer:
    def test_is_played_on_and_left_as_it_was_and_its_end_is_told(self) -> None:
        server = session._Process("A server", "server.js", "4", speaks="stderr")
        address = f"127.0.0.1:{server.hear(60)['port']}"
        try:
            world = MinecraftWorld(server=address)
            world.restore(make_state(STANDARD, (2, 2, EAST), {(3, 2): "blue"}, held="red"))
            world.step([PUT_DOWN])
            assert world.state["agent"][0, HELD] == -1
            world.close()
            assert seen_by_an_onlooker(("127.0.0.1", int(address.split(":")[1])), 0) == []
            again = MinecraftWorld(server=address)
            pids = again._session.pids()
            assert len(pids) == 1
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(SkillstackError, match="No Minecraft server answers"):
                again.reset(np.zeros((1, 2), dtype=np.int64), [3])
            assert all_end(pids)
        finally:
            server.end()

    @pytest.mark.parametrize(
        ("kind", "message"),
        [("old", "is of version 1.12.2; version 1.16.5 is needed"), ("strict", "make it an operator")],
    )
    def test_that_does_not_fit_is_refused_with_the_reason(self, kind: str, message: str) -> None:
        server = other_server(kind)
        try:
            with pytest.raises(SkillstackError, match=message):
                MinecraftWorld(server=f"127.0.0.1:{server.hear(60)['port']}")
        finally:
            server.end()


class TestAnAccount:
    def test_is_named_before_the_server(self) -> None:
        found = session._session_with("alex@example.org@localhost:25565")
        assert (found.account, found.server) == ("alex@example.org", ("localhost", 25565))
        assert found.joining_seconds > found.patience
        assert session._session_with("localhost:25565").account is None
        with pytest.raises(SkillstackError, match="names no account before the @"):
            session._session_with("@localhost:25565")

    @pytest.mark.usefixtures("minecraft")
    def test_plays_one_game_at_a_time(self) -> None:
        with pytest.raises(SkillstackError, match="alex can play one game at a time, not 2: say --games 1"):
            MinecraftWorld(num_games=2, server="alex@127.0.0.1:1")

    @pytest.mark.usefixtures("minecraft")
    def test_is_what_a_player_signs_in_with(self) -> None:
        """And a server that wants one is understood."""
        script = """
            const { login, plain } = require(process.argv[1] + "/player")
            const told = []
            const account = { name: "alex@example.org", announce: notice => told.push(notice) }
            const { onMsaCode, ...options } = login("skillstack0", account)
            onMsaCode({ message: "open a page" })
            const refused = plain('{"translate": "multiplayer.disconnect.unverified_username"}')
            console.log(JSON.stringify([options, told, login("skillstack0"), refused, plain({ text: "Full" })]))
        """
        done = subprocess.run(["node", "-e", script, str(session.BRIDGE)], capture_output=True, text=True, check=True)
        options, told, offline, refused, full = json.loads(done.stdout)
        assert options == {"username": "alex@example.org", "auth": "microsoft"}
        assert told == ["To play as alex@example.org: open a page"]
        assert offline == {"username": "skillstack0", "auth": "offline"}
        assert refused.endswith("It asks for an account: say --server ACCOUNT@HOST:PORT")
        assert full == "Full"

    @pytest.mark.usefixtures("minecraft")
    def test_is_told_what_to_do_to_sign_in(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Whatever the bridge says to the user on the way to its answer."""
        script = tmp_path / "bridge.js"
        script.write_text("""console.log('{"notice": "Open a page."}'); console.log('{"id": 1}')""")
        bridge = session._Process("A bridge", str(script), speaks="stdout")
        try:
            assert bridge.hear(60) == {"id": 1}
        finally:
            bridge.end()
        assert capsys.readouterr().err == "Open a page.\n"


@pytest.mark.usefixtures("minecraft")
def test_nothing_outlives_a_program_that_is_killed() -> None:
    program = (
        "import os, signal\n"
        "from skillstack.worlds.minecraft import MinecraftWorld\n"
        "world = MinecraftWorld()\n"
        "print(*world._session.pids(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    assert all_end(pids)


class TestWhatIsMissing:
    """One sentence says how to get it."""

    def test_packages(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr(session, "VIEWER", tmp_path / "none")
        with pytest.raises(SkillstackError, match="make minecraft"):
            MinecraftWorld()

    def test_node(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(SkillstackError, match=r"Node\.js"):
            MinecraftWorld()

    def test_moderngl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "moderngl", None)
        with pytest.raises(SkillstackError, match=r"skillstack\[minecraft\]"):
            renderer.open_context.__wrapped__()

    def test_egl(self, monkeypatch: pytest.MonkeyPatch) -> None:
        moderngl = pytest.importorskip("moderngl")

        def fail(**settings: object) -> None:
            raise Exception("libEGL.so.1 not loaded")  # as moderngl does

        monkeypatch.setattr(moderngl, "create_context", fail)
        with pytest.raises(SkillstackError, match="libegl1"):
            renderer.open_context.__wrapped__()
