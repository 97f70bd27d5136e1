"""The server: it hands out the page's files and holds one WebSocket for each page."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import PurePath
from typing import Any

import torch
import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect

from skillstack.errors import SkillstackError
from skillstack.viewer.export import TYPES, page_files
from skillstack.viewer.guard import Guard
from skillstack.viewer.house import House, ViewerLimits
from skillstack.viewer.messages import MAX_MESSAGE, read_message
from skillstack.viewer.session import Event, Send, Session

TRY_AGAIN_LATER, NOT_ALLOWED = 1013, 1008
"""Codes with which a WebSocket is closed."""

_log = logging.getLogger(__name__)


def make_app(house: House, names: Sequence[str] = (), anywhere: bool = False) -> FastAPI:
    """The viewer as an ASGI application; `names` and `anywhere` are the guard's."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        house.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    app.add_middleware(Guard, names=names, anywhere=anywhere)
    pages = page_files()

    @app.get("/")
    async def index() -> Response:
        return Response(pages["index.html"], media_type=TYPES[".html"])

    @app.get("/page/{name}")
    async def page(name: str, request: Request) -> Response:
        if name not in pages:
            return Response("There is no such file.\n", status_code=404, media_type="text/plain")
        return Response(pages[name], media_type=TYPES[PurePath(name).suffix], headers={"cache-control": "no-cache"})

    @app.websocket("/socket")
    async def stream(connection: WebSocket) -> None:
        await connection.accept()
        if house.connections >= house.limits.connections:
            await connection.close(TRY_AGAIN_LATER, "Too many pages are open; close one.")
            return
        house.connections += 1
        try:
            await _serve(house, connection)
        except WebSocketDisconnect:
            pass
        finally:
            house.connections -= 1

    return app


async def _serve(house: House, connection: WebSocket) -> None:
    """Talk to one page until it leaves or misbehaves."""

    async def send(event: Event) -> None:
        try:
            await connection.send_text(json.dumps(event))
        except RuntimeError as error:  # the connection is closed already
            raise WebSocketDisconnect(1006) from error

    session = Session(house, send)
    await send(house.hello())
    playing = asyncio.create_task(_keep_playing(session, send))
    allowance, wrong = _Allowance(house.limits), 0
    try:
        while wrong <= house.limits.wrong and allowance.take():
            packet = await connection.receive()
            if packet["type"] == "websocket.disconnect":
                return
            try:
                message = read_message(packet.get("text") or "")
            except SkillstackError as error:
                wrong += 1
                await send({"type": "error", "about": "message", "message": str(error)})
                continue
            await _guarded(session.handle(message), send)
        await connection.close(NOT_ALLOWED, "Too many messages, or too many that are none.")
    finally:
        playing.cancel()
        with suppress(asyncio.CancelledError):
            await playing
        with suppress(RuntimeError):  # the house is closed already, and everyone has left
            await session.close()


async def _keep_playing(session: Session, send: Send) -> None:
    with suppress(WebSocketDisconnect):
        while True:
            await _guarded(session.play(), send)


async def _guarded(work: Coroutine[Any, Any, None], send: Send) -> None:
    """What goes wrong in one connection is told to it and to the terminal, and to nobody else."""
    try:
        await work
    except WebSocketDisconnect:
        raise
    except SkillstackError as error:  # a world that was lost says why
        await send({"type": "error", "about": "viewer", "message": str(error)})
    except Exception:
        _log.exception("The viewer failed to answer a page.")
        words = "Something went wrong in the viewer; the terminal that it runs in has the details."
        await send({"type": "error", "about": "viewer", "message": words})


class _Allowance:
    """A bucket of messages that fills up again with time."""

    def __init__(self, limits: ViewerLimits) -> None:
        self._limits, self._left = limits, limits.burst
        self._seen = asyncio.get_running_loop().time()

    def take(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._left = min(self._left + (now - self._seen) * self._limits.rate, self._limits.burst) - 1
        self._seen = now
        return self._left >= 0


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there, or a sentence why not."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)  # at once, so that a browser that is early waits in place of being refused
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise SkillstackError(
            f"The viewer cannot listen on {host}, port {port} ({why}); choose another with --host or --port."
        ) from error
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(house: House, listener: socket.socket, names: Sequence[str] = ()) -> None:
    """Serve until interrupted."""
    torch.set_num_threads(1)  # each game is small; threads that fight over cores are slower
    host = listener.getsockname()[0]
    app = make_app(house, names, anywhere=not is_loopback(host))
    config = uvicorn.Config(
        app, log_level="warning", ws_max_size=MAX_MESSAGE, server_header=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listener])
