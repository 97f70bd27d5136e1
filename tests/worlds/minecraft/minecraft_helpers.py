"""What the tests of Minecraft share."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from skillstack.worlds.minecraft.materials import box_size
from skillstack.worlds.minecraft.session import BRIDGE
from skillstack.worlds.rooms import RoomsConfig

HERE = Path(__file__).parent
STANDARD = RoomsConfig()
PICK_UP, PUT_DOWN = 6, 7


def seen_by_an_onlooker(address: tuple[str, int], plot: int) -> list[Any]:
    """The blocks on a plot, [name, x, y, z], as somebody sees them who has just joined the server."""
    place = [str(address[1]), str(plot), *map(str, box_size(STANDARD))]
    command = ["node", str(HERE / "onlooker.js"), str(BRIDGE), *place]
    found: list[Any] = json.loads(subprocess.run(command, capture_output=True, timeout=120, check=True).stdout)
    return sorted(found)
