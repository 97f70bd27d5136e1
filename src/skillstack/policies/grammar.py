"""The stochastic temporal grammar of one level (sections 3.3 and 4.2 of the paper): counts, and reshaping by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError, unknown
from skillstack.instructions import Instruction, TaskArray, TaskSet

CALL = 0
"""e = 0: hand over to the base policy with an instruction."""
ACT = 1
"""e = 1: take a primitive action oneself."""

START_NAME = "start"
ACT_NAME = "act"
CALL_PREFIX = "call "

Floats = npt.NDArray[np.floating[Any]]
States = npt.NDArray[np.int64]

_MOST = 2**53
"""Up to here floating point numbers hold every whole number, so that no count or weight can overflow."""


class Reshaped(NamedTuple):
    """The switch and instruction policies after the grammar, as log-probabilities; n is the size of the batch."""

    log_switch: Floats  # (n, 2), CALL and ACT
    log_instruction: Floats  # (n, n_base), skill * items + item


class Prior(NamedTuple):
    """What the grammar itself says: the two factors that it brings into the paper's equations."""

    switch: Floats  # (n, 2): sum over g' of rho(e, g' | previous)
    instruction: Floats  # (n, n_base): rho(e = CALL, g' | previous), which sums to the switch's CALL


@dataclass(frozen=True)
class Transition:
    """One counted step of a task's chain."""

    previous: int
    following: int
    count: int
    probability: float


class Grammar:
    """q_k and rho_k for every task of level k, as counts of what followed what in positive episodes.

    A state of the chain is a small integer: 0 to `n_base` - 1 is CALL with that instruction (every skill of the base
    with every item of it, skills outermost), `act_state` is ACT, and `start_state` stands before the first decision,
    so that q is the row of rho that starts there.
    """

    def __init__(self, tasks: TaskSet, base: TaskSet, smoothing: float = 0.0) -> None:
        """`smoothing` is the weight, in counts, of the uniform distribution; 0 is the paper's maximum likelihood."""
        _check_task_sets(tasks, base)
        if not _is_number(smoothing) or not 0 <= smoothing < _MOST:
            raise SkillstackError(f"The grammar's smoothing must be a number from 0 upwards, not {smoothing}.")
        self.tasks = tasks
        self.base = base
        self._smoothing, self._doubt = float(smoothing), 0.0

        self.n_base = len(base.skills) * len(base.items)
        self.act_state = self.n_base
        self.start_state = self.n_base + 1
        calls = tuple(f"{CALL_PREFIX}{instruction}" for instruction in base.vocabulary.tasks)
        self.state_names = (*calls, ACT_NAME, START_NAME)

        # Both switch values have 1/2, as in the uniform distribution over the paper's tuples <e, g'>.
        self._uniform = np.append(np.full(self.n_base, 0.5 / self.n_base), 0.5)  # (n_base + 1,)
        words = tasks.vocabulary
        self._task_numbers = {task: (words.skills.index(task.skill), words.items.index(task.item)) for task in tasks}
        self._known = frozenset(self._task_numbers.values())
        self.clear()

    def clear(self) -> None:
        """Forget all counts: nothing is preferred any more."""
        # Which row of the pool holds (skill, item, previous). Row 0 is never counted, and so uniform: with many items
        # most transitions never happen, and a table of all of them would not fit.
        self._rows = np.zeros((len(self.tasks.skills), len(self.tasks.items), self.n_base + 2), dtype=np.int32)
        self._used_rows = 1
        self._counts = np.zeros((1, self.n_base + 1), dtype=np.int64)
        # Reshaping is done at every decision and counting at every success, so the logarithms are kept: a column for
        # each call, then CALL, then ACT.
        self._log_prior = np.zeros((1, self.n_base + 2))
        self._refresh(np.zeros(1, dtype=np.int32))

    @property
    def smoothing(self) -> float:
        return self._smoothing

    @property
    def doubt(self) -> float:
        """The share that the uniform distribution has for now, however much is counted; it is not saved."""
        return self._doubt

    @doubt.setter
    def doubt(self, share: float) -> None:
        if not _is_number(share) or not 0 <= share <= 1:
            raise SkillstackError(f"The grammar's doubt must be a share from 0 to 1, not {share}.")
        if share != self._doubt:
            self._doubt = float(share)
            self._refresh(np.arange(self._used_rows, dtype=np.int32))

    # States

    def call_state(self, pairs: TaskArray) -> States:
        """The states of calling the instructions given as word numbers: (n, 2) to (n,)."""
        shape = len(self.base.skills), len(self.base.items)
        return np.asarray(np.ravel_multi_index((pairs[..., 0], pairs[..., 1]), shape), dtype=np.int64)

    def call_pairs(self, states: States) -> TaskArray:
        """The word numbers of calls, or of the columns of `Reshaped.log_instruction`: (n,) to (n, 2)."""
        return np.stack(np.divmod(states, len(self.base.items)), axis=-1)

    def states(self, switch: npt.NDArray[np.integer[Any]], pairs: TaskArray) -> States:
        """The states of decisions: ACT is one state, whatever instruction was not carried out. (n,), (n, 2) to (n,)."""
        acts = switch == ACT
        return np.where(acts, self.act_state, self.call_state(np.where(acts[..., None], 0, pairs)))

    # Learning (section 4.2)

    def update(self, task: Sequence[int] | TaskArray, states: Sequence[int] | States) -> None:
        """Count one positive episode of a task (two word numbers), given as the states of its decisions in order."""
        following = np.asarray(states, dtype=np.int64)
        skill, item = (int(word) for word in task)
        if (skill, item) not in self._known:
            raise SkillstackError(f"The grammar has no task with the word numbers {skill} and {item}.")
        if following.size and not 0 <= following.min() <= following.max() <= self.act_state:
            raise SkillstackError(f"An episode's states lie between 0 and {self.act_state}, not as in {states}.")
        previous = np.append(self.start_state, following)[:-1]
        rows = self._allocate(skill, item, previous)
        np.add.at(self._counts, (rows, following), 1)
        self._refresh(rows)

    def merge(self, other: Grammar) -> None:
        """Add another grammar's counts, as if this one had also seen its episodes."""
        if (self.tasks, self.base) != (other.tasks, other.base):
            raise SkillstackError("Two grammars can be merged only if they are over the same tasks and base tasks.")
        for skill, item in self._known:
            previous = np.flatnonzero(other._rows[skill, item])
            mine, theirs = self._allocate(skill, item, previous), other._rows[skill, item, previous]
            self._counts[mine] += other._counts[theirs]
            self._refresh(mine)

    def _allocate(self, skill: int, item: int, previous: States) -> npt.NDArray[np.int32]:
        """The rows in which to count what follows, new ones where there are none yet."""
        rows = self._rows[skill, item]  # a view
        new = np.unique(previous[rows[previous] == 0])
        needed = self._used_rows + len(new)
        if needed > len(self._counts):
            more = ((0, needed), (0, 0))
            self._counts, self._log_prior = np.pad(self._counts, more), np.pad(self._log_prior, more)
        rows[new] = np.arange(self._used_rows, needed)
        self._used_rows = needed
        return np.asarray(rows[previous])

    # Acting (section 3.3)

    @np.errstate(all="ignore")  # the logarithm of 0 is meant, and what is not finite is looked at below
    def reshape(
        self,
        tasks: TaskArray,  # (n, 2)
        previous: States,  # (n,), `start_state` where t = 0
        log_switch: Floats,  # (n, 2)
        log_skill: Floats,  # (n, skills of the base)
        log_item: Floats,  # (n, items of the base)
    ) -> Reshaped:
        """The paper's four equations: those for t = 0 are the row of `start_state`, those for t > 0 the others.

        Where policy and grammar have no overlap, the policy stands alone; where a policy allows nothing at all, it is
        taken for uniform. The result (float64) is never NaN: a policy with NaN or +inf raises FloatingPointError.
        """
        rows = self._rows[tasks[:, 0], tasks[:, 1], previous]  # (n,)
        log_prior = self._log_prior.take(rows, axis=0)  # (n, n_base + 2)
        log_policy = (log_skill[:, :, None] + log_item[:, None, :]).reshape(len(rows), self.n_base)
        return Reshaped(
            _log_product(log_switch, log_prior[:, self.n_base :]),
            _log_product(log_policy, log_prior[:, : self.n_base]),
        )

    def prior(self, tasks: TaskArray, previous: States) -> Prior:
        """The grammar's own probabilities after the previous states, for each of a batch of tasks."""
        return self._prior(self._rows[tasks[:, 0], tasks[:, 1], previous])

    def _prior(self, rows: npt.NDArray[np.int32]) -> Prior:
        probability = self._probability(rows)
        calls = probability[:, : self.n_base]
        return Prior(np.stack([calls.sum(axis=1), probability[:, self.act_state]], axis=1), calls)

    def _probability(self, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        """(count + a uniform) / (total + a), and by a share of doubt the uniform one: (n,) to (n, n_base + 1)."""
        weight = np.where(rows == 0, 1.0, self._smoothing)  # (n,); all that an uncounted row has is the uniform part
        smoothed = self._counts[rows] + weight[:, None] * self._uniform
        probability = smoothed / smoothed.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - self._doubt) * probability + self._doubt * self._uniform)

    @np.errstate(divide="ignore")
    def _refresh(self, rows: npt.NDArray[np.int32]) -> None:
        prior = self._prior(rows)
        self._log_prior[rows] = np.log(np.hstack([prior.instruction, prior.switch]))

    # Looking inside

    def episodes(self, task: Instruction) -> int:
        """How many positive episodes of this task were counted."""
        skill, item = self._numbers(task)
        return int(self._counts[self._rows[skill, item, self.start_state]].sum())

    def transitions(self, task: Instruction) -> list[Transition]:
        """What was counted for a task, the start first, then in the order of the states."""
        skill, item = self._numbers(task)
        found = []
        counted: list[int] = np.flatnonzero(self._rows[skill, item]).tolist()
        for previous in sorted(counted, key=lambda state: state != self.start_state):
            row = self._rows[skill, item, previous]
            (probability,) = self._probability(row[None])
            found += [
                Transition(previous, state, int(self._counts[row, state]), float(probability[state]))
                for state in np.flatnonzero(self._counts[row]).tolist()
            ]
        return found

    def _numbers(self, task: Instruction) -> tuple[int, int]:
        if task not in self._task_numbers:
            raise unknown("task", str(task), map(str, self.tasks))
        return self._task_numbers[task]

    def __eq__(self, other: object) -> bool:
        """The same tasks, smoothing and counts, in whatever order they were learned."""
        if not isinstance(other, Grammar):
            return NotImplemented
        if (self.tasks, self.base, self.smoothing) != (other.tasks, other.base, other.smoothing):
            return False
        counted = self._rows > 0
        return np.array_equal(counted, other._rows > 0) and np.array_equal(
            self._counts[self._rows[counted]], other._counts[other._rows[counted]]
        )

    def __repr__(self) -> str:
        episodes = sum(self.episodes(task) for task in self.tasks)
        return f"<Grammar of {len(self.tasks)} tasks over {self.n_base} instructions, from {episodes} episodes>"

    # Saving

    def to_json(self) -> dict[str, Any]:
        """Everything, in words, in an order that does not depend on the order of learning."""
        counts: dict[str, dict[str, dict[str, int]]] = {}
        for task in self.tasks:
            for step in self.transitions(task):
                rows = counts.setdefault(str(task), {})
                row = rows.setdefault(self.state_names[step.previous], {})
                row[self.state_names[step.following]] = step.count
        return {
            "tasks": [str(task) for task in self.tasks],
            "base": [str(task) for task in self.base],
            "smoothing": self.smoothing,
            "counts": counts,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Grammar:
        """A grammar back from `to_json`; what is damaged or foreign is named in a `SkillstackError`."""
        fields = _mapping(data, "it")
        for key in ("tasks", "base", "smoothing", "counts"):
            if key not in fields:
                raise _damaged(f'it has no "{key}"')
        grammar = cls(_task_set(fields, "tasks"), _task_set(fields, "base"), fields["smoothing"])
        for task, rows in _mapping(fields["counts"], '"counts"').items():
            grammar._load_task(task, _mapping(rows, f'what it has for "{task}"'))
        return grammar

    def _load_task(self, task: str, rows: Mapping[str, Any]) -> None:
        skill, item = self._numbers(_instruction(task))
        states = {name: state for state, name in enumerate(self.state_names)}
        for name, row in rows.items():
            if name not in states:
                raise _damaged(f'"{task}" has a state "{name}" that is not "{START_NAME}", "{ACT_NAME}" or a base task')
            for following, count in _mapping(row, f'what it has for "{task}" after "{name}"').items():
                if states.get(following, self.start_state) == self.start_state:
                    raise _damaged(f'"{task}" goes from "{name}" to "{following}", not to "{ACT_NAME}" or a base task')
                if type(count) is not int or not 0 < count < _MOST:
                    raise _damaged(f'"{task}" has {count!r} from "{name}" to "{following}", where a count should be')
                (index,) = self._allocate(skill, item, np.array([states[name]]))
                self._counts[index, states[following]] = count
        self._refresh(np.unique(self._rows[skill, item]))


def _log_product(log_policy: Floats, log_prior: Floats) -> Floats:
    """The normalised product of two distributions, or the first alone where they have no overlap: (n, m)."""
    product = log_policy + log_prior
    top = product.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        product = np.where(np.isfinite(top), product, _alone(log_policy))
        top = product.max(axis=1, keepdims=True)
    product -= top
    return np.asarray(product - np.log(np.exp(product).sum(axis=1, keepdims=True)))


def _alone(log_policy: Floats) -> Floats:
    """A policy as it is, or uniform where it allows nothing."""
    top = log_policy.max(axis=1, keepdims=True)
    if not (top < math.inf).all():
        raise FloatingPointError("A policy's log-probabilities hold NaN or +inf; its weights have probably diverged.")
    return np.where(top > -math.inf, log_policy, 0.0)


def _check_task_sets(tasks: TaskSet, base: TaskSet) -> None:
    if not base:
        raise SkillstackError("A grammar needs base tasks to call; the terminal policy has none, and no grammar.")
    for kind, words, base_words in (("skill", tasks.skills, base.skills), ("item", tasks.items, base.items)):
        if words[: len(base_words)] != base_words:
            raise SkillstackError(
                f"A grammar's tasks must begin with the base's {kind}s, {', '.join(base_words)}, in this order, "
                f"so that words keep their numbers; they are {', '.join(words)}."
            )


# Reading what may be damaged


def _damaged(what: str) -> SkillstackError:
    return SkillstackError(f"This is not a saved grammar: {what}.")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _damaged(f"{what} is not an object with names")
    return value


def _task_set(fields: Mapping[str, Any], key: str) -> TaskSet:
    if not isinstance(fields[key], list):
        raise _damaged(f'"{key}" is not a list of tasks')
    return TaskSet(tuple(_instruction(text) for text in fields[key]))


def _instruction(text: object) -> Instruction:
    words = text.split() if isinstance(text, str) else []
    if len(words) != 2:
        raise _damaged(f"{text!r} stands where a task such as 'stack blue' should be")
    return Instruction(*words)
