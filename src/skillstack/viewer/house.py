"""What all connections share: who can play, the gallery, the runs, the threads that do the work, and the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar

from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import Instruction
from skillstack.policies.grammar_text import grammar_to_json
from skillstack.rollout.casting import NAMES, Candidate, find_candidate
from skillstack.viewer.curves import Runs
from skillstack.viewer.gallery import Gallery
from skillstack.viewer.lane import Lane
from skillstack.viewer.screen import Place, Screen
from skillstack.worlds.making import USUAL_GAMES
from skillstack.worlds.rooms import ACTIONS, RoomsConfig
from skillstack.worlds.rooms.words import FACINGS

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ViewerLimits:
    """How much a connection may ask for, so that no page can take the machine from the others."""

    connections: int = 64
    """Pages at once."""
    acts: int = 1_000
    """Instructions that a connection may have carried out."""
    kept: int = 16
    """Finished acts of a connection that can still be exported."""
    wrong: int = 20
    """Messages that are none, before the connection is closed."""
    rate: float = 80.0
    """Messages a second, in the long run."""
    burst: float = 200.0
    """Messages at once."""
    players: int = USUAL_GAMES["minecraft"]
    """Players in Minecraft at once, of all pages together: each game has one, and so has each of two side by side."""


@dataclass
class House:
    """Shared by all connections."""

    agents: dict[str, Candidate]
    """By the name that pages call them; what comes from outside is never a path."""
    gallery: Gallery
    runs: Runs
    limits: ViewerLimits = field(default_factory=ViewerLimits)
    screen: Screen = field(default_factory=lambda: Screen(Place()))
    connections: int = 0

    def __post_init__(self) -> None:
        self._lanes: set[Lane] = set()
        self._hiring = 0  # lanes that are being made
        self._door = Lock()
        # Playing and drawing must not wait for a film that someone else exports.
        self._players = ThreadPoolExecutor(2, "skillstack-play")
        self._writers = ThreadPoolExecutor(1, "skillstack-write")

    async def play(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something short away from the event loop; what has begun is waited for even if nobody wants it any more.

        Otherwise a page's games could be left while a moment of them is still being played.
        """
        done = asyncio.get_running_loop().run_in_executor(self._players, lambda: work(*args, **kwargs))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            raise

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something that may take seconds."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, lambda: work(*args, **kwargs))

    def warm_up(self) -> None:
        """Play a moment: what is compiled or started on first use should not keep the first page waiting."""
        self.screen.open(RoomsConfig())
        lane = Lane(next(iter(self.agents.values())), RoomsConfig())
        lane.begin(lane.player.vocabulary.tasks[0], 0, None)
        lane.advance()

    def hire(self, name: str, config: RoomsConfig, greedy: bool) -> Lane:
        """Someone to play, in a game of their own until they are dismissed."""
        candidate = self.candidate(name)
        with self._door:
            if self.screen.place.costs_players and len(self._lanes) + self._hiring >= self.limits.players:
                raise SkillstackError(
                    f"{self.limits.players} players are in Minecraft already, as many as may be; close another page."
                )
            self._hiring += 1
        try:
            lane = Lane(candidate, config, greedy, self.screen.place)
            with self._door:
                self._lanes.add(lane)
        finally:
            with self._door:
                self._hiring -= 1
        return lane

    def dismiss(self, lanes: Sequence[Lane]) -> None:
        """Let players leave their games."""
        for lane in lanes:
            with self._door:
                self._lanes.discard(lane)
            lane.close()

    def close(self) -> None:
        """Finish what is being done, and leave all games."""
        self._players.shutdown(cancel_futures=True)
        self._writers.shutdown(cancel_futures=True)
        self.dismiss(list(self._lanes))
        self.screen.close()

    def candidate(self, name: str) -> Candidate:
        if name not in self.agents:
            raise unknown("player", name, self.agents)
        return self.agents[name]

    def grammar(self, name: str, words: str, level: int) -> dict[str, Any]:
        """What a level's grammar has learned of a task."""
        agent = self.candidate(name).agent
        if agent is None:
            raise SkillstackError(f'"{name}" is not a trained agent and has no grammar; choose one that has learned.')
        if not 1 <= level < agent.num_levels:
            raise SkillstackError(f"Levels 1 to {agent.num_levels - 1} of this agent have a grammar, not {level}.")
        grammar = agent.grammars[level]
        assert grammar is not None, "all levels but the terminal one have a grammar"
        return grammar_to_json(grammar, Instruction.parse(words, grammar.tasks.vocabulary))

    def hello(self) -> dict[str, Any]:
        """What a page must know first."""
        return {
            "type": "hello",
            "world": self.screen.place.world,
            "agents": [_told(name, candidate) for name, candidate in self.agents.items()],
            "actions": list(ACTIONS),
            "facings": list(FACINGS),
            "runs": self.runs.names(),
        }


def _told(name: str, candidate: Candidate) -> dict[str, Any]:
    agent, standard = candidate.agent, RoomsConfig().description.vocabulary
    words = agent.vocabulary if agent else standard
    return {
        "name": name,
        "about": NAMES.get(name, "a trained agent"),
        "skills": list(words.skills),
        "items": list(words.items),
        "levels": agent.num_levels if agent else len(standard.skills),
        "grammar": agent is not None and agent.num_levels > 1,
    }


def open_house(
    agents: Sequence[str],
    gallery: Path,
    runs: Path,
    limits: ViewerLimits | None = None,
    place: Place | None = None,
) -> House:
    """Load everyone who was asked for, once, and add those who are always there."""
    found: dict[str, Candidate] = {}
    for name in dict.fromkeys([*agents, *NAMES]):
        candidate = find_candidate(name)
        shown = name if name in NAMES else _short(name, found)
        found[shown] = Candidate(shown, candidate.agent)
    screen = Screen(place or Place())
    return House(found, Gallery(gallery, screen.world_of), Runs(runs), limits or ViewerLimits(), screen)


def _short(path: str, taken: dict[str, Candidate]) -> str:
    """A folder's name for pages: its last part that says something, and only as much of it as is needed."""
    parts = [part for part in Path(path).parts if part not in ("/", ".", "..", "agent")] or [path]
    name = parts[-1]
    return name if name not in taken and name not in NAMES else "/".join(parts[-2:])
