"""`skillstack view` and `skillstack play`: load, listen, open the page, and serve until interrupted."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from rich.console import Console

from skillstack.errors import SkillstackError
from skillstack.viewer.house import open_house
from skillstack.viewer.screen import Place
from skillstack.viewer.server import bind, is_loopback, serve


@dataclass(frozen=True)
class Launch:
    """How the viewer is started."""

    agents: Sequence[str]
    """Who plays, the first at first."""
    host: str
    port: int
    names: Sequence[str]
    """Further names under which the server may be called."""
    gallery: Path
    runs: Path
    browser: bool
    """Whether to open the page in a browser."""
    page: dict[str, str]
    """What the page should show first."""
    place: Place = field(default_factory=Place)
    """Where games are played."""


def launch(what: Launch, console: Console) -> None:
    """Serve until interrupted."""
    if what.place.server and "@" in what.place.server:
        raise SkillstackError(
            "The viewer plays several games at once, and an account can play one: leave the account out."
        )
    house = open_house(what.agents, what.gallery, what.runs, place=what.place)
    listener = bind(what.host, what.port)
    if not is_loopback(what.host):
        console.print(
            f"Warning: everyone who can reach {what.host} can now use this viewer. It asks for no password; "
            "leave --host away to keep it to this machine.",
            style="yellow",
            highlight=False,
        )
    waiting = "a player joins Minecraft" if what.place.costs_players else "the very first time, the world is compiled"
    with console.status(f"Getting ready; {waiting}"):
        house.warm_up()
    host = f"[{what.host}]" if ":" in what.host else what.host
    address = f"http://{host}:{listener.getsockname()[1]}/"
    if what.page:
        address += f"#{urlencode(what.page)}"
    console.print(f"The viewer is at {address} (Ctrl-C stops it).", highlight=False, soft_wrap=True)
    if what.browser:
        opener = threading.Timer(0.5, webbrowser.open, [address])
        opener.daemon = True
        opener.start()
    serve(house, listener, what.names)
