"""One connection: what its person has set up, the game being played for them, and the answers to their messages."""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction
from skillstack.rollout.plan import PlanTree
from skillstack.viewer import messages as m
from skillstack.viewer.export import export
from skillstack.viewer.house import House
from skillstack.viewer.lane import DRIVER, Lane
from skillstack.viewer.reel import PLAYER, reel, scene
from skillstack.worlds.rooms import RoomsConfig
from skillstack.worlds.rooms.layout import State

Event = dict[str, Any]
Send = Callable[[Event], Awaitable[None]]

FIRST_SPEED = 6.0
"""Steps a second, until the page says another."""


class Session:
    """Plays for one page. Messages come one after the other; the game goes on between them."""

    def __init__(self, house: House, send: Send) -> None:
        self._house, self._send = house, send
        self._lanes: list[Lane] = []
        self._hired: list[Lane] = []  # the lanes, and those that are about to take their place
        self._cast: tuple[Any, ...] = ()  # what the lanes were made from
        self._task: Instruction | None = None
        self._seed = 0
        self._start: State | None = None  # where it is not the seed's own
        self._plans: OrderedDict[int, PlanTree] = OrderedDict()  # acts that can be exported, by number
        self._numbers: list[int] = []  # of the lanes' acts
        self._acts = 0
        self._speed, self._going = FIRST_SPEED, asyncio.Event()
        self._lock = asyncio.Lock()  # a moment, or a message
        self._answers: dict[type, Callable[[Any], Awaitable[None]]] = {
            m.Setup: self._set_up, m.Arrange: self._arrange, m.Start: self._begin, m.Instruct: self._instruct,
            m.Act: self._drive, m.Pause: self._pause, m.Resume: self._resume, m.Step: self._step, m.Speed: self._pace,
            m.Export: self._export, m.Save: self._save, m.ShowGrammar: self._grammar, m.ListRuns: self._runs,
            m.Curves: self._curves, m.ListGallery: self._gallery, m.Open: self._open,
        }  # fmt: skip

    async def handle(self, message: m.AnyMessage) -> None:
        """Answer a message; what is wrong with it is told, and changes nothing."""
        try:
            async with self._lock:
                await self._answers[type(message)](message)
        except SkillstackError as error:
            await self._send({"type": "error", "about": message.type, "message": str(error)})

    async def close(self) -> None:
        """Leave all games; for the end of the connection."""
        async with self._lock:
            self._lanes = []
            await self._house.play(self._dismiss_others)

    async def play(self) -> None:
        """Play moments at the chosen pace, whenever a game is going on; ends when it is cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            await self._going.wait()
            due = max(due + 1 / self._speed, clock())
            await asyncio.sleep(due - clock())
            async with self._lock:
                if self._going.is_set():
                    await self._try_to_advance()

    async def _try_to_advance(self) -> None:
        """A moment, after which the game stands still if it failed."""
        try:
            await self._advance()
        except BaseException:
            self._going.clear()
            raise

    # Setting up

    async def _set_up(self, message: m.Setup) -> None:
        self._going.clear()
        cast = (tuple(message.agents), message.room, message.blocks, message.greedy)
        try:
            lanes = self._lanes if cast == self._cast else await self._house.play(self._hire, message)
            tasks = [lane.parse(message.instruction) for lane in lanes]
            state = await self._house.play(lanes[0].lay_out, tasks[0], message.seed)
            for lane in lanes[1:]:
                await self._house.play(lane.put, state)
            self._lanes, self._cast, self._task, self._seed = lanes, cast, tasks[0], message.seed
            self._start = None
        finally:
            await self._house.play(self._dismiss_others)
        await self._show_game()

    def _hire(self, message: m.Setup) -> list[Lane]:
        config = RoomsConfig(big=message.room == "big")
        if message.blocks is not None:
            config = replace(config, min_blocks=message.blocks, max_blocks=message.blocks)
        lanes: list[Lane] = []
        for name in message.agents:
            lanes.append(self._house.hire(name, config, message.greedy))
            self._hired.append(lanes[-1])  # at once: whatever happens now, it must be dismissed some time
        items = [lane.world.config.items for lane in lanes]
        if items[0] != items[-1]:
            raise SkillstackError("These two players know different items, so they cannot play the same game.")
        return lanes

    def _dismiss_others(self) -> None:
        """Whoever was hired and does not play: in Minecraft, each is a player on a server."""
        others = [lane for lane in self._hired if lane not in self._lanes]
        self._hired = list(self._lanes)
        self._house.dismiss(others)

    async def _show_game(self) -> None:
        looks = [await self._house.play(lane.look) for lane in self._lanes]
        await self._send(
            {
                "type": "game",
                "instruction": str(self._task),
                "seed": self._seed,
                "lanes": [{"player": lane.name, **look} for lane, look in zip(self._lanes, looks, strict=True)],
                "scene": scene(self._lanes[0].world.config),
            }
        )

    async def _arrange(self, message: m.Arrange) -> None:
        if self._task is None or any(lane.act is not None for lane in self._lanes):
            raise SkillstackError("Blocks and agent can be moved before a run; set up a new game first.")
        first = self._lanes[0]
        here = first.world.state_to_json(first.world.snapshot())
        placed = {"agent": message.agent.model_dump(), "blocks": [block.model_dump() for block in message.blocks]}
        state = first.world.state_from_json({**here, **placed})
        for lane in self._lanes:
            await self._house.play(lane.put, state)
        self._start = state
        await self._show_game()

    # Playing

    async def _begin(self, message: m.Start) -> None:
        if self._task is None:
            raise SkillstackError("There is no game yet: set one up first.")
        if self._start is not None:
            await self._house.play(self._lanes[0].check, self._task, self._start)
        await self._act(self._task, message.drive, fresh=True)

    async def _instruct(self, message: m.Instruct) -> None:
        if not self._lanes or self._lanes[0].act is None:
            raise SkillstackError("There is no game to go on with: start one first.")
        tasks = [lane.parse(message.instruction) for lane in self._lanes]
        await self._act(tasks[0], message.drive, fresh=False)

    async def _act(self, task: Instruction, drive: bool, fresh: bool) -> None:
        """A new act in each lane."""
        if self._acts + len(self._lanes) > self._house.limits.acts:
            raise SkillstackError(
                f"This page has had {self._acts} instructions carried out, as many as one may; load it anew."
            )
        numbers, events = [], []
        for number, lane in enumerate(self._lanes):
            driven = drive and number == 0
            if fresh:
                moment = await self._house.play(lane.begin, task, self._seed, self._start, driven)
            else:
                moment = await self._house.play(lane.go_on, task, self._seed, driven)
            numbers.append(self._acts + number)
            events.append(
                {"type": "act", "lane": number, "act": numbers[-1], "fresh": fresh, **_about(lane, task), **moment}
            )
        self._acts += len(numbers)
        self._numbers = numbers
        self._keep()
        for event in events:
            await self._send(event)
        self._going.clear() if drive else self._going.set()

    async def _advance(self, action: str | None = None) -> None:
        for number, lane in enumerate(self._lanes):
            moment = await self._house.play(lane.advance, action)
            if moment is not None:
                await self._send({"type": "moment", "lane": number, "act": self._numbers[number], **moment})
        if all(lane.act is None or lane.act.ended or lane.act.player == DRIVER for lane in self._lanes):
            self._going.clear()

    async def _drive(self, message: m.Act) -> None:
        act = self._lanes[0].act if self._lanes else None
        if act is None or act.player != DRIVER:
            raise SkillstackError("The agent is playing; take over first to drive it yourself.")
        if act.ended:
            raise SkillstackError("This game has ended; start another, or go on from here.")
        await self._advance(message.action)

    async def _pause(self, message: m.Pause) -> None:
        self._going.clear()

    async def _resume(self, message: m.Resume) -> None:
        if any(lane.act is not None and not lane.act.ended for lane in self._lanes):
            self._going.set()

    async def _step(self, message: m.Step) -> None:
        self._going.clear()
        await self._advance()

    async def _pace(self, message: m.Speed) -> None:
        self._speed = message.steps

    # Keeping

    def _keep(self) -> None:
        """Plans grow where they are, so that an act can be exported from its first moment on."""
        for number, lane in zip(self._numbers, self._lanes, strict=True):
            assert lane.act is not None, "it has just begun"
            self._remember(number, lane.act.tree, lane.act.player)

    def _remember(self, number: int, tree: PlanTree, player: str) -> None:
        self._plans[number] = replace(tree, settings={**tree.settings, PLAYER: player})
        while len(self._plans) > self._house.limits.kept:
            self._plans.popitem(last=False)

    def _plan(self, number: int) -> PlanTree:
        if number not in self._plans:
            raise SkillstackError("This game is no longer kept; play it again to export it.")
        tree = self._plans[number]
        return tree.until(tree.moments())  # a copy, as it may be growing

    async def _export(self, message: m.Export) -> None:
        file = await self._house.write(export, self._plan(message.act), message.kind, self._house.screen.world_of)
        data = base64.b64encode(file.data).decode()
        await self._send({"type": "file", "act": message.act, "name": file.name, "mime": file.mime, "data": data})

    async def _save(self, message: m.Save) -> None:
        name = await self._house.write(self._house.gallery.save, self._plan(message.act))
        await self._send({"type": "saved", "name": name})

    # The other tabs

    async def _grammar(self, message: m.ShowGrammar) -> None:
        told = await self._house.play(self._house.grammar, message.agent, message.instruction, message.level)
        await self._send({"type": "grammar", "agent": message.agent, "level": message.level, **told})

    async def _runs(self, message: m.ListRuns) -> None:
        await self._send({"type": "runs", "runs": await self._house.play(self._house.runs.names)})

    async def _curves(self, message: m.Curves) -> None:
        told = await self._house.write(self._house.runs.curves, message.run, message.known)
        await self._send({"type": "curves", **told})

    async def _gallery(self, message: m.ListGallery) -> None:
        await self._send({"type": "gallery", "games": await self._house.write(self._house.gallery.cards)})

    async def _open(self, message: m.Open) -> None:
        self._going.clear()
        tree = await self._house.play(self._house.gallery.open, message.name)
        told = await self._house.write(reel, tree, self._house.screen.world_of)
        number, self._acts = self._acts, self._acts + 1
        self._plans[number] = tree
        await self._send({"type": "reel", "act": number, "name": message.name, **told})


def _about(lane: Lane, task: Instruction) -> Event:
    assert lane.act is not None, "an act has begun"
    return {"player": lane.act.player, "instruction": str(task), "seed": lane.act.tree.seed}
