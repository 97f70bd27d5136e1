"""The world contract: what a batch of games must offer so that skills can be learned and called in it.

A world holds N games as arrays and steps them in one call. State, rules and rendering are separate things, so that a
state can be rendered later, again, or not at all. Beyond stepping, a world answers for any task at any moment whether
it is achieved and whether it could be carried out. Section 5.1 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.instructions import TaskArray, Vocabulary

Number = TypeVar("Number", bound=np.number[Any])
Frames = npt.NDArray[np.uint8]
"""Pictures, shape (n, height, width, 3)."""
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Seeds = npt.NDArray[np.uint64]
Snapshots = npt.NDArray[Any]
"""One record a game, first axis n, in whatever fixed-size form the world likes: it can be indexed, stacked, kept."""


@dataclass(frozen=True)
class WorldDescription:
    """What a policy must know of a world to play in it."""

    name: str
    vocabulary: Vocabulary
    actions: tuple[str, ...]
    """The names of the primitive actions, in words, in the order of their numbers."""
    image_shape: tuple[int, int, int]
    """Height, width, channels of a frame."""


@dataclass(frozen=True)
class Rewards:
    """Section 5.1: +1 for the goal, -0.5 for uttering what cannot be executed, else 0; not zero ends the game."""

    success: float = 1.0
    refused: float = -0.5
    """For an instruction that cannot be executed; 0 turns the rule off, and the game goes on."""

    def __post_init__(self) -> None:
        if not (self.success > 0 and self.refused <= 0):
            raise SkillstackError("A success must be worth more than 0 and a refused instruction at most 0.")

    def of(self, achieved: BoolArray, refused: BoolArray) -> npt.NDArray[np.float32]:
        """Rewards of decisions: did it end with the task achieved, was it an utterance that cannot be executed?"""
        return np.where(achieved, self.success, np.where(refused, self.refused, 0.0)).astype(np.float32)


@dataclass(frozen=True)
class Limits:
    """Step limits; every result states the ones it was made with."""

    flat: int = 40
    """Primitive steps of one run of the terminal policy, or of a flat policy."""
    decisions: int = 10
    """Decisions of one run of a hierarchical level."""
    episode: int = 200
    """Primitive steps of a whole game, whatever the levels do."""

    def __post_init__(self) -> None:
        for name in ("flat", "decisions", "episode"):
            if getattr(self, name) < 1:
                raise SkillstackError(f"The step limit {name!r} must be at least 1, not {getattr(self, name)}.")


@runtime_checkable
class World(Protocol):
    """N games at once. Wherever `games` is given, it names the games meant, and the other arguments are as long.

    A game is a pure function of the world's settings, its task, its seed and the actions taken in it: not of the
    number of games, the other games, or the number of threads.
    """

    description: WorldDescription
    rewards: Rewards
    num_games: int

    def reset(self, tasks: TaskArray, seeds: Seeds, games: IntArray | None = None) -> None:
        """Start a new game for each task; the task is not yet achieved, and can be."""
        ...

    def step(self, actions: IntArray, games: IntArray | None = None) -> None:
        """Take one primitive action in each game."""
        ...

    def observe(self, games: IntArray | None = None) -> Frames:
        """What the agent sees now. The array is the caller's."""
        ...

    def achieved(self, tasks: TaskArray, games: IntArray | None = None) -> BoolArray:
        """Whether each task's goal holds now; tasks of shape (n, 2) give (n,), and (n, m, 2) give (n, m)."""
        ...

    def executable(self, tasks: TaskArray, games: IntArray | None = None) -> BoolArray:
        """Whether each task could be carried out now; shapes as in `achieved`."""
        ...


@runtime_checkable
class SnapshotWorld(World, Protocol):
    """A world whose states can be kept, put back, and drawn later; replay then keeps states in place of frames."""

    def snapshot(self, games: IntArray | None = None) -> Snapshots:
        """The full state of each game. What follows depends on nothing else."""
        ...

    def restore(self, snapshots: Snapshots, games: IntArray | None = None) -> None:
        """Put states back, into any game of any world with the same settings."""
        ...

    def render(self, snapshots: Snapshots) -> Frames:
        """The frames that `observe` would give in those states, without touching any game."""
        ...


@runtime_checkable
class OpenWorld(SnapshotWorld, Protocol):
    """A world that shows more of itself than an agent sees, to a critic, which is needed only while an agent learns."""

    num_facts: int
    """How many facts it tells."""

    def facts(self, snapshots: Snapshots, tasks: TaskArray) -> npt.NDArray[np.uint8]:
        """What is so in each state and matters for its task, (n, num_facts) zeros and ones."""
        ...

    def ahead(self, snapshots: Snapshots, tasks: TaskArray) -> tuple[Snapshots, BoolArray]:
        """What each action would lead to, without touching any game: states (n, actions), and whether each achieves
        the task.
        """
        ...


@runtime_checkable
class ToldWorld(SnapshotWorld, Protocol):
    """A world whose states can be written down and read back, so that a plan can tell from where it began."""

    def state_to_json(self, snapshot: Snapshots) -> dict[str, Any]:
        """The state of one game, (1,), in plain words and numbers."""
        ...

    def state_from_json(self, data: Any) -> Snapshots:
        """The state back, (1,), or a clear error; the data may come from anyone."""
        ...


def check_games(games: npt.ArrayLike, num_games: int) -> IntArray:
    """Game numbers as an array, or a clear error."""
    array = np.asarray(games)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise SkillstackError(f"Games are named by a list of whole numbers, not by {games!r}.")
    if array.size and not 0 <= array.min() <= array.max() < num_games:
        raise SkillstackError(f"Games are numbered from 0 to {num_games - 1}, not {array.min()} to {array.max()}.")
    return _plain(array, np.int64)


def check_actions(actions: npt.ArrayLike, names: tuple[str, ...], count: int) -> IntArray:
    """Action numbers as an array of one for each game, or a clear error."""
    array = np.asarray(actions)
    if array.shape != (count,) or (count and array.dtype.kind not in "iu"):
        raise SkillstackError(
            f"There must be one whole-numbered action for each of {count} games, "
            f"not {array.dtype} of shape {array.shape}."
        )
    if count and not 0 <= array.min() <= array.max() < len(names):
        numbers = ", ".join(f"{number} {name}" for number, name in enumerate(names))
        wrong = array[(array < 0) | (array >= len(names))][0]
        raise SkillstackError(f"There is no action {wrong}. The actions are: {numbers}.")
    return _plain(array, np.int64)


def check_seeds(seeds: npt.ArrayLike, count: int) -> Seeds:
    """Seeds as an array of one for each game, or a clear error."""
    array = np.asarray(seeds)
    if array.dtype.kind in "iu":
        whole = not array.size or bool(array.min() >= 0)
    else:  # NumPy takes small and very large whole numbers in one list for floats
        array = np.asarray(seeds, dtype=object)
        whole = all(isinstance(seed, int) and 0 <= seed < 2**64 for seed in array.flat)
    if array.shape != (count,) or not whole:
        raise SkillstackError(
            f"There must be one seed for each of {count} games, a whole number from 0 to 2^64 - 1, not {seeds!r}."
        )
    return _plain(array, np.uint64)


def check_tasks(tasks: npt.ArrayLike, vocabulary: Vocabulary, count: int, *, per_game: bool) -> TaskArray:
    """Tasks as an array (count, 2), or where several may be asked `per_game` (count, m, 2), or a clear error."""
    array = np.asarray(tasks)
    shapes = (2, 3) if per_game else (2,)
    if array.ndim not in shapes or array.shape[0] != count or array.shape[-1] != 2 or array.dtype.kind not in "iu":
        raise SkillstackError(
            f"Tasks are pairs of word numbers, skill and item, for each of {count} games, "
            f"not {array.dtype} of shape {array.shape}."
        )
    words = (len(vocabulary.skills), len(vocabulary.items))
    if array.size and not (array.min() >= 0 and (array < words).all()):
        raise SkillstackError(
            f"A task's skill must be from 0 to {words[0] - 1} and its item from 0 to {words[1] - 1}: "
            f"{', '.join(vocabulary.skills)}; {', '.join(vocabulary.items)}."
        )
    return _plain(array, np.int64)


def _plain(array: npt.NDArray[Any], dtype: type[Number]) -> npt.NDArray[Number]:
    """A contiguous copy that can be written to: Numba compiles everything once more for any other kind."""
    return np.array(array, dtype=dtype, order="C")
