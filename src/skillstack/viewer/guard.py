"""Who may speak to the server: pages that it served itself, under a name that no one else can give it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """Looks at Host and Origin before anything else does, for HTTP and WebSocket alike.

    A foreign page can make a browser call this machine, and can give this machine's address a name of its own; but it
    cannot change what the browser writes into these two headers.
    """

    def __init__(self, app: App, names: Iterable[str] = (), anywhere: bool = False) -> None:
        """`names` are hosts beyond this machine's own; `anywhere` lets any bare address pass, which has no owner."""
        self._app, self._anywhere = app, anywhere
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or refuse."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif self.allows(scope):
            await self._app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = b"This address belongs to the viewer of Skillstack, which answers its own page alone.\n"
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": body})

    def allows(self, scope: Scope) -> bool:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if len(hosts) != 1 or not self._is_ours(hosts[0]) or len(origins) > 1:
            return False
        if not origins:
            return bool(scope["type"] == "http")  # a browser always tells the origin of a WebSocket
        return origins[0].lower() in (f"http://{hosts[0].lower()}", f"https://{hosts[0].lower()}")

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if urlsplit(f"//{host}").netloc != host or "@" in host:
                return False
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            address = ip_address(name)
        except ValueError:
            return False
        return self._anywhere or address.is_loopback


def _with_headers(send: Send) -> Send:
    async def wrapped(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return wrapped
