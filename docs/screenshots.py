"""Takes the viewer's pictures in the documentation: starts it, plays a game in a headless browser, and looks at it.

    python docs/screenshots.py [FOLDER] [--agent AGENT] [--world minecraft]

By default it writes the pictures that the pages show, into docs/images.
"""

from __future__ import annotations

import argparse
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from skillstack.viewer.house import open_house
from skillstack.viewer.screen import Place
from skillstack.viewer.server import bind, make_app
from skillstack.worlds.making import WorldName

SIZES = {"laptop": (1280, 800), "phone": (390, 844)}


@contextmanager
def serving(agents: list[str], gallery: Path, runs: Path, world: WorldName = "rooms") -> Iterator[str]:
    """The viewer on a free port, in a thread."""
    listener = bind("127.0.0.1", 0)
    house = open_house(agents, gallery, runs, place=Place(world))
    server = uvicorn.Server(uvicorn.Config(make_app(house), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)


def open_page(browser: Browser, address: str, size: str, scheme: str) -> Page:
    width, height = SIZES[size]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(300_000)
    page.goto(address)
    page.wait_for_selector("[data-thing=agent]")
    return page


def play(page: Page, instruction: str, seed: int) -> None:
    """Play a game to its end, and go back to just before it."""
    page.fill("#instruction", instruction)
    page.fill("#seed", str(seed))
    page.dispatch_event("#seed", "change")
    page.wait_for_selector(f"body[data-before=true][data-game='{instruction}, seed {seed}']")
    page.select_option("#speed", "60")
    page.click("#go")
    page.wait_for_selector("body[data-before=false][data-live=false] .act-title .how:not(:empty)")
    for _ in range(2):
        page.click("#back")
    page.mouse.move(5, 5)


def take_all(page: Page, name: Path) -> None:
    """The other tabs, two players side by side, and a person at the keys."""
    for tab in ("grammar", "learning", "gallery"):
        page.click(f"#tab-{tab}")
        page.wait_for_selector(f"#{tab} :is(svg.graph, svg.curves, .card, .sheet .quiet)")
        page.screenshot(path=f"{name}-{tab}.png", full_page=True)
    page.click("#tab-watch")
    page.select_option("#rival", "random")
    play(page, "stack blue", seed=4)
    page.screenshot(path=f"{name}-compare.png", full_page=True)
    page.select_option("#rival", "")
    page.wait_for_selector("[data-before=true]")
    page.click("#drive")
    page.wait_for_selector(".pad")
    page.screenshot(path=f"{name}-drive.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "images")
    parser.add_argument("--agent", default="shipped")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--world", choices=get_args(WorldName), default="rooms")
    parser.add_argument("--all", action="store_true", help="every tab, in both modes and at both sizes")
    args = parser.parse_args()
    views = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]
    where = "" if args.world == "rooms" else f"-{args.world}"
    with serving([args.agent], Path("gallery"), args.runs, args.world) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for size, scheme in views if args.all else [("laptop", "light"), ("phone", "dark")]:
            page = open_page(browser, address, size, scheme)
            play(page, "stack blue", seed=3)
            name = args.folder / f"viewer-{size}-{scheme}{where}"
            page.screenshot(path=f"{name}.png")
            if args.all:
                page.screenshot(path=f"{name}-whole.png", full_page=True)
                take_all(page, name)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
