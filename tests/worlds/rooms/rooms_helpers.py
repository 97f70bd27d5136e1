"""What several tests of the two-room world need: worlds, tasks in words, and states set up by hand."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from skillstack.instructions import DEFAULT_VOCABULARY, Instruction
from skillstack.worlds.rooms import ACTIONS, RoomsConfig, RoomsWorld
from skillstack.worlds.rooms.layout import ITEM, NOTHING, make_state
from skillstack.worlds.rooms.looks import Looks, make_materials, paint_looks

ALL_TASKS = DEFAULT_VOCABULARY.encode(DEFAULT_VOCABULARY.tasks)  # (24, 2)
STANDARD = RoomsConfig()


@lru_cache(maxsize=32)
def world_of(config: RoomsConfig = STANDARD, num_games: int = 1) -> RoomsWorld:
    """A world, made once: tests put every game they use into a state of their own."""
    return RoomsWorld(config, num_games)


def tasks(*texts: str) -> np.ndarray:
    """Tasks (n, 2) from words."""
    return DEFAULT_VOCABULARY.encode([Instruction.parse(text) for text in texts])


def start(config: RoomsConfig, num_games: int, tasks: np.ndarray = ALL_TASKS, first_seed: int = 0) -> RoomsWorld:
    """A world of freshly started games that cycle through the tasks."""
    world = world_of(config, num_games)
    world.reset(cycled(tasks, num_games), first_seed + np.arange(num_games))
    return world


def cycled(tasks: np.ndarray, count: int) -> np.ndarray:
    return tasks[np.arange(count) % len(tasks)]


def play(world: RoomsWorld, steps: int, seed: int = 0) -> None:
    """Play at random, with more of picking up and putting down than there would be by chance alone."""
    rng = np.random.default_rng(seed)
    chances = np.array([3, 1, 1, 1, 2, 2, 3, 3]) / 16
    for _ in range(steps):
        world.step(rng.choice(len(ACTIONS), world.num_games, p=chances))


def scene(
    agent: tuple[int, int, int],
    blocks: Mapping[tuple[int, int], str] | None = None,
    held: str | None = None,
    *,
    room: int = 0,
    config: RoomsConfig = STANDARD,
) -> RoomsWorld:
    """A world of one game with the agent (x, z, facing) and stacks by cell, written from the floor up: "red blue"."""
    world = world_of(config)
    world.restore(make_state(config, agent, blocks or {}, held, room))
    return world


def do(world: RoomsWorld, *actions: str) -> RoomsWorld:
    """Take actions by their names in a world of one game."""
    for action in actions:
        world.step([ACTIONS.index(action)])
    return world


def pose(world: RoomsWorld) -> tuple[int, int, int]:
    """Where the agent is and which way it faces."""
    x, z, facing = world.state["agent"][0, :3].tolist()
    return x, z, facing


def held(world: RoomsWorld) -> str | None:
    number = int(world.state["agent"][0, 3])
    return None if number == NOTHING else world.config.items[number]


def stacks(world: RoomsWorld, game: int = 0) -> dict[tuple[int, int], str]:
    """The stacks by cell, as `scene` takes them."""
    found: dict[tuple[int, int], str] = {}
    for item, x, z, _ in sorted(standing_blocks(world.state[game]), key=lambda block: block[3]):
        found[x, z] = f"{found.get((x, z), '')} {world.config.items[item]}".strip()
    return found


def standing_blocks(game: Any) -> list[list[int]]:
    """A state's blocks as rows of item, x, z, y."""
    return [block for block in game["blocks"].tolist() if block[ITEM] != NOTHING]


def is_achieved(world: RoomsWorld, text: str) -> bool:
    return bool(world.achieved(tasks(text))[0])


def is_executable(world: RoomsWorld, text: str) -> bool:
    return bool(world.executable(tasks(text))[0])


def looks_of(config: RoomsConfig) -> Looks:
    """The looks that a world with these settings paints."""
    return paint_looks(make_materials(config.items), config.fov, config.eye, config.pitch, config.randomise)
