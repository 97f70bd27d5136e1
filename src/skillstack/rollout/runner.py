"""Algorithm 1 of the paper for many games at once: each game has its own stack of calls, each level one forward pass.

A sweep gives every game one decision at the level on top of its stack, and, where that is a call, at the levels below
down to an action; then all games step together. Going through the levels from the top, all games that are at a level
decide in one batch. Then the sweep goes back up: a run ends on success, on its limit, or on an utterance that cannot be
executed, and its caller looks at its own goal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from itertools import islice
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, TaskArray, TaskSet, Vocabulary
from skillstack.policies.grammar import CALL
from skillstack.randomness import mix, uniforms
from skillstack.rollout.choices import DRAWS, Choices, Exploration, choose
from skillstack.rollout.episode import Decisions, Episode
from skillstack.rollout.plan import ACHIEVED, CUT_OFF, LIMIT, REFUSED, PlanTree
from skillstack.rollout.player import Floats, Player
from skillstack.rollout.recorder import PlanRecorder
from skillstack.timing import Timer
from skillstack.worlds.world import BoolArray, IntArray, Limits, Snapshots, SnapshotWorld, World, check_seeds

_PLACES = np.arange(DRAWS, dtype=np.uint64)


@dataclass(frozen=True)
class RunnerConfig:
    """How games are played."""

    limits: Limits = field(default_factory=Limits)
    """Step limits of runs, levels and games."""
    greedy: bool = False
    """Take the likeliest choice in place of a drawn one."""
    grammar: bool = True
    """Let the grammars guide the choice of switch and instruction."""
    top_grammar: bool = True
    """Let the top level's own grammar guide it, too; those below keep theirs."""
    epsilon: float = 0.0
    """How often each choice of the top level is made at random."""
    at_once: bool = False
    """End a call whose goal holds already at once; by Algorithm 1, the default, it takes one decision even so."""

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise SkillstackError(f"epsilon is a probability, from 0 to 1, not {self.epsilon}.")


@dataclass(frozen=True)
class Assignment:
    """A game to play. With the same weights it comes out the same, whichever games are played beside it.

    Networks round differently for batches of different sizes, so that about one drawn choice in a million may differ.
    """

    task: TaskArray
    """(2,): word numbers of the player's vocabulary."""
    seed: int
    start: Snapshots | None = None
    """(1,): the state to begin in, in place of the one that the seed makes."""


class Runner:
    """Plays games of a world with a player: RUN(k, g) of the paper, for as many games as the world holds."""

    def __init__(
        self,
        world: World,
        player: Player,
        config: RunnerConfig | None = None,
        *,
        plans: bool = False,
        hindsight: bool = False,
        executable: bool = False,
        timer: Timer | None = None,
    ) -> None:
        """`plans` records a plan tree of each game, `hindsight` which other tasks it achieved on the way.

        `executable` keeps with each decision which instructions could have been carried out, the one given or not.
        `timer` collects the time of network and world; the rest of the time around them is bookkeeping.
        """
        self.world, self.player = world, player
        self.config = config or RunnerConfig()
        self.timer = timer or Timer("runner")
        self._snapshots = world if isinstance(world, SnapshotWorld) else None  # asked once: the check is slow
        self._plans, self._hindsight, self._ask_executable = plans, hindsight, executable
        self._skill_words, self._item_words = _translation(player, world)
        self._known = [_known_pairs(stage.base, player.vocabulary) for stage in player.stages]
        size, levels = world.num_games, len(player.stages)
        player.set_up(size)
        # What each slot plays, and the stack of its calls: a run of level k only calls level k - 1, so the stack is the
        # levels from the top down to `cursor`.
        self._assignments: list[tuple[int, Assignment] | None] = [None] * size
        self._cursor = np.zeros(size, dtype=np.int64)
        self._seeds = np.zeros(size, dtype=np.uint64)  # of the draws
        self._draws = np.zeros(size, dtype=np.uint64)  # decisions drawn so far in this game
        self._steps, self._calls, self._refusals = (np.zeros(size, dtype=np.int64) for _ in range(3))
        self._tasks = np.zeros((size, levels, 2), dtype=np.int64)
        self._decisions = np.zeros((size, levels), dtype=np.int64)
        self._previous = np.zeros((size, levels), dtype=np.int64)  # state of the grammar
        self._kept: list[list[tuple[Decisions, int]]] = [[] for _ in range(size)]  # the top level's decisions
        self._reached: list[list[BoolArray]] = [[] for _ in range(size)]  # tasks that held: at first, after decisions
        self._recorder: PlanRecorder | None = None

    def play(
        self,
        tasks: Sequence[Instruction],
        seeds: Sequence[int],
        level: int | None = None,
        epsilon: float | None = None,
        *,
        top_grammar: bool | None = None,
    ) -> list[Episode]:
        """Play one game for each task and seed, as many at once as the world holds; episodes in the same order.

        `epsilon` and `top_grammar` as in the runner's config, where these games differ from it.
        """
        codes = self.player.vocabulary.encode(tasks)
        check_seeds(seeds, len(codes))
        games = [Assignment(task, int(seed)) for task, seed in zip(codes, seeds, strict=True)]
        episodes = dict(self.stream(games, level, epsilon, top_grammar=top_grammar))
        return [episodes[number] for number in range(len(games))]

    def stream(
        self,
        assignments: Iterable[Assignment],
        level: int | None = None,
        epsilon: float | None = None,
        *,
        top_grammar: bool | None = None,
    ) -> Iterator[tuple[int, Episode]]:
        """Play games as they come and yield each, with its number, as it ends; a new one takes its place at once."""
        self._set_out(level, epsilon, top_grammar)
        queue = enumerate(assignments)
        self._begin_games(np.arange(self.world.num_games), queue)
        while any(entry is not None for entry in self._assignments):
            ended = self._sweep()
            finished = [self._finish(slot, outcome) for slot, outcome in ended]
            self._begin_games(np.array([slot for slot, _ in ended], dtype=np.int64), queue)
            yield from finished

    def watch(
        self, assignment: Assignment, level: int | None = None, epsilon: float | None = None
    ) -> Iterator[PlanTree]:
        """Play one game in slot 0 and yield its plan, which grows: at the start, then after each sweep.

        A sweep ends in an action, or in an utterance that cannot be executed or that asks for what holds already.
        Whoever has seen enough stops asking.
        """
        if not self._plans:
            raise SkillstackError("A game can be watched only by a runner that records plans.")
        self._set_out(level, epsilon)
        assert self._recorder is not None, "plans are recorded"
        self._begin_games(np.arange(1), enumerate([assignment]))
        tree = self._recorder.tree(0)
        yield tree
        while self._assignments[0] is not None:
            for slot, outcome in self._sweep():
                self._finish(slot, outcome)
            yield tree

    def _set_out(self, level: int | None, epsilon: float | None, top_grammar: bool | None = None) -> None:
        """Get ready for games of one level."""
        self._top = len(self.player.stages) - 1 if level is None else level
        if not 0 <= self._top < len(self.player.stages):
            raise SkillstackError(f"The player has levels 0 to {len(self.player.stages) - 1}, not {self._top}.")
        config = self.config if epsilon is None else replace(self.config, epsilon=epsilon)
        config = config if top_grammar is None else replace(config, top_grammar=top_grammar)
        self._top_grammar = config.top_grammar
        self._exploration = Exploration(config.greedy, config.epsilon)
        stage, encode = self.player.stages[self._top], self.player.vocabulary.encode
        self._every = self._in_world(encode(stage.tasks))
        if stage.base:
            base = encode(stage.base.vocabulary.tasks)
            self._base, self._known_base = self._in_world(base), self._known[self._top][tuple(base.T)]
        self._recorder = None
        if self._plans:
            self._recorder = PlanRecorder(self.world, self.player, self._top, self._settings(config))
        self._assignments = [None] * self.world.num_games  # an earlier stream may have been left before its end

    def _settings(self, config: RunnerConfig) -> dict[str, Any]:
        """How games are played, as JSON has it; the world's settings where it tells them in a dataclass."""
        world = getattr(self.world, "config", None)
        settings = {
            "runner": asdict(config),
            "world": asdict(world) if is_dataclass(world) and not isinstance(world, type) else None,
        }
        return cast(dict[str, Any], json.loads(json.dumps(settings)))

    def _begin_games(self, slots: IntArray, queue: Iterator[tuple[int, Assignment]]) -> None:
        new = list(islice(queue, len(slots)))
        slots = slots[: len(new)]
        if not new:
            return
        for slot, (number, assignment) in zip(slots.tolist(), new, strict=True):
            self._assignments[slot] = (number, assignment)
            self._kept[slot] = []
        tasks = np.stack([assignment.task for _, assignment in new])
        seeds = np.array([assignment.seed for _, assignment in new], dtype=np.uint64)
        self._seeds[slots] = mix(seeds, 1)
        for counter in (self._draws, self._steps, self._calls, self._refusals):
            counter[slots] = 0
        with self.timer("world"):
            self.world.reset(self._in_world(tasks), seeds, slots)
        starts = [assignment.start for _, assignment in new]
        self._restore(slots, starts)
        if self._recorder:
            self._recorder.begin_games(slots, seeds, starts)
        self._begin_runs(self._top, slots, tasks)
        if self._hindsight:
            for slot in slots.tolist():
                self._reached[slot] = []
            self._note_reached(slots)

    def _restore(self, slots: IntArray, starts: Sequence[Snapshots | None]) -> None:
        """Put games that do not begin as their seeds have it into the states that they begin in."""
        for slot, start in zip(slots.tolist(), starts, strict=True):
            if start is None:
                continue
            if self._snapshots is None:
                raise SkillstackError("A game of this world begins as its seed has it, as the world has no snapshots.")
            self._snapshots.restore(start, np.array([slot]))

    def _begin_runs(self, level: int, slots: IntArray, tasks: TaskArray) -> None:
        """RUN(k, g) is entered."""
        self._cursor[slots] = level
        self._tasks[slots, level] = tasks
        self._decisions[slots, level] = 0
        grammar = self.player.grammars[level]
        self._previous[slots, level] = grammar.start_state if grammar else 0
        self.player.begin(level, slots)
        if self._recorder:
            self._recorder.begin_runs(level, slots, tasks, self._steps[slots])

    def _sweep(self) -> list[tuple[int, str]]:
        """One decision of every game, down to an action where it leads to one; returns the games that ended."""
        slots = np.array([slot for slot, entry in enumerate(self._assignments) if entry is not None])
        with self.timer("world"):
            frames = self.world.observe(slots)
        with self.timer("network"):
            self.player.look(slots, frames)
        self._seen = (slots, frames)
        actions = np.full(self.world.num_games, -1, dtype=np.int64)
        refused = np.zeros(self.world.num_games, dtype=np.bool_)
        for level in range(self._top, -1, -1):
            here = slots[(self._cursor[slots] == level) & (actions[slots] < 0) & ~refused[slots]]
            if len(here):
                self._decide(level, here, actions, refused)
        acting = slots[actions[slots] >= 0]
        if len(acting):
            with self.timer("world"):
                self.world.step(actions[acting], acting)
            self._steps[acting] += 1
        return self._go_back_up(slots, refused)

    def _decide(self, level: int, slots: IntArray, actions: IntArray, refused: BoolArray) -> None:
        """All games at this level decide; calls that can be executed put the level below on top."""
        tasks = self._tasks[slots, level]
        with self.timer("network"):
            proposal = self.player.propose(level, slots, tasks)
        guided = self.config.grammar and (self._top_grammar or level < self._top)
        grammar = self.player.grammars[level] if guided else None
        draws = uniforms(self._seeds[slots][:, None], self._draws[slots][:, None] * np.uint64(DRAWS) + _PLACES)
        exploration = self._exploration if level == self._top else self._exploration._replace(epsilon=0.0)
        choices = choose(proposal, grammar, tasks, self._previous[slots, level], draws, exploration)
        self._draws[slots] += np.uint64(1)
        self._decisions[slots, level] += 1
        if level == self._top:
            self._keep(slots, choices)
        if self._recorder:
            self._recorder.decide(level, slots, choices, grammar, tasks, self._previous[slots, level], self._steps)
        calling = choices.switch == CALL if choices.switch is not None else np.zeros(len(slots), dtype=np.bool_)
        acting = slots[~calling]
        actions[acting] = choices.action[~calling]
        if calling.any():
            assert choices.instruction is not None
            self._call(level, slots[calling], choices.instruction[calling], refused)
        self._advance_grammar(level, slots, choices)

    def _call(self, level: int, slots: IntArray, instructions: TaskArray, refused: BoolArray) -> None:
        with self.timer("world"):
            possible = self.world.executable(self._in_world(instructions), slots)
        possible &= self._known[level][instructions[:, 0], instructions[:, 1]]
        self._calls[slots] += 1
        self._refusals[slots] += ~possible
        refused[slots[~possible]] = True
        needed = possible & ~self._done(level, slots, instructions, possible)
        if needed.any():
            self._begin_runs(level - 1, slots[needed], instructions[needed])

    def _done(self, level: int, slots: IntArray, instructions: TaskArray, possible: BoolArray) -> BoolArray:
        """Which calls have nothing to do; a plan has them as runs without decisions."""
        if not self.config.at_once:
            return np.zeros(len(slots), dtype=np.bool_)
        with self.timer("world"):
            done = self.world.achieved(self._in_world(instructions), slots) & possible
        if self._recorder and done.any():
            steps = self._steps[slots[done]]
            self._recorder.begin_runs(level - 1, slots[done], instructions[done], steps)
            for slot, step in zip(slots[done].tolist(), steps.tolist(), strict=True):
                self._recorder.end_run(level - 1, slot, ACHIEVED, step)
        return done

    def _advance_grammar(self, level: int, slots: IntArray, choices: Choices) -> None:
        grammar = self.player.grammars[level]
        if grammar is not None and choices.switch is not None and choices.instruction is not None:
            self._previous[slots, level] = grammar.states(choices.switch, choices.instruction)

    def _keep(self, slots: IntArray, choices: Choices) -> None:
        """Remember the top level's decisions as rows of a batch; they are gathered when the game ends."""
        proposal = choices.proposal
        batch = Decisions(
            states=self._states(slots),
            action=choices.action,
            mu_action=np.exp(proposal.log_action),
            behaviour_action=choices.behaviour_action,
            switch=choices.switch,
            instruction=choices.instruction,
            mu_switch=_exp(proposal.log_switch),
            mu_skill=_exp(proposal.log_skill),
            mu_item=_exp(proposal.log_item),
            behaviour_switch=choices.behaviour_switch,
            behaviour_instruction=choices.behaviour_instruction,
            executable=self._executable(slots) if self._ask_executable and choices.switch is not None else None,
        )
        for row, slot in enumerate(slots.tolist()):
            self._kept[slot].append((batch, row))

    def _executable(self, slots: IntArray) -> BoolArray:
        """Which instructions the top level could give now: (n, skills of the base * items of the base)."""
        with self.timer("world"):
            possible = self.world.executable(np.broadcast_to(self._base, (len(slots), *self._base.shape)), slots)
        return np.asarray(possible & self._known_base)

    def _states(self, slots: IntArray) -> npt.NDArray[Any]:
        if self._snapshots is not None:
            return self._snapshots.snapshot(slots)
        seen, frames = self._seen
        return frames[np.searchsorted(seen, slots)]

    def _note_reached(self, slots: IntArray) -> None:
        """Which of the top level's tasks hold now."""
        with self.timer("world"):
            reached = self.world.achieved(np.broadcast_to(self._every, (len(slots), *self._every.shape)), slots)
        for slot, row in zip(slots.tolist(), reached, strict=True):
            self._reached[slot].append(row)

    def _go_back_up(self, slots: IntArray, refused: BoolArray) -> list[tuple[int, str]]:
        """Close the decisions just made, and the runs that end with them; returns the games that ended, and how."""
        ended = []
        out_of_steps = self._steps >= self.config.limits.episode
        for level in range(self._top + 1):
            here = slots[self._cursor[slots] == level]
            if not len(here):
                continue
            with self.timer("world"):
                achieved = self.world.achieved(self._in_world(self._tasks[here, level]), here) & ~refused[here]
            if self._hindsight and level == self._top:
                self._note_reached(here)
            rewards = self.world.rewards.of(achieved, refused[here])
            limit = self.config.limits.decisions if level else self.config.limits.flat
            spent = self._decisions[here, level] >= limit
            if self._recorder:
                for slot, reward in zip(here.tolist(), rewards.tolist(), strict=True):
                    self._recorder.reward(level, slot, reward)
            for row in np.flatnonzero((rewards != 0) | spent | out_of_steps[here]).tolist():
                slot = int(here[row])
                outcome = _outcome(bool(achieved[row]), bool(rewards[row] < 0), bool(out_of_steps[slot]))
                if self._recorder:
                    self._recorder.end_run(level, slot, outcome, int(self._steps[slot]))
                refused[slot] = False  # a failure ends the call only; its caller goes on
                if level < self._top:
                    self._cursor[slot] = level + 1
                else:
                    ended.append((slot, outcome))
        return ended

    def _finish(self, slot: int, outcome: str) -> tuple[int, Episode]:
        entry = self._assignments[slot]
        assert entry is not None, "only games under way end"
        number, assignment = entry
        self._assignments[slot] = None
        decisions = _gather(self._kept[slot])
        rewards = np.zeros(len(decisions), dtype=np.float32)
        done = np.zeros(len(decisions), dtype=np.bool_)
        rewards[-1] = self.world.rewards.of(np.array(outcome == ACHIEVED), np.array(outcome == REFUSED))
        done[-1] = True
        episode = Episode(
            level=self._top,
            task=assignment.task,
            seed=assignment.seed,
            decisions=decisions,
            rewards=rewards,
            done=done,
            outcome=outcome,
            steps=int(self._steps[slot]),
            calls=int(self._calls[slot]),
            refusals=int(self._refusals[slot]),
            reached=np.stack(self._reached[slot]) if self._hindsight else None,
            plan=self._recorder.tree(slot) if self._recorder else None,
        )
        return number, episode

    def _in_world(self, tasks: TaskArray) -> TaskArray:
        """The player's word numbers as the world's."""
        return np.stack([self._skill_words[tasks[..., 0]], self._item_words[tasks[..., 1]]], axis=-1)


def _outcome(achieved: bool, refused: bool, out_of_steps: bool) -> str:
    if achieved:
        return ACHIEVED
    if refused:
        return REFUSED
    return CUT_OFF if out_of_steps else LIMIT


def _translation(player: Player, world: World) -> tuple[IntArray, IntArray]:
    """Where the player's skills and items are in the world's vocabulary, which may have another order."""
    for task in player.stages[-1].tasks:
        world.description.vocabulary.check(task)
    words = world.description.vocabulary
    return (
        np.array([words.skills.index(skill) for skill in player.vocabulary.skills]),
        np.array([words.items.index(item) for item in player.vocabulary.items]),
    )


def _known_pairs(tasks: TaskSet, vocabulary: Vocabulary) -> BoolArray:
    """Which pairs of skill and item are tasks: a level may utter a pair that the one below was never taught."""
    known = np.zeros((len(vocabulary.skills), len(vocabulary.items)), dtype=np.bool_)
    known[tuple(vocabulary.encode(tasks).T)] = True
    return known


def _exp(log_probability: Floats | None) -> Floats | None:
    return None if log_probability is None else np.exp(log_probability)


def _gather(rows: Sequence[tuple[Decisions, int]]) -> Decisions:
    """One game's decisions out of the batches they were made in."""
    first = rows[0][0]
    columns = {
        entry.name: np.stack([getattr(batch, entry.name)[row] for batch, row in rows])
        for entry in fields(Decisions)
        if getattr(first, entry.name) is not None
    }
    return Decisions(**columns)
