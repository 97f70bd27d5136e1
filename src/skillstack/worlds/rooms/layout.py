"""The settings of the two-room world, the state of a game, and how a game starts (section 5.1 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.instructions import COLOURS, SKILLS, Vocabulary
from skillstack.jit import jit
from skillstack.randomness import draw, draw_below
from skillstack.worlds.rooms.looks import Randomisation, check_camera
from skillstack.worlds.world import Rewards, WorldDescription

ACTIONS = (
    "move forward", "move backward", "move left", "move right", "turn left", "turn right", "pick up", "put down",
)  # fmt: skip

# Columns of a state's arrays. x grows to the east, z to the south, y upwards, as in Minecraft.
# Of the agent, HELD and PLACED are item numbers or NOTHING; KEPT is what the hand must hold for "find": one of these,
# or ANYTHING.
X, Z, FACING, HELD, PLACED, KEPT = range(6)
X0, Z0, X1, Z1, THEME = range(5)  # room: its first cell and one past its last, and which of the two looks it has
ITEM, BLOCK_X, BLOCK_Z, BLOCK_Y = range(4)  # block: ITEM is NOTHING for an unused slot; y is 0 or 1
NOTHING, ANYTHING = -1, -2

NORTH, EAST, SOUTH, WEST = range(4)
FORWARD_X = np.array([0, 1, 0, -1], dtype=np.int64)  # one step ahead, by facing
FORWARD_Z = np.array([-1, 0, 1, 0], dtype=np.int64)

FIND, GET, PUT, STACK = range(4)  # places in SKILLS
MAX_SIDE = 40  # cells; coordinates of two rooms side by side stay within a signed byte
MAX_BLOCKS = 32
MAX_ITEMS = 64

State = npt.NDArray[Any]
"""One record a game: see `state_dtype`."""


@dataclass(frozen=True)
class RoomsConfig:
    """Everything that can be set about the world."""

    room_width: int = 6
    """Cells of one room from west to east."""
    room_depth: int = 6
    """Cells of a room from north to south."""
    grow: int = 0
    """Up to so many cells a room may be wider, and as many deeper, from game to game: for agents that must not know the
    size of the room by heart."""
    big: bool = False
    """Without the wall between the two rooms: one room of twice the width and the wall's cell."""
    items: tuple[str, ...] = COLOURS
    """The colours of the blocks."""
    min_blocks: int = 1
    """The fewest blocks in a game, the one in the hand counted; never fewer than the task needs."""
    max_blocks: int = 6
    """The most blocks in a game."""
    distractors: bool = True
    """Whether there are other blocks than the task needs."""
    held_start: float = 0.25
    """How often a "find" game starts with some block in the hand, as it is when "stack" calls "find".

    A "find" game is won with the hand as it was at the start: else the shortest way to find x with an x in the hand
    would be to put it down in front, and a block that was picked up on the way would keep "get" from picking up.
    """
    penalty: bool = True
    """Whether uttering what cannot be executed is worth -0.5 and ends the game."""
    image_size: int = 84
    """Height and width of a frame in pixels."""
    fov: float = 70.0
    """Field of view in degrees, of the height and of the width."""
    eye: float = 1.62
    """Height of the eye in blocks; a Minecraft player's."""
    pitch: float = 0.0
    """Degrees that the view is turned down (players often look down 20 to 30)."""
    randomise: Randomisation | None = None
    """What differs from game to game in how the world looks; None for the same look in every game."""

    def __post_init__(self) -> None:
        if len(Vocabulary(SKILLS, self.items).items) > MAX_ITEMS:
            raise SkillstackError(f"There can be at most {MAX_ITEMS} items, not {len(self.items)}.")
        for name in ("room_width", "room_depth", "grow", "min_blocks", "max_blocks", "image_size"):
            if not isinstance(getattr(self, name), int):
                raise SkillstackError(f"{name} must be a whole number, not {getattr(self, name)!r}.")
        for name in ("room_width", "room_depth"):
            if not 2 <= getattr(self, name) <= MAX_SIDE:
                raise SkillstackError(f"{name} must be from 2 to {MAX_SIDE} cells, not {getattr(self, name)}.")
        if not 0 <= self.grow <= MAX_SIDE - max(self.room_width, self.room_depth):
            raise SkillstackError(f"Rooms can grow by 0 cells or more, to {MAX_SIDE} at most, not by {self.grow}.")
        if self.grow and self.big:
            raise SkillstackError("The big room has one size: it does not grow.")
        if not 1 <= self.min_blocks <= self.max_blocks <= MAX_BLOCKS:
            raise SkillstackError(
                f"Blocks must be 1 <= min_blocks <= max_blocks <= {MAX_BLOCKS}, "
                f"not {self.min_blocks} and {self.max_blocks}."
            )
        cells = 3 if min(self.room_width, self.room_depth) > 2 else 4
        if cells * self.slots > self.room_width * self.room_depth:
            raise SkillstackError(
                f"There is no room for {self.slots} blocks in {self.room_width} x {self.room_depth} cells: "
                f"a block needs {cells} cells there, so that every block can be walked to."
            )
        if not 0 <= self.held_start <= 1:
            raise SkillstackError(f"held_start is a probability, from 0 to 1, not {self.held_start}.")
        if not isinstance(self.randomise, Randomisation | None):
            raise SkillstackError(f"randomise must be a Randomisation or None, not {self.randomise!r}.")
        check_camera(self.fov, self.eye, self.pitch, self.randomise)
        if not 16 <= self.image_size <= 512:
            raise SkillstackError(f"image_size must be from 16 to 512 pixels, not {self.image_size}.")

    @staticmethod
    def from_json(data: Any) -> RoomsConfig:
        """The settings back from the JSON that a plan has of them."""
        try:
            randomise = data["randomise"]
            return RoomsConfig(
                **{
                    **data,
                    "items": tuple(data["items"]),
                    "randomise": None if randomise is None else Randomisation(**randomise),
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SkillstackError(f"These are not the settings of a two-room world: {error!r}.") from error

    @property
    def slots(self) -> int:
        """Places for blocks in a state: "stack" needs two blocks even where a game has no others."""
        return max(self.max_blocks, 2)

    @property
    def description(self) -> WorldDescription:
        return WorldDescription(
            name="rooms",
            vocabulary=Vocabulary(SKILLS, self.items),
            actions=ACTIONS,
            image_shape=(self.image_size, self.image_size, 3),
        )

    @property
    def rewards(self) -> Rewards:
        return Rewards() if self.penalty else Rewards(refused=0.0)

    @property
    def num_looks(self) -> int:
        return self.randomise.variety if self.randomise else 1

    @property
    def rooms(self) -> npt.NDArray[np.int8]:
        """The rooms a game may take place in: rows of x0, z0, x1, z1, theme."""
        if self.big:
            return np.array([[0, 0, 2 * self.room_width + 1, self.room_depth, 0]], dtype=np.int8)
        more = range(self.grow + 1)
        sizes = [(self.room_width + wider, self.room_depth + deeper) for wider in more for deeper in more]
        pairs = [[(0, 0, width, depth, 0), (width + 1, 0, 2 * width + 1, depth, 1)] for width, depth in sizes]
        return np.array([room for pair in pairs for room in pair], dtype=np.int8)


def state_dtype(slots: int) -> np.dtype[Any]:
    """A game's state: some fifty bytes from which everything else, the picture too, follows."""
    return np.dtype(
        [
            ("look", np.uint16),  # which of the looks this game has
            ("agent", np.int8, (6,)),
            ("room", np.int8, (5,)),
            ("blocks", np.int8, (slots, 4)),
        ]
    )


def make_states(count: int, slots: int) -> State:
    """Room for so many states, and never for fewer than two.

    Numba takes arrays of a single row for another type, and would compile everything once more for a single game.
    """
    return np.zeros(max(count, 2), dtype=state_dtype(slots))


def make_state(
    config: RoomsConfig,
    agent: tuple[int, int, int],
    stacks: Mapping[tuple[int, int], str],
    held: str | None = None,
    room: int = 0,
    look: int = 0,
) -> State:
    """One game's state by hand: the agent's x, z and facing, and stacks by cell, from the floor up: "red blue"."""
    state = np.zeros(1, dtype=state_dtype(config.slots))
    state["look"], state["room"] = look, config.rooms[room]
    state["agent"] = NOTHING
    state["agent"][0, :HELD] = agent
    state["agent"][0, HELD] = NOTHING if held is None else config.items.index(held)
    state["agent"][0, KEPT] = ANYTHING
    state["blocks"][..., ITEM] = NOTHING
    blocks = [
        (config.items.index(word), *cell, y) for cell, stack in stacks.items() for y, word in enumerate(stack.split())
    ]
    if blocks:
        state["blocks"][0, : len(blocks)] = blocks
    return state


@jit
def inside(room: Any, x: int, z: int) -> bool:
    """Whether a cell is one of the room's."""
    return bool(room[X0] <= x < room[X1] and room[Z0] <= z < room[Z1])


def are_states(config: RoomsConfig, state: State, count: int) -> bool:
    """Whether the first `count` records are states of games with these settings: compiled code relies on it."""
    agents, rooms, blocks, looks = state["agent"], state["room"], state["blocks"], state["look"]
    return bool(_are_states(agents, rooms, blocks, looks, count, config.rooms, len(config.items), config.num_looks))


@jit
def _are_states(
    agents: Any, rooms: Any, blocks: Any, looks: Any, count: int, choices: Any, num_items: int, num_looks: int
) -> bool:
    for game in range(count):
        agent, room = agents[game], rooms[game]
        known = False
        for choice in range(len(choices)):
            same = True
            for column in range(5):
                same = same and room[column] == choices[choice, column]
            known = known or same
        fine = known and looks[game] < num_looks and inside(room, agent[X], agent[Z]) and 0 <= agent[FACING] < 4
        for column in (HELD, PLACED):
            fine = fine and NOTHING <= agent[column] < num_items
        fine = fine and ANYTHING <= agent[KEPT] < num_items
        for slot in range(blocks.shape[1]):
            block = blocks[game, slot]
            if block[ITEM] != NOTHING:
                fine = fine and 0 <= block[ITEM] < num_items and 0 <= block[BLOCK_Y] <= 1
                fine = fine and inside(room, block[BLOCK_X], block[BLOCK_Z])
        if not fine:
            return False
    return True


def start_games(config: RoomsConfig, state: State, games: Any, tasks: Any, seeds: Any) -> None:
    """Lay out a new game in `state[games]` for each task, from its seed alone."""
    _start_games(
        state["agent"], state["room"], state["blocks"], state["look"],
        games, tasks, seeds, config.rooms, len(config.items),
        config.min_blocks, config.max_blocks, config.distractors, config.held_start,
        config.num_looks,
    )  # fmt: skip


@jit
def _start_games(
    agents: Any, rooms: Any, blocks: Any, looks: Any, games: Any, tasks: Any, seeds: Any, choices: Any, num_items: int,
    min_blocks: int, max_blocks: int, distractors: bool, held_start: float, num_looks: int,
) -> None:  # fmt: skip
    grid = np.zeros((choices[-1, X1], choices[-1, Z1]), dtype=np.uint8)  # the last is the largest
    queue = np.zeros((grid.size, 2), dtype=np.int64)
    for i in range(len(games)):
        game, skill, item = games[i], tasks[i, 0], tasks[i, 1]
        rng = np.uint64(seeds[i])
        rng, chosen = draw_below(rng, len(choices))
        for column in range(5):
            rooms[game, column] = choices[chosen, column]
        rng, looks[game] = draw_below(rng, num_looks)
        rng = _choose_blocks(
            rng, skill, item, agents[game], blocks[game], num_items, min_blocks, max_blocks, distractors, held_start
        )
        while True:
            rng = _place(rng, agents[game], rooms[game], blocks[game])
            if skill == FIND and _faces(agents[game], blocks[game], item):
                continue
            if _all_reachable(agents[game], rooms[game], blocks[game], grid, queue):
                break


@jit
def _choose_blocks(
    rng: Any, skill: int, item: int, agent: Any, blocks: Any, num_items: int,
    min_blocks: int, max_blocks: int, distractors: bool, held_start: float,
) -> Any:  # fmt: skip
    """What lies on the floor and what is in the hand: the task's own blocks first, others of any colour after."""
    needed = 2 if skill == STACK else 1
    total = needed
    agent[HELD] = NOTHING
    agent[PLACED], agent[KEPT] = NOTHING, ANYTHING
    if distractors:
        fewest = max(needed, min_blocks)
        rng, more = draw_below(rng, max(max_blocks - fewest, 0) + 1)
        total = fewest + more
    on_floor = total
    if skill == PUT:
        agent[HELD] = item
        on_floor -= 1
    elif skill == FIND and distractors and total > needed:
        rng, chance = draw(rng)
        if chance < held_start:
            rng, agent[HELD] = draw_below(rng, num_items)
            on_floor -= 1
    if skill == FIND:
        agent[KEPT] = agent[HELD]
    on_purpose = 0 if skill == PUT else needed
    for slot in range(len(blocks)):
        blocks[slot, ITEM] = NOTHING
        if slot < on_purpose:
            blocks[slot, ITEM] = item
        elif slot < on_floor:
            rng, colour = draw_below(rng, num_items)
            blocks[slot, ITEM] = colour
    return rng


@jit
def _place(rng: Any, agent: Any, room: Any, blocks: Any) -> Any:
    """Put the agent and the blocks on different cells of the room, all choices equally likely."""
    width, depth = room[X1] - room[X0], room[Z1] - room[Z0]
    rng, cell = draw_below(rng, width * depth)
    agent[X], agent[Z] = room[X0] + cell % width, room[Z0] + cell // width
    rng, facing = draw_below(rng, 4)
    agent[FACING] = facing
    for slot in range(len(blocks)):
        blocks[slot, BLOCK_X] = blocks[slot, BLOCK_Z] = blocks[slot, BLOCK_Y] = 0
        if blocks[slot, ITEM] == NOTHING:
            continue
        free = False
        while not free:
            rng, cell = draw_below(rng, width * depth)
            x, z = room[X0] + cell % width, room[Z0] + cell // width
            free = not (x == agent[X] and z == agent[Z])
            for other in range(slot):
                free = free and not (x == blocks[other, BLOCK_X] and z == blocks[other, BLOCK_Z])
        blocks[slot, BLOCK_X], blocks[slot, BLOCK_Z] = x, z
    return rng


@jit
def _faces(agent: Any, blocks: Any, item: int) -> bool:
    x = agent[X] + FORWARD_X[agent[FACING]]
    z = agent[Z] + FORWARD_Z[agent[FACING]]
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] == item and blocks[slot, BLOCK_X] == x and blocks[slot, BLOCK_Z] == z:
            return True
    return False


@jit
def _all_reachable(agent: Any, room: Any, blocks: Any, grid: Any, queue: Any) -> bool:
    """Whether the agent can walk to a cell beside every block, so that whatever is executable can be done."""
    free, block, seen = 0, 1, 2
    grid[:] = free
    left = 0  # blocks not yet come across
    for slot in range(len(blocks)):
        if blocks[slot, ITEM] != NOTHING:
            grid[blocks[slot, BLOCK_X], blocks[slot, BLOCK_Z]] = block
            left += 1
    queue[0, 0], queue[0, 1] = agent[X], agent[Z]
    grid[agent[X], agent[Z]] = seen
    head, tail = 0, 1
    while head < tail and left > 0:
        for direction in range(4):
            x = queue[head, 0] + FORWARD_X[direction]
            z = queue[head, 1] + FORWARD_Z[direction]
            if not inside(room, x, z) or grid[x, z] == seen:
                continue
            if grid[x, z] == block:
                left -= 1
            else:
                queue[tail, 0], queue[tail, 1] = x, z
                tail += 1
            grid[x, z] = seen
        head += 1
    return left == 0
