"""Draw `images/minecraft-pairs.png`: the same states in the embedded rooms and in Minecraft, side by side.

`python docs/minecraft_pictures.py`, after `make minecraft`. It prints how far the colours of each pair are apart.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pictures import BIG, IMAGES, INK, PAPER, PILES, SOME, STANDARD, View, world_of
from PIL import Image, ImageDraw, ImageFont

from skillstack.worlds.minecraft import MinecraftWorld
from skillstack.worlds.rooms.layout import EAST, NORTH, SOUTH, WEST

EASTERN = {(x + STANDARD.room_width + 1, z): stack for (x, z), stack in SOME.items()}
PAIRS = [
    View("west room, north", (2, 5, NORTH), SOME),
    View("west room, east", (0, 3, EAST), SOME, held="red"),
    View("stacks", (2, 4, NORTH), PILES, held="white"),
    View("block in front", (2, 3, NORTH), SOME, held="green"),
    View("east room, south", (9, 0, SOUTH), EASTERN, room=1, held="purple"),
    View("east room, west", (12, 2, WEST), EASTERN, room=1),
    View("big room", (0, 3, EAST), SOME, config=replace(BIG, max_blocks=8), held="yellow"),
    View("empty corner", (0, 0, WEST), {}, held="blue"),
]


def pair_sheet(zoom: int = 2, columns: int = 4) -> Image.Image:
    """Each state twice, the embedded rooms' view on the left and Minecraft's on the right."""
    edge, margin, line = STANDARD.image_size * zoom, 8, 18
    rows = -(-len(PAIRS) // columns)
    sheet = Image.new("RGB", (columns * (2 * edge + margin) + margin, rows * (edge + line + margin) + margin), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    worlds = {config: MinecraftWorld(config) for config in dict.fromkeys(view.config for view in PAIRS)}
    for number, view in enumerate(PAIRS):
        left = margin + number % columns * (2 * edge + margin)
        top = margin + number // columns * (edge + line + margin)
        worlds[view.config].restore(view.state)
        both = [world_of(view.config).render(view.state)[0], worlds[view.config].observe()[0]]
        for place, picture in enumerate(both):
            shown = Image.fromarray(picture).resize((edge, edge), Image.Resampling.NEAREST)
            sheet.paste(shown, (left + place * edge, top))
        difference = np.abs(both[0].astype(float) - both[1]).mean()
        pen.text((left + edge, top + edge + line / 2), view.label, fill=INK, font=font, anchor="mm")
        print(f"{view.label}: {difference:.1f} of 255 apart in the mean of pixels and channels")
    for world in worlds.values():
        world.close()
    return sheet


if __name__ == "__main__":
    pair_sheet().save(IMAGES / "minecraft-pairs.png", optimize=True)
