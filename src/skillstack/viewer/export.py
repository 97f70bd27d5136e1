"""Games as files: the plan's JSON, its tree as SVG, the game as GIF, and a page of its own that needs no server."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from skillstack.rollout.plan import PlanTree
from skillstack.rollout.plan_gif import write_gif
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.plan_svg import plan_svg
from skillstack.rollout.replay import replay
from skillstack.viewer.reel import reel
from skillstack.viewer.screen import WorldOf, world_of

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""What the page is made of."""

_IMPORT = re.compile(r'from "\./([a-z_]+\.js)"')


@dataclass(frozen=True)
class File:
    """What the page offers to keep."""

    name: str
    mime: str
    data: bytes


def page_files() -> dict[str, bytes]:
    """All files of the page by name, read once: no name from outside ever becomes a path."""
    folder = files("skillstack.viewer") / "page"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if Path(entry.name).suffix in TYPES}


def export(tree: PlanTree, kind: str, find: WorldOf = world_of) -> File:
    """A game as a file of this kind; `find` gives the world to play it in again."""
    mime, write = _KINDS[kind]
    name = f"{tree.root.instruction} seed {tree.seed}".replace(" ", "-")
    return File(f"{name}.{kind}", mime, write(tree, find))


def _json(tree: PlanTree, find: WorldOf) -> bytes:
    return (tree.dumps() + "\n").encode()


def _svg(tree: PlanTree, find: WorldOf) -> bytes:
    return plan_svg(tree, replay(find(tree), tree, map_size=0)).encode()


def _gif(tree: PlanTree, find: WorldOf) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "game.gif"
        write_gif(path, tree, replay(find(tree), tree))
        return path.read_bytes()


def _html(tree: PlanTree, find: WorldOf) -> bytes:
    """The page with its style and scripts inside, and the game in place of a server."""
    parts = {name: data.decode() for name, data in page_files().items()}
    scripts = {name: _IMPORT.sub(r'from "skillstack/\1"', text) for name, text in parts.items() if name.endswith(".js")}
    imports = {
        f"skillstack/{name}": "data:text/javascript;base64," + base64.b64encode(text.encode()).decode()
        for name, text in scripts.items()
    }
    icon = "data:image/svg+xml;base64," + base64.b64encode(parts["icon.svg"].encode()).decode()
    head = (
        f"<style>\n{parts['style.css']}</style>\n"
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>\n'
        f'<script type="application/json" id="reel">{_inside_script(json.dumps(reel(tree, find)))}</script>\n'
        '<script type="module">import "skillstack/main.js";</script>'
    )
    page = parts["index.html"]
    for old, new in (
        ('<link rel="stylesheet" href="/page/style.css">', ""),
        ('<script type="module" src="/page/main.js"></script>', head),
        ('href="/page/icon.svg"', f'href="{icon}"'),
        ("<title>Skillstack</title>", f"<title>{escape(plan_sentence(tree))}</title>"),
    ):
        assert page.count(old) == 1, f"the page must have {old} once"
        page = page.replace(old, new)
    return page.encode()


def _inside_script(text: str) -> str:
    """JSON that cannot end the script that it stands in."""
    return text.replace("<", "\\u003c")


_KINDS: dict[str, tuple[str, Callable[[PlanTree, WorldOf], bytes]]] = {
    "json": ("application/json", _json),
    "svg": ("image/svg+xml", _svg),
    "gif": ("image/gif", _gif),
    "html": ("text/html", _html),
}
