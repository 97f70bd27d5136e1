"""How smooth the viewer is: moments a second with an agent, and the time to the first paint, on this machine.

    python benchmarks/viewer.py [--agent AGENT]

The goals are 30 moments a second and a first paint within a second, on two cores.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import tempfile
import time
from pathlib import Path

import torch
from playwright.sync_api import sync_playwright

from skillstack.viewer.house import House, open_house
from skillstack.viewer.lane import Lane
from skillstack.worlds.rooms import RoomsConfig

GOAL, PAINT_GOAL = 30.0, 1.0


def played(house: House, name: str, moments: int = 300) -> float:
    """Moments a second that a lane can play, draw and put into words, without a network between."""
    lane = Lane(house.candidate(name), RoomsConfig())
    task = lane.parse("stack blue")
    seed, done, seconds = 0, 0, 0.0
    while done < moments:
        lane.begin(task, seed, None)
        begin = time.perf_counter()
        while lane.advance() is not None:
            done += 1
        seconds += time.perf_counter() - begin
        seed += 1
    return done / seconds


def in_browser(agent: str) -> tuple[float, float]:
    """Moments a second that a page draws at full speed, and seconds to its first paint."""
    serving = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "screenshots.py"))["serving"]
    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        serving([agent], Path(folder) / "gallery", Path(folder) / "runs") as address,
    ):
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(300_000)
        page.goto(address)
        page.wait_for_selector("[data-thing=agent]")
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        page.evaluate(
            "() => { window.times = []; new MutationObserver(() => window.times.push(performance.now()))"
            ".observe(document.getElementById('clock'), { childList: true }); }"
        )
        page.select_option("#speed", "60")
        rates = []
        for seed in range(3):
            page.fill("#seed", str(seed))
            page.dispatch_event("#seed", "change")
            page.evaluate("window.times.length = 0")
            page.fill("#instruction", "find blue")
            page.press("#instruction", "Enter")
            page.wait_for_selector("body[data-live=true]")
            page.wait_for_selector("body[data-live=false]")
            times = page.evaluate("window.times")
            rates.append(((len(times) - 2), times[-1] - times[1]))
        browser.close()
    return 1000 * sum(count for count, _ in rates) / sum(length for _, length in rates), paint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", default="shipped")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        house = open_house([args.agent], Path(folder), Path(folder))
        alone = played(house, next(iter(house.agents)))
    print(f"{args.agent}: {alone:.0f} moments a second played, drawn and put into words")
    rate, paint = in_browser(args.agent)
    print(f"{rate:.0f} moments a second on the page at a pace of 60 (goal {GOAL:.0f})")
    print(f"first paint after {paint:.2f} s (goal {PAINT_GOAL:.0f})")


if __name__ == "__main__":
    main()
