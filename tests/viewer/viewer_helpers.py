"""A viewer that really listens on loopback, and people to connect to it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import uvicorn
from websockets.sync.client import ClientConnection, connect

from skillstack import make_stages
from skillstack.policies.agent import Agent
from skillstack.viewer.house import House
from skillstack.viewer.messages import MAX_MESSAGE
from skillstack.viewer.server import bind, make_app
from skillstack.worlds.rooms import RoomsConfig

torch.set_num_threads(1)


class Server:
    """A viewer in a thread of its own."""

    def __init__(self, house: House) -> None:
        self.house = house
        self._listener: socket.socket = bind("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        config = uvicorn.Config(make_app(house), log_level="warning", ws_max_size=MAX_MESSAGE)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)

    @contextmanager
    def page(self, origin: str | None = None) -> Iterator[Page]:
        """Someone connected; their page has said hello already."""
        address = f"ws://127.0.0.1:{self.port}/socket"
        with connect(address, origin=origin or self.address, open_timeout=60, max_size=None) as connection:  # type: ignore[arg-type]
            yield Page(connection)


class Page:
    """The other end of a connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.hello = self.receive()

    def send(self, type: str, **content: Any) -> None:  # noqa: A002
        self.connection.send(json.dumps({"type": type, **content}))

    def receive(self, timeout: float = 300.0) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.connection.recv(timeout))
        return event

    def ask(self, type: str, **content: Any) -> dict[str, Any]:  # noqa: A002
        self.send(type, **content)
        return self.receive()

    def set_up(self, instruction: str = "stack blue", *agents: str, **settings: Any) -> dict[str, Any]:
        return self.ask("setup", instruction=instruction, agents=list(agents) or ["oracle"], seed=3, **settings)

    def play(self) -> list[dict[str, Any]]:
        """Everything up to the end of the game that has begun."""
        self.send("speed", steps=60.0)
        events = [self.receive()]
        while not events[-1].get("ended"):
            events.append(self.receive())
        return events


def make_agent(folder: Path) -> Path:
    """An untrained agent whose grammar knows how to stack blue."""
    agent = Agent.create(RoomsConfig().description, make_stages(), shared_encoder=True, smoothing=0.1)
    tasks = {str(task): task for task in agent.vocabulary.tasks}
    words = agent.vocabulary.encode
    plans = {"stack": ("get", "find", "put"), "get": ("get",), "find": ("find",), "put": ("put",)}
    for grammar in agent.grammars[1:]:
        assert grammar is not None
        for task in grammar.tasks:
            steps = [f"{skill} {task.item}" for skill in plans[task.skill] if skill in grammar.base.skills]
            chain = grammar.call_state(words([tasks[step] for step in steps])) if steps else np.zeros(0, dtype=np.int64)
            for _ in range(5):
                grammar.update(words(task), [*chain.tolist(), *([] if steps else [grammar.act_state])])
    agent.save(folder)
    return folder


def turn(level: int, episodes: int, switched: bool = False, **windows: float) -> dict[str, Any]:
    """What a run writes after a turn."""
    return {
        "event": "turn", "level": level, "phase": "novel", "episodes": episodes, "steps": 10 * episodes,
        "reward": 0.5, "windows": windows, "novel phase begins": switched,
    }  # fmt: skip
