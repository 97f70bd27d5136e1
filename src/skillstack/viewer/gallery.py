"""Recorded games: the examples that come with the package, and a folder of plans, to which the page can add."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from threading import Lock
from typing import Any

from skillstack.disk import make_folder, write_file
from skillstack.errors import SkillstackError
from skillstack.rollout.plan import PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.replay import replay
from skillstack.viewer.pictures import data_uri
from skillstack.viewer.reel import MOST_MOMENTS, PLAYER
from skillstack.viewer.screen import WorldOf, world_of

MOST_BYTES = 16 * 2**20
"""A larger file is not read."""
MOST_SHOWN, MOST_SAVED = 60, 200
"""Games that are listed, and that a folder may hold before the page adds no more."""


class Gallery:
    """Plans by name. A page names only what it was shown, so no name from outside becomes a path."""

    def __init__(self, folder: Path, find: WorldOf = world_of) -> None:
        """`find` gives the world to play a plan in again."""
        self.folder, self._find = folder, find
        self._cards: dict[tuple[str, int], dict[str, Any]] = {}  # by name and size
        self._lock = Lock()

    def cards(self) -> list[dict[str, Any]]:
        """All games that can be shown, each with a picture and a sentence; what is no plan is left out."""
        with self._lock:
            cards = [self._card(name, file) for name, file in list(self._files().items())[:MOST_SHOWN]]
        return [card for card in cards if card]

    def open(self, name: str) -> PlanTree:
        """A recorded game."""
        found = self._files().get(name)
        if found is None:
            raise SkillstackError(f'There is no recorded game "{name}" in the gallery.')
        return _read(found)

    def save(self, tree: PlanTree) -> str:
        """Keep a game; returns its name."""
        words = f"{tree.root.instruction}-{tree.settings.get(PLAYER, '')}-seed-{tree.seed}".lower()
        stem = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:80]
        with self._lock:
            names = self._files()
            if len(names) >= MOST_SAVED:
                raise SkillstackError(f"{self.folder} holds {len(names)} games already; make space there first.")
            name = next(name for number in range(1, MOST_SAVED + 2) if (name := f"{stem}-{number}.json") not in names)
            try:
                make_folder(self.folder)
                write_file(self.folder / name, (tree.dumps() + "\n").encode())
            except OSError as error:
                raise SkillstackError(
                    f"The game cannot be kept in {self.folder} ({error.strerror or error})."
                ) from error
        return name

    def _files(self) -> dict[str, Traversable]:
        """The newest of one's own first, then the examples."""
        own = sorted(self.folder.glob("*.json"), key=lambda path: -path.stat().st_mtime) if self.folder.is_dir() else []
        examples = sorted((files("skillstack.viewer") / "examples").iterdir(), key=lambda entry: entry.name)
        return {entry.name: entry for entry in (*own, *examples) if entry.name.endswith(".json")}

    def _card(self, name: str, file: Traversable) -> dict[str, Any]:
        try:
            key = (name, len(file.read_bytes()))
            if key not in self._cards:
                self._cards[key] = _describe(name, _read(file), self._find)
            return self._cards[key]
        except (OSError, SkillstackError):
            return {}


def _read(file: Traversable) -> PlanTree:
    try:
        data = file.read_bytes()
        if len(data) > MOST_BYTES:
            raise SkillstackError(f"{file.name} is too large to be shown.")
        tree = PlanTree.from_json(json.loads(data))
    except (OSError, ValueError, RecursionError) as error:
        raise SkillstackError(f"{file.name} cannot be read as a plan.") from error
    if tree.moments() > MOST_MOMENTS:
        raise SkillstackError(f"{file.name} is too long to be shown.")
    return tree


def _describe(name: str, tree: PlanTree, find: WorldOf) -> dict[str, Any]:
    world = find(tree)
    return {
        "name": name,
        "instruction": str(tree.root.instruction),
        "player": str(tree.settings.get(PLAYER, "")),
        "outcome": tree.root.outcome,
        "steps": len(tree.actions()),
        "seed": tree.seed,
        "room": "big" if world.config.big else "small",
        "sentence": plan_sentence(tree),
        "picture": data_uri(replay(world, tree, map_size=0).frames[-2:][0]),  # just before the end: most is in sight
    }
