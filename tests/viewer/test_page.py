"""The page in a real browser: Debian's Chromium, without a window, driven by Playwright."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from viewer_helpers import Server, turn

from skillstack.learning.run_folder import RunFolder
from skillstack.viewer.house import House

PATIENCE = 300_000
"""Milliseconds that something may take on a busy machine."""
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        words = "There is no Chromium here, so the page is not tested: `make browser` installs Debian's."
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=PATIENCE)
        yield running
        running.close()


class Watcher:
    """What a page did beside what it should: complaints on its console, and requests to other hosts."""

    def __init__(self, page: Page, address: str) -> None:
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        allowed = (address, address.replace("http", "ws"), "data:", "blob:", "file:")
        page.on(
            "request", lambda request: None if request.url.startswith(allowed) else self.foreign.append(request.url)
        )


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    page.set_default_timeout(PATIENCE)
    watcher = Watcher(page, server.address)
    page.goto(server.address)
    page.wait_for_selector("[data-thing=agent]")
    yield page
    assert watcher.complaints == []
    assert watcher.foreign == []
    page.close()


def choose(page: Page, seed: int, agent: str = "oracle", **settings: str) -> None:
    for name, value in {"agent": agent, **settings}.items():
        page.select_option(f"#{name}", value)
    page.fill("#seed", str(seed))
    page.dispatch_event("#seed", "change")


def tell(page: Page, instruction: str, speed: str = "60") -> None:
    page.select_option("#speed", speed)
    page.fill("#instruction", instruction)
    page.press("#instruction", "Escape")
    page.press("#instruction", "Enter")


def until_the_end(page: Page) -> None:
    page.wait_for_selector("body[data-live=false] .act-title .how:not(:empty)")


READ_TREE = """(element) => {
  const read = (node) => node.classList.contains("leaf")
    ? { step: Number(node.dataset.step), action: node.dataset.action || null,
        utterance: node.dataset.utterance || null, run: null }
    : { level: Number(node.dataset.level), instruction: node.dataset.instruction, outcome: node.dataset.outcome,
        first_step: Number(node.dataset.firstStep), last_step: Number(node.dataset.lastStep),
        decisions: [...node.querySelector(":scope > .below").children]
          .filter((one) => one.getAttribute("role") === "treeitem").map(read) };
  return read(element);
}"""


def drawn(page: Page) -> dict[str, Any]:
    """The tree that is to be seen, as JSON."""
    tree: dict[str, Any] = page.eval_on_selector(".branches > .run", READ_TREE)
    return tree


def bare(run: dict[str, Any]) -> dict[str, Any]:
    """A plan's run as far as it is drawn; a call is drawn as the run that it became."""
    return {
        **{key: run[key] for key in ("level", "instruction", "outcome", "first_step", "last_step")},
        "decisions": [
            bare(decision["run"])
            if decision["run"]
            else {key: decision[key] for key in ("step", "action", "utterance", "run")}
            for decision in run["decisions"]
        ],
    }


def export(page: Page, kind: str) -> Path:
    page.click("#keep summary")
    with page.expect_download() as download:
        page.click(f"[data-export={kind}]")
    return Path(download.value.path())


def test_an_instruction_is_typed_and_its_plan_grows_to_the_end(page: Page) -> None:
    choose(page, 3)
    tell(page, "stack blue", speed="3")
    page.wait_for_selector(".leaf")
    growing = page.locator(".leaf").count()
    page.select_option("#speed", "60")
    until_the_end(page)
    assert page.locator(".leaf").count() > growing
    expect(page.locator(".sentence")).to_contain_text("I stacked the blue blocks")
    expect(page.locator(".act-title .how")).to_have_text("✓ achieved")
    plan = json.loads(export(page, "json").read_text())
    assert drawn(page) == bare(plan["root"])
    assert plan["success"]


def test_a_plan_with_failures_is_drawn_as_it_was(page: Page) -> None:
    choose(page, 6, agent="random")
    tell(page, "stack blue")
    until_the_end(page)
    assert drawn(page) == bare(json.loads(export(page, "json").read_text())["root"])


def test_scrubbing_goes_back_in_all_views(page: Page) -> None:
    choose(page, 3)
    tell(page, "get blue")
    until_the_end(page)
    last = page.get_attribute(".view", "src")
    head = int(page.get_attribute("#scrubber", "max") or 0)
    page.focus("#scrubber")
    page.keyboard.press("Home")
    expect(page.locator("#clock")).to_have_text(f"0 / {head}")
    assert page.get_attribute(".view", "src") != last
    assert page.locator(".leaf:not(.future)").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.locator(".leaf:not(.future)").count() == 1
    expect(page.locator(".leaf.active")).to_have_count(1)
    page.keyboard.press("End")
    assert page.get_attribute(".view", "src") == last
    assert page.locator(".future").count() == 0


def test_a_block_is_dragged_and_the_agent_sees_it_there(page: Page) -> None:
    choose(page, 3, blocks="2")
    page.fill("#instruction", "get blue")
    page.wait_for_selector("body[data-game='get blue, seed 3']")
    expect(page.locator(".block")).to_have_count(2)
    block = page.locator(".block[data-item=blue]").first
    before, seen = block.get_attribute("data-cell"), page.get_attribute(".view", "src")
    box = page.locator(".block[data-item=blue] .face").first.bounding_box()
    tile = page.locator(".tile").first.bounding_box()
    assert box
    assert tile
    taken = set(page.eval_on_selector_all("[data-cell]", "all => all.map((one) => one.dataset.cell)"))
    x, z = (int(part) for part in str(before).split(","))
    step = next(move for move in ((1, 0), (-1, 0), (0, 1), (0, -1)) if free(x + move[0], z + move[1], x, taken))
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] + step[0] * tile["width"], middle[1] + step[1] * tile["height"], steps=4)
    page.mouse.up()
    expect(block).to_have_attribute("data-cell", f"{x + step[0]},{z + step[1]}")
    page.focus("[data-thing=agent]")
    facing = page.get_attribute("[data-thing=agent]", "data-facing")
    page.keyboard.press("r")
    expect(page.locator("[data-thing=agent]")).not_to_have_attribute("data-facing", str(facing))
    expect(page.locator(".view")).not_to_have_attribute("src", str(seen))
    page.click("#go")
    until_the_end(page)
    start = json.loads(export(page, "json").read_text())["settings"]["start"]
    assert {"item": "blue", "x": x + step[0], "z": z + step[1], "y": 0} in start["blocks"]


def free(x: int, z: int, old_x: int, taken: set[str]) -> bool:
    """Whether a cell of the same room has nothing on it."""
    room = range(6) if old_x < 6 else range(7, 13)
    return x in room and 0 <= z < 6 and f"{x},{z}" not in taken


def test_unknown_words_get_a_helpful_message_and_completion_helps(page: Page) -> None:
    tell(page, "stak blue")
    expect(page.locator("#message")).to_contain_text('Did you mean "stack"')
    page.fill("#instruction", "put pu")
    expect(page.locator(".pick")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator("#instruction")).to_have_value("put purple")
    expect(page.locator("#message")).to_be_empty()


def test_an_agent_says_why_and_is_interrupted(page: Page) -> None:
    choose(page, 3, agent="stacker")
    tell(page, "stack blue", speed="1")
    page.wait_for_selector('[data-odds="switch"] .track.grammar')
    for source in ("policy", "grammar", "reshaped"):
        assert (
            page.locator(f'[data-odds="instruction"] .chosen .track.{source}').count()
            + page.locator(f'[data-odds="switch"] .chosen .track.{source}').count()
        )
    page.fill("#instruction", "find blue")
    page.press("#instruction", "Escape")
    page.press("#instruction", "Enter")
    expect(page.locator(".act")).to_have_count(2)
    expect(page.locator(".act").first.locator(".how")).to_have_text("interrupted")


def test_a_person_drives_with_the_keyboard(page: Page) -> None:
    page.click("#drive")
    page.wait_for_selector(".pad")
    facing = page.get_attribute("[data-thing=agent]", "data-facing")
    page.locator("h3:not(.hidden)").first.click()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-thing=agent]")).not_to_have_attribute("data-facing", str(facing))
    page.click("[data-act='turn right']")
    expect(page.locator("[data-thing=agent]")).to_have_attribute("data-facing", str(facing))
    assert [part["action"] for part in drawn(page)["decisions"]] == ["turn left", "turn right"]


def test_two_players_play_the_same_game_side_by_side(page: Page) -> None:
    choose(page, 3, rival="random")
    expect(page.locator(".lane")).to_have_count(2)
    views = page.eval_on_selector_all(".view", "all => all.map((one) => one.src)")
    assert views[0] == views[1]
    tell(page, "find blue")
    page.wait_for_selector("body[data-live=false] .leaf")
    assert page.locator(".act").count() == 2


def test_the_grammar_can_be_read(page: Page) -> None:
    page.click("#tab-grammar")
    page.select_option("#grammar-task", "stack blue")
    expect(page.locator(".graph .state")).to_have_count(4)
    page.click(".as-table summary")
    rows = page.eval_on_selector_all(
        "#grammar-table tbody tr",
        "all => all.map((row) => row.cells[0].textContent + ' > ' + row.cells[1].textContent)",
    )
    assert rows == ["start > get blue", "get blue > find blue", "find blue > put blue"]


def test_a_recorded_game_is_opened_from_the_gallery(page: Page) -> None:
    page.click("#tab-gallery")
    page.locator(".card").first.click()
    page.wait_for_selector("#watch:not([hidden]) .leaf")
    page.keyboard.press("End")
    assert drawn(page)["outcome"]


def test_a_file_of_its_own_opens_without_a_server(page: Page, browser: Browser, tmp_path: Path) -> None:
    choose(page, 3)
    tell(page, "get blue")
    until_the_end(page)
    plan = json.loads(export(page, "json").read_text())
    alone = tmp_path / "game.html"
    alone.write_bytes(export(page, "html").read_bytes())
    other = browser.new_page()
    watcher = Watcher(other, "file:")
    other.goto(alone.as_uri())
    other.wait_for_selector(".leaf")
    assert drawn(other) == bare(plan["root"])
    other.click("#back")
    assert other.locator(".future").count() > 0
    assert (watcher.complaints, watcher.foreign) == ([], [])
    other.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_it_fits_laptop_and_phone_in_light_and_dark(
    browser: Browser, server: Server, size: tuple[int, int], scheme: Any
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    page.goto(server.address)
    page.wait_for_selector("[data-thing=agent]")
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in ground.strip("rgb()").split(",")) < 200) == (scheme == "dark")
    page.close()


def test_the_curves_of_a_run_grow_while_it_trains_with_its_phases_marked(page: Page, house: House) -> None:
    with RunFolder.create(house.runs.folder / "climbing", {}) as folder:
        folder.append(turn(0, 8, find=0.5))
        folder.append({"event": "stage learned", "level": 0, "episodes": 8})
        folder.append(turn(1, 8, find=0.5))
        page.click("#tab-learning")
        page.select_option("#run", "climbing")
        expect(page.locator("#run-status")).to_contain_text("16 episodes, stage 1")
        expect(page.locator(".switch")).to_have_count(0)
        folder.append(turn(1, 16, switched=True, find=0.75))
        folder.append(turn(1, 24, find=0.75, get=0.25))
        expect(page.locator("#run-status")).to_contain_text("32 episodes, stage 1")
        expect(page.locator(".switch")).to_have_count(1)
        expect(page.locator(".curve[data-skill=get]")).to_have_count(1)


LEAST_RATE, LONGEST_PAINT = 5.0, 10_000
"""Moments a second, and milliseconds: far from the goals of `benchmarks/viewer.py`, as test machines are busy."""


def test_the_first_paint_and_the_stream_are_quick(page: Page) -> None:
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < LONGEST_PAINT
    choose(page, 6, agent="stacker")
    page.wait_for_selector("body[data-game='stack blue, seed 6']")
    page.evaluate(
        "() => { window.times = []; new MutationObserver(() => window.times.push(performance.now()))"
        ".observe(document.getElementById('clock'), { childList: true }); }"
    )
    tell(page, "find blue")
    until_the_end(page)
    times = page.evaluate("window.times")
    assert len(times) > 5
    assert 1000 * (len(times) - 2) / (times[-1] - times[1]) > LEAST_RATE
