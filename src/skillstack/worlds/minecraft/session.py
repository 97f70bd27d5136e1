"""The processes behind a Minecraft world: the bridge, and the embedded server unless another one is joined.

All worlds of a process share one bridge for each server. A world leases plots, a player and a set of rooms each. The
processes end with the last lease, and whatever happens to us they end when our side of their standard input is closed.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from time import monotonic
from typing import IO, Any

from skillstack.errors import SkillstackError

BRIDGE = Path(__file__).parent / "bridge"
VIEWER = BRIDGE / "node_modules" / "prismarine-viewer"
FARTHEST_VIEW = 8  # chunks, for the largest rooms there are
START_SECONDS = 120.0  # a cold start on a busy machine
END_SECONDS = 2.0
SIGN_IN_SECONDS = 600.0  # that signing in with an account may take, as somebody may have to open a page first

Answer = dict[str, Any]


class _Process:
    """A Node program that is told lines and says lines."""

    def __init__(self, what: str, script: str, *arguments: str, speaks: str) -> None:
        """It `speaks` on "stdout" or "stderr"; the other stream is kept for its last words, or thrown away."""
        self.what = what
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        other = {"stdout": "stderr", "stderr": "stdout"}[speaks]
        streams: dict[str, Any] = {speaks: subprocess.PIPE, other: self._words}
        command = [_node(), str(BRIDGE / script), *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, **streams)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        stream = getattr(self._process, speaks)
        Thread(target=self._listen, args=(stream,), daemon=True, name=f"skillstack-{script}").start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _listen(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(b"")

    def say(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SkillstackError(f"{self.what} ended unexpectedly{self._last_words()}.") from error

    def hear(self, seconds: float) -> Answer:
        """The next answer, a line of JSON. Notices are for the user; anything else that is said is passed over."""
        until = monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(until - monotonic(), 0.0))
            except Empty:
                raise SkillstackError(f"{self.what} did not answer within {seconds:g} seconds.") from None
            if not line:
                raise SkillstackError(f"{self.what} ended unexpectedly{self._last_words()}.")
            if line.startswith(b"{"):
                answer: Answer = json.loads(line)
                if "notice" not in answer:
                    return answer
                sys.stderr.write(answer["notice"] + "\n")

    def _last_words(self) -> str:
        self._words.seek(0)
        lines = [line.strip() for line in self._words.read().decode(errors="replace").splitlines()]
        errors = [line for line in lines if "Error" in line]
        return f" ({errors[-1]})" if errors else ""

    def end(self) -> None:
        """Ask it to end by closing its standard input, and make it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(END_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._words.close()


@dataclass
class Session:
    """A connection to a server, embedded or not."""

    server: tuple[str, int] | None
    """The one to join, or None for our own."""
    account: str | None = None
    """The mail address of a Microsoft account to join with; without one the server must be in offline mode."""
    patience: float = 60.0
    """Seconds that a request may take."""
    generation: int = 0
    """How often the processes were started: a world whose games were built in an earlier one must build them anew."""
    address: tuple[str, int] | None = None
    """Where the server is, once it was found or started."""
    leased: set[int] = field(default_factory=set)
    _processes: list[_Process] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)
    _count: int = 0

    def pids(self) -> list[int]:
        """Of the bridge, and of the embedded server if there is one."""
        return [process.pid for process in self._processes]

    def ask(self, request: Mapping[str, Any], seconds: float | None = None) -> Answer:
        """The bridge's answer, or a clear error; then the processes are of no use any more."""
        with self._lock:
            if not self._processes:
                self.start()
            self._count += 1
            bridge = self._processes[0]
            bridge.say({"id": self._count, **request})
            answer = bridge.hear(self.patience if seconds is None else seconds)
            if "error" in answer:
                raise SkillstackError(answer["error"])
            assert answer["id"] == self._count, "the bridge answers in order"
            return answer

    def start(self) -> None:
        """Start the processes, anew if need be."""
        with self._lock:
            self.stop()
            try:
                self.address = self.server or self._start_server()
                account = [] if self.account is None else [self.account, str(SIGN_IN_SECONDS)]
                bridge = _Process(
                    "The Minecraft bridge", "bridge.js", *map(str, self.address), *account, speaks="stdout"
                )
                self._processes.insert(0, bridge)
                self.generation += 1
                self.ask({"do": "hello"}, START_SECONDS)
            except BaseException:
                self.stop()
                raise

    def _start_server(self) -> tuple[str, int]:
        server = _Process("The embedded Minecraft server", "server.js", str(FARTHEST_VIEW), speaks="stderr")
        self._processes.append(server)
        return "127.0.0.1", int(server.hear(START_SECONDS)["port"])

    def stop(self) -> None:
        with self._lock:
            while self._processes:
                self._processes.pop(0).end()

    @property
    def joining_seconds(self) -> float:
        """What a request may take for which players have to join first."""
        return self.patience if self.account is None else self.patience + SIGN_IN_SECONDS

    def lease(self, count: int) -> list[int]:
        """So many plots that nobody else plays on."""
        with self._lock:
            if self.account is not None and len(self.leased) + count > 1:
                raise SkillstackError(
                    f"The account {self.account} can play one game at a time, not {len(self.leased) + count}: say "
                    "--games 1, or join a server in offline mode."
                )
            free = (plot for plot in range(len(self.leased) + count) if plot not in self.leased)
            plots = [plot for plot, _ in zip(free, range(count), strict=False)]
            self.leased.update(plots)
            return plots

    def release(self, plots: list[int]) -> None:
        """Give plots back; a server that is not ours is left as it was found."""
        with self._lock:
            self.leased.difference_update(plots)
            if self.server and self._processes:
                try:
                    self.ask({"do": "leave", "plots": plots})
                except SkillstackError:
                    self.stop()  # nothing is left to be tidied
            if not self.leased:
                self.stop()


_SESSIONS: dict[tuple[int, str | None], Session] = {}  # by process, as children must not use their parent's


def session_for(server: str | None) -> Session:
    """The session of this process with a server, "HOST:PORT", "ACCOUNT@HOST:PORT", or None for the embedded one."""
    check_installed()
    key = (os.getpid(), server)
    if key not in _SESSIONS:
        _SESSIONS[key] = Session(None) if server is None else _session_with(server)
    return _SESSIONS[key]


def _session_with(server: str) -> Session:
    account, at, address = server.rpartition("@")  # an account's name has one, too
    if at and not account:
        raise SkillstackError(f'"{server}" names no account before the @: say ACCOUNT@HOST:PORT, or HOST:PORT alone.')
    return Session(_address(address), account or None)


@atexit.register
def _stop_all() -> None:
    for (process, _), session in _SESSIONS.items():
        if process == os.getpid():
            session.stop()


def check_installed() -> None:
    """Say how to get what is missing."""
    _node()
    if not VIEWER.is_dir():
        raise SkillstackError(
            f'Minecraft needs packages from npm: run "make minecraft", or "npm ci --ignore-scripts" in {BRIDGE}.'
        )


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        raise SkillstackError('Minecraft needs Node.js, version 18 or later: install it, then run "make minecraft".')
    return node


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise SkillstackError(f'A server is named as HOST:PORT, for example "localhost:25565", not "{server}".')
    return host, int(port)
