"""Only the viewer's own page may speak to it."""

from __future__ import annotations

import pytest

from skillstack.viewer.guard import Guard


async def nothing(scope: object, receive: object, send: object) -> None:
    """An application that does nothing."""


def allows(host: str | None, origin: str | None = None, kind: str = "http", **settings: object) -> bool:
    headers = [(b"host", host.encode())] if host is not None else []
    headers += [(b"origin", origin.encode())] if origin is not None else []
    return Guard(nothing, **settings).allows({"type": kind, "headers": headers})  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["localhost", "localhost:8421", "127.0.0.1:9", "[::1]:8421", "LOCALHOST:80"])
def test_this_machine_is_called_by_its_own_names(host: str) -> None:
    assert allows(host)
    assert allows(host, f"http://{host}", "websocket")


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "a@localhost",
        "[::1",
        "localhost/x",
    ],
)
def test_other_names_are_refused(host: str | None) -> None:
    assert not allows(host)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "file://", "http://localhost:8421.evil.example"]
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_pages_of_others_are_refused(origin: str, kind: str) -> None:
    assert not allows("localhost:8421", origin, kind)


def test_a_websocket_must_say_where_it_comes_from() -> None:
    assert not allows("localhost:8421", None, "websocket")


def test_where_the_server_is_open_to_others_any_bare_address_and_named_hosts_are_its_own() -> None:
    assert allows("192.0.2.7:8421", anywhere=True)
    assert not allows("evil.example", anywhere=True)
    assert allows("viewer.example", names=["viewer.example"])
    assert allows("viewer.example", "https://viewer.example", "websocket", names=["Viewer.Example"])


def test_two_hosts_are_one_too_many() -> None:
    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    assert not Guard(nothing).allows({"type": "http", "headers": headers})
