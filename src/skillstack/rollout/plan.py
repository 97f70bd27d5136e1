"""Plans: who uttered what, when, and how it ended, at every level (section 3.4 of the paper).

The runner records a plan once; the terminal, the viewer, pictures and tests all read it. `docs/plan.md` has the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction

FORMAT = "skillstack-plan"
FORMAT_VERSION = 1

ACHIEVED = "achieved"
LIMIT = "limit"
REFUSED = "not executable"
CUT_OFF = "cut off"
OUTCOMES = {
    ACHIEVED: "the goal holds after the last decision",
    LIMIT: "the level used up its own decisions",
    REFUSED: "the level uttered an instruction that cannot be executed",
    CUT_OFF: "the whole game ran out of steps",
}

START = "start"
"""The setting that tells from where a game began, if not from where its seed has it."""

Chances = dict[str, float]
"""Probabilities by word."""


@dataclass(frozen=True)
class Odds:
    """The probabilities behind one choice."""

    policy: Chances
    """The network alone."""
    grammar: Chances | None = None
    """The grammar alone: for instructions they sum to its share of calls. None where no grammar has a say."""
    reshaped: Chances | None = None
    """Both together, before epsilon and greed; None where that is the policy alone."""


@dataclass
class PlanDecision:
    """One decision of a level: an utterance, which becomes a run of the level below, or an action of its own."""

    step: int
    """Primitive steps taken in the game before it."""
    action: str | None = None
    """The action in words, if the level acted itself."""
    utterance: Instruction | None = None
    """What it uttered, if it called the level below."""
    run: PlanRun | None = None
    """What the call became; None for an action, and for an utterance that could not be executed."""
    reward: float = 0.0
    odds: dict[str, Odds] = field(default_factory=dict)
    """Of the "switch", the "instruction" and the "action", as far as the level has them."""


@dataclass
class PlanRun:
    """One run of a level for one instruction."""

    level: int
    instruction: Instruction
    first_step: int
    last_step: int = 0
    """Primitive steps taken in the game when it ended, so it covers the steps first_step to last_step - 1."""
    outcome: str = ""
    """One of OUTCOMES; empty while it goes on."""
    decisions: list[PlanDecision] = field(default_factory=list)

    def runs(self) -> Iterator[PlanRun]:
        """Itself and all runs below, in order of time."""
        yield self
        for decision in self.decisions:
            if decision.run is not None:
                yield from decision.run.runs()

    @property
    def depth(self) -> int:
        """How many levels were active at the deepest point."""
        return 1 + max((decision.run.depth for decision in self.decisions if decision.run), default=0)


@dataclass
class PlanTree:
    """The plan of one game."""

    world: str
    seed: int
    root: PlanRun
    settings: dict[str, Any] = field(default_factory=dict)
    """How it was played: the step limits and other settings of the runner, and those of the world where it tells."""

    @property
    def success(self) -> bool:
        return self.root.outcome == ACHIEVED

    @property
    def steps(self) -> int:
        return self.root.last_step

    def actions(self) -> list[tuple[str, list[PlanRun]]]:
        """The primitive actions in order of time, each with the chain of runs that led to it, the root first."""
        return list(_actions(self.root, []))

    def moments(self) -> int:
        """How many actions were taken and utterances refused: what a game is counted in when it is watched."""
        return sum(decision.run is None for run in self.root.runs() for decision in run.decisions)

    def until(self, moments: int) -> PlanTree:
        """The plan as it stood after so many moments; what was under way then has no outcome."""
        root, _, _ = _until(self.root, moments)
        return replace(self, root=root)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "world": self.world,
            "seed": self.seed,
            "settings": self.settings,
            "success": self.success,
            "steps": self.steps,
            "root": run_to_json(self.root),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PlanTree:
        """A plan back from `to_json`."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise SkillstackError(f'This is not a plan, as it does not say "format": "{FORMAT}".')
        if data.get("format_version") != FORMAT_VERSION:
            raise SkillstackError(
                f"This plan has format version {data.get('format_version')}; this Skillstack reads {FORMAT_VERSION}."
            )
        try:
            root, settings = _run_from_json(data["root"]), dict(data["settings"])
            return PlanTree(str(data["world"]), int(data["seed"]), root, settings)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SkillstackError(f"This plan is damaged: {error!r}.") from error

    def dumps(self) -> str:
        return json.dumps(self.to_json(), indent=1)


def _actions(run: PlanRun, above: list[PlanRun]) -> Iterator[tuple[str, list[PlanRun]]]:
    chain = [*above, run]
    for decision in run.decisions:
        if decision.action is not None:
            yield decision.action, chain
        elif decision.run is not None:
            yield from _actions(decision.run, chain)


def _until(run: PlanRun, left: int) -> tuple[PlanRun, int, bool]:
    """A run cut after so many moments, how many of them are left after it, and whether it had ended by then."""
    decisions = []
    whole = bool(run.outcome)
    for decision in run.decisions:
        if left <= 0:
            whole = False
            break
        if decision.run is None:
            decisions.append(decision)
            left -= 1
            continue
        below, left, ended = _until(decision.run, left)
        decisions.append(replace(decision, run=below, reward=decision.reward if ended else 0.0))
        whole = whole and ended
    cut = replace(run, decisions=decisions)
    return cut if whole else replace(cut, outcome="", last_step=0), left, whole


def run_to_json(run: PlanRun) -> dict[str, Any]:
    return {
        "level": run.level,
        "instruction": str(run.instruction),
        "first_step": run.first_step,
        "last_step": run.last_step,
        "outcome": run.outcome,
        "decisions": [decision_to_json(decision) for decision in run.decisions],
    }


def decision_to_json(decision: PlanDecision) -> dict[str, Any]:
    return {
        "step": decision.step,
        "action": decision.action,
        "utterance": None if decision.utterance is None else str(decision.utterance),
        "run": None if decision.run is None else run_to_json(decision.run),
        "reward": decision.reward,
        "odds": {
            name: {"policy": odds.policy, "grammar": odds.grammar, "reshaped": odds.reshaped}
            for name, odds in decision.odds.items()
        },
    }


def _run_from_json(data: Mapping[str, Any]) -> PlanRun:
    if data["outcome"] not in ("", *OUTCOMES):
        raise ValueError(f"unknown outcome {data['outcome']}")
    return PlanRun(
        level=int(data["level"]),
        instruction=Instruction(*str(data["instruction"]).split()),
        first_step=int(data["first_step"]),
        last_step=int(data["last_step"]),
        outcome=str(data["outcome"]),
        decisions=[_decision_from_json(decision) for decision in data["decisions"]],
    )


def _decision_from_json(data: Mapping[str, Any]) -> PlanDecision:
    if (data["action"] is None) == (data["utterance"] is None) or (data["run"] and data["utterance"] is None):
        raise ValueError("a decision is either an action or an utterance")
    return PlanDecision(
        step=int(data["step"]),
        action=data["action"],
        utterance=None if data["utterance"] is None else Instruction(*data["utterance"].split()),
        run=None if data["run"] is None else _run_from_json(data["run"]),
        reward=float(data["reward"]),
        odds={name: Odds(odds["policy"], odds["grammar"], odds["reshaped"]) for name, odds in data["odds"].items()},
    )
