"""Words, instructions, task sets and stages (section 3.1 of the paper): a task and its name are one thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError, unknown

SKILLS = ("find", "get", "put", "stack")
"""The paper's order of acquisition."""

COLOURS = ("red", "yellow", "green", "blue", "purple", "white")
"""The paper's six items, by the names of Minecraft's wool."""

TaskArray = npt.NDArray[np.int64]
"""Tasks as word numbers, shape (..., 2): the skill's and the item's place in a `Vocabulary`."""


@dataclass(frozen=True, order=True)
class Instruction:
    """A task g = <skill, item>, which prints as it is said: "stack blue"."""

    skill: str
    item: str

    def __str__(self) -> str:
        return f"{self.skill} {self.item}"

    @staticmethod
    def parse(text: str, vocabulary: Vocabulary | None = None) -> Instruction:
        """Read "Stack  blue", forgiving of case and spaces.

        >>> str(Instruction.parse("  Stack BLUE "))
        'stack blue'
        """
        vocabulary = vocabulary or DEFAULT_VOCABULARY
        words = text.lower().split()
        if len(words) != 2:
            raise SkillstackError(
                f'"{text}" is not an instruction: say a skill ({", ".join(vocabulary.skills)}) '
                f'and an item ({", ".join(vocabulary.items)}), for example "{vocabulary.tasks[-1]}".'
            )
        instruction = Instruction(*words)
        vocabulary.check(instruction)
        return instruction


@dataclass(frozen=True)
class Vocabulary:
    """The words an agent or a world knows. New words are only ever added at the end, so word numbers stay valid."""

    skills: tuple[str, ...] = SKILLS
    items: tuple[str, ...] = COLOURS

    def __post_init__(self) -> None:
        for kind, words in (("skill", self.skills), ("item", self.items)):
            _check_words(kind, words)
        both = set(self.skills) & set(self.items)
        if both:
            raise SkillstackError(f'"{min(both)}" is both a skill and an item; each word needs one meaning.')

    @property
    def tasks(self) -> tuple[Instruction, ...]:
        """Every skill with every item, skills outermost."""
        return tuple(Instruction(skill, item) for skill in self.skills for item in self.items)

    def check(self, instruction: Instruction) -> None:
        if instruction.skill not in self.skills:
            raise unknown("skill", instruction.skill, self.skills)
        if instruction.item not in self.items:
            raise unknown("item", instruction.item, self.items)

    @overload
    def encode(self, tasks: Instruction) -> TaskArray: ...
    @overload
    def encode(self, tasks: Iterable[Instruction]) -> TaskArray: ...
    def encode(self, tasks: Instruction | Iterable[Instruction]) -> TaskArray:
        """Word numbers, shape (2,) for one instruction and (n, 2) for several."""
        if isinstance(tasks, Instruction):
            self.check(tasks)
            return np.array([self.skills.index(tasks.skill), self.items.index(tasks.item)], dtype=np.int64)
        rows = [self.encode(task) for task in tasks]
        return np.stack(rows) if rows else np.zeros((0, 2), dtype=np.int64)

    def decode(self, task: Sequence[int] | TaskArray) -> Instruction:
        """The instruction that a pair of word numbers stands for."""
        skill, item = task
        return Instruction(self.skills[skill], self.items[item])

    def extended(self, skills: Sequence[str] = (), items: Sequence[str] = ()) -> Vocabulary:
        """The same vocabulary with the words it lacks added at the end."""
        return Vocabulary(
            self.skills + tuple(word for word in skills if word not in self.skills),
            self.items + tuple(word for word in items if word not in self.items),
        )


@dataclass(frozen=True)
class TaskSet:
    """An ordered set of tasks: G_k of the paper, or the part of it that a stage adds."""

    tasks: tuple[Instruction, ...] = ()

    @staticmethod
    def of(skills: Sequence[str], items: Sequence[str]) -> TaskSet:
        return TaskSet(Vocabulary(tuple(skills), tuple(items)).tasks)

    def __post_init__(self) -> None:
        if len(set(self.tasks)) != len(self.tasks):
            raise SkillstackError("A task set holds each task once.")

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __contains__(self, task: object) -> bool:
        return task in self.tasks

    def __or__(self, other: TaskSet) -> TaskSet:
        return TaskSet(self.tasks + tuple(task for task in other.tasks if task not in self.tasks))

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that occur, in order of first appearance."""
        return tuple(dict.fromkeys(task.skill for task in self.tasks))

    @property
    def items(self) -> tuple[str, ...]:
        """The items that occur, in order of first appearance."""
        return tuple(dict.fromkeys(task.item for task in self.tasks))

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.skills, self.items)


@dataclass(frozen=True)
class Stage:
    """Stage k of the acquisition: what it adds to what is known already."""

    level: int
    base: TaskSet
    """G_{k-1}: what the policy below can be told to do; empty for the terminal policy."""
    novel: TaskSet
    """What this stage teaches."""

    @property
    def tasks(self) -> TaskSet:
        """G_k: base and novel tasks together."""
        return self.base | self.novel

    def __str__(self) -> str:
        if not self.base:
            return f"stage {self.level}: learn {', '.join(self.novel.skills)}"
        return f"stage {self.level}: learn {', '.join(self.novel.skills)} on top of {', '.join(self.base.skills)}"


def make_stages(order: str | Sequence[str] = SKILLS, items: str | Sequence[str] = COLOURS) -> tuple[Stage, ...]:
    """One stage a skill, in the order given, each over all the items; words may be given as one text.

    >>> [str(stage) for stage in make_stages("find, put", ["red"])]
    ['stage 0: learn find', 'stage 1: learn put on top of find']
    """
    skills, items = _split(order), _split(items)
    _check_words("skill", skills)
    _check_words("item", items)
    stages: tuple[Stage, ...] = ()
    for skill in skills:
        stages = add_stage(stages, skills=[skill], items=items)
    return stages


def add_stage(stages: Sequence[Stage], skills: Sequence[str] = (), items: Sequence[str] = ()) -> tuple[Stage, ...]:
    """The ladder with one more stage on top, which brings new skills, new items, or both.

    Without `skills` the known skills are learned for the new items; without `items` the new skills for the known items.
    """
    base = stages[-1].tasks if stages else TaskSet()
    tasks = TaskSet.of(skills or base.skills, items or base.items)
    novel = TaskSet(tuple(task for task in tasks if task not in base))
    if not novel:
        raise SkillstackError("A new stage must bring a skill or an item that the stages below do not have.")
    return (*stages, Stage(len(stages), base, novel))


def _split(words: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(words.lower().replace(",", " ").split()) if isinstance(words, str) else tuple(words)


def stages_to_words(stages: Sequence[Stage]) -> list[list[str]]:
    """A ladder as it is written down: what each stage adds."""
    return [[str(task) for task in stage.novel] for stage in stages]


def stages_from_words(added: Sequence[Sequence[str]]) -> tuple[Stage, ...]:
    """A ladder back from what each stage adds.

    >>> stages_from_words(stages_to_words(make_stages())) == make_stages()
    True
    """
    stages: list[Stage] = []
    for tasks in added:
        base = stages[-1].tasks if stages else TaskSet()
        novel = TaskSet(tuple(Instruction(*task.split()) for task in tasks))
        stages.append(Stage(len(stages), base, novel))
    return tuple(stages)


def _check_words(kind: str, words: Sequence[str]) -> None:
    if not words:
        raise SkillstackError(f"There must be at least one {kind}.")
    for word in words:
        if not word or word != word.lower() or len(word.split()) != 1:
            raise SkillstackError(f'"{word}" is no {kind}: use one lower-case word.')
    twice = {word for word in words if list(words).count(word) > 1}
    if twice:
        raise SkillstackError(f'The {kind} "{min(twice)}" is listed twice; list each {kind} once.')


DEFAULT_VOCABULARY = Vocabulary()
