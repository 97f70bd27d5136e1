"""Plans for tests: small ones by hand, real ones that the two-room world's oracle plays, and any at all."""

import numpy as np
from hypothesis import strategies as st

from skillstack.instructions import Instruction
from skillstack.rollout.plan import ACHIEVED, OUTCOMES, Odds, PlanDecision, PlanRun, PlanTree
from skillstack.worlds.rooms.oracle import shortest_path
from skillstack.worlds.rooms.world import RoomsWorld

Part = str | PlanRun | PlanDecision


def run(level: int, words: str, *parts: Part, outcome: str = ACHIEVED) -> PlanRun:
    """A run by hand, its steps not yet counted: `tree` does that. A part is an action, a run or a whole decision."""
    return PlanRun(level, Instruction(*words.split()), 0, 0, outcome, [_decision(part) for part in parts])


def refused(words: str) -> PlanDecision:
    """An utterance that could not be executed."""
    return PlanDecision(0, utterance=Instruction(*words.split()), reward=-0.5)


def tree(root: PlanRun, seed: int = 0, world: str = "rooms") -> PlanTree:
    """The plan of a root run, with the steps counted."""
    _count(root, 0)
    return PlanTree(world, seed, root)


def stack_blue() -> PlanTree:
    """The paper's example, by hand: with the calls that only hand an instruction down."""
    get = run(2, "get blue", run(1, "get blue", find(0, "move forward", "move forward", "turn left"), "pick up"))
    search = run(2, "find blue", run(1, "find blue", find(0, "turn right", "move forward")))
    return tree(run(3, "stack blue", get, search, run(2, "put blue", "put down")))


def find(level: int, *actions: str, item: str = "blue", outcome: str = ACHIEVED) -> PlanRun:
    return run(level, f"find {item}", *actions, outcome=outcome)


def oracle_plan(world: RoomsWorld, words: str, seed: int) -> PlanTree:
    """A real game of "get x" or "stack x", played by the shortest ways."""
    root = Instruction(*words.split())
    world.reset(world.description.vocabulary.encode([root]), [seed], [0])
    get = run(1, f"get {root.item}", _walk(world, root.item), _step(world, "pick up"))
    if root.skill == "get":
        return tree(get, seed)
    search = run(1, f"find {root.item}", _walk(world, root.item))
    return tree(run(2, words, get, search, run(1, f"put {root.item}", _step(world, "put down"))), seed)


def _walk(world: RoomsWorld, item: str) -> PlanRun:
    vocabulary = world.description.vocabulary
    path = shortest_path(world.state[0], vocabulary.encode(Instruction("find", item)), hands=False)
    return find(0, *(_step(world, world.description.actions[action]) for action in path), item=item)


def _step(world: RoomsWorld, action: str) -> str:
    world.step(np.array([world.description.actions.index(action)]), np.array([0]))
    return action


def _decision(part: Part) -> PlanDecision:
    if isinstance(part, PlanDecision):
        return part
    if isinstance(part, PlanRun):
        return PlanDecision(0, utterance=part.instruction, run=part)
    return PlanDecision(0, action=part)


def _count(part: PlanRun, step: int) -> int:
    part.first_step = step
    for decision in part.decisions:
        decision.step = step
        if decision.run is not None:
            step = _count(decision.run, step)
        elif decision.action is not None:
            step += 1
    part.last_step = step
    return step


# Any plan

WORDS = st.sampled_from(("find", "get", "put", "stack", "open", "goto", 'a<b&"c'))
ITEMS = st.sampled_from(("blue", "white", "orange", "key", "box", "<&'>"))
ACTIONS = st.sampled_from(("move forward", "turn left", "pick up", "put down", "toggle", "noop"))
OUTCOME = st.sampled_from(tuple(OUTCOMES))


@st.composite
def any_plan(draw: st.DrawFn, most_levels: int = 5, most_decisions: int = 3) -> PlanTree:
    """A plan of any shape, whether or not a game could come out like that."""
    root = draw(_any_run(draw(st.integers(0, most_levels - 1)), most_decisions))
    return tree(root, draw(st.integers(0, 2**64 - 1)), draw(st.sampled_from(("rooms", "doors"))))


@st.composite
def _any_run(draw: st.DrawFn, level: int, most: int) -> PlanRun:
    words = f"{draw(WORDS)} {draw(ITEMS)}"
    if level == 0:
        return run(0, words, *draw(st.lists(ACTIONS, max_size=15)), outcome=draw(OUTCOME))
    parts: list[PlanDecision] = []
    for kind in draw(st.lists(st.sampled_from(("act", "call", "refuse")), max_size=most)):
        part = draw(ACTIONS) if kind == "act" else draw(_any_run(level - 1, most))
        decision = refused(f"{draw(WORDS)} {draw(ITEMS)}") if kind == "refuse" else _decision(part)
        decision.reward = draw(st.floats(-1, 1))
        decision.odds = draw(st.dictionaries(st.sampled_from(("switch", "instruction", "action")), _any_odds()))
        parts.append(decision)
    return run(level, words, *parts, outcome=draw(OUTCOME))


def _any_odds() -> st.SearchStrategy[Odds]:
    chances = st.dictionaries(st.sampled_from(("call", "act", "find blue", "toggle")), st.floats(0, 1))
    return st.builds(Odds, chances, st.none() | chances, st.none() | chances)
