"""Draw the pictures of the embedded world that the documentation shows: `python docs/pictures.py`.

`images/contact-sheet.png` has views of all there is to see, labelled; `images/world.png` is the README's picture.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from skillstack.worlds.rooms import Randomisation, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST, make_state
from skillstack.worlds.rooms.topdown import draw_map

IMAGES = Path(__file__).parent / "images"
STANDARD = RoomsConfig(max_blocks=8)
BIG = RoomsConfig(big=True)
RANDOM = RoomsConfig(randomise=Randomisation(variety=16))
INK, PAPER = (32, 34, 38), (255, 255, 255)

Stacks = dict[tuple[int, int], str]
"""Stacks by cell, from the floor up: {(2, 1): "red blue"}."""


@cache
def world_of(config: RoomsConfig) -> RoomsWorld:
    return RoomsWorld(config)


@dataclass(frozen=True)
class View:
    """One picture and what stands under it."""

    label: str
    agent: tuple[int, int, int] = (2, 4, NORTH)
    """x, z and facing."""
    stacks: Stacks = field(default_factory=dict)
    held: str | None = None
    config: RoomsConfig = STANDARD
    room: int = 0
    look: int = 0

    @property
    def state(self) -> npt.NDArray[Any]:
        return make_state(self.config, self.agent, self.stacks, self.held, self.room, self.look)

    def draw(self) -> Image.Image:
        return Image.fromarray(world_of(self.config).render(self.state)[0])


SOME: Stacks = {(1, 1): "red", (3, 2): "blue", (2, 2): "yellow", (4, 1): "green", (0, 2): "white", (5, 3): "purple"}
PILES: Stacks = {(2, 2): "blue blue", (0, 1): "red white", (4, 1): "green", (5, 0): "purple yellow"}
SHEET = [
    [
        View("west room, north", (2, 5, NORTH), SOME),
        View("west room, east", (0, 4, EAST), SOME),
        View("east room, south", (9, 0, SOUTH), {(8, 3): "red", (10, 4): "blue", (11, 2): "white"}, room=1),
        View("east room, west", (12, 3, WEST), {(9, 2): "yellow", (8, 4): "green", (7, 3): "purple"}, room=1),
        View(
            "big room, east",
            (0, 3, EAST),
            {(4, 2): "red", (7, 4): "blue", (10, 1): "white", (12, 3): "green"},
            config=BIG,
        ),
        View("a corner", (0, 0, WEST)),
    ],
    [View(f"{colour}, two cells away", (2, 4, NORTH), {(2, 2): colour}) for colour in STANDARD.items],
    [View(f"{5 - z} cell{'s' if z < 4 else ''} away", (2, 5, NORTH), {(2, z): "red"}) for z in range(4, -1, -1)]
    + [View("beside, ahead", (2, 4, NORTH), {(1, 3): "red", (3, 3): "blue", (0, 2): "white", (4, 2): "green"})],
    [
        View("stacks", (2, 5, NORTH), PILES),
        View("a stack in front", (2, 3, NORTH), {(2, 2): "red white"}),
        View("a stack 2 away", (2, 4, NORTH), {(2, 2): "blue yellow"}),
        View("hidden behind", (2, 4, NORTH), {(2, 2): "green", (2, 1): "red red", (3, 1): "white"}),
        View("one in front", (2, 3, NORTH), {(2, 2): "yellow"}),
        View("stacks beside", (2, 4, NORTH), {(1, 2): "red red", (3, 2): "white blue"}),
    ],
    [View(f"{colour} in the hand", (3, 4, NORTH), SOME, held=colour) for colour in STANDARD.items],
    [View(f"pitch {pitch}", (2, 4, NORTH), PILES, config=replace(STANDARD, pitch=pitch)) for pitch in (0, 15, 30)]
    + [
        View(
            f"pitch {pitch}, one ahead",
            (2, 3, NORTH),
            {(2, 2): "blue", (1, 3): "red", (3, 2): "white"},
            config=replace(STANDARD, pitch=pitch),
        )
        for pitch in (0, 15, 30)
    ],
    [View(f"random look {look}", (2, 5, NORTH), SOME, held="red", config=RANDOM, look=look) for look in range(6)],
]


def contact_sheet(zoom: int = 2) -> Image.Image:
    """All views in rows, each with its label under it."""
    edge, margin, line = STANDARD.image_size * zoom, 6, 18
    columns = max(len(row) for row in SHEET)
    sheet = Image.new("RGB", (columns * (edge + margin) + margin, len(SHEET) * (edge + line + margin) + margin), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    for i, row in enumerate(SHEET):
        for j, view in enumerate(row):
            left, top = margin + j * (edge + margin), margin + i * (edge + line + margin)
            sheet.paste(view.draw().resize((edge, edge), Image.Resampling.NEAREST), (left, top))
            pen.text((left + edge / 2, top + edge + line / 2), view.label, fill=INK, font=font, anchor="mm")
    return sheet


def world_picture(height: int = 504, gap: int = 16) -> Image.Image:
    """What the agent sees beside where it is."""
    stacks: Stacks = {(2, 2): "blue", (0, 1): "red", (4, 0): "white yellow", (1, 0): "green", (5, 2): "purple"}
    view = View("", (2, 5, NORTH), stacks, held="blue", config=replace(STANDARD, pitch=8))
    seen = view.draw().resize((height, height), Image.Resampling.NEAREST)
    path = [(4, 2), (4, 4), (2, 4)]
    above = Image.fromarray(draw_map(view.config, view.state[0], height, path))
    picture = Image.new("RGB", (seen.width + gap + above.width, height), PAPER)
    picture.paste(seen, (0, 0))
    picture.paste(above, (seen.width + gap, 0))
    return picture


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for name, picture in (("contact-sheet", contact_sheet()), ("world", world_picture())):
        picture.save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
