"""A plan in one plain sentence, as the agent would tell it."""

from __future__ import annotations

from collections.abc import Sequence

from skillstack.instructions import Instruction
from skillstack.rollout.plan import ACHIEVED, CUT_OFF, LIMIT, REFUSED, PlanDecision, PlanRun, PlanTree
from skillstack.rollout.plan_text import core, is_terminal, terminal_steps
from skillstack.worlds.rooms.looks import WOOL

PHRASES = {  # past tense and infinitive; {} is the thing
    "find": ("found {}", "find {}"),
    "get": ("got {}", "get {}"),
    "put": ("put {} down", "put {} down"),
    "stack": ("stacked {}", "stack {}"),
}
PAST = {  # of verbs that other worlds' skills and actions may begin with; what is not here is quoted
    "attack": "attacked", "bring": "brought", "build": "built", "catch": "caught", "close": "closed",
    "collect": "collected", "cook": "cooked", "craft": "crafted", "cut": "cut", "dig": "dug", "drink": "drank",
    "drop": "dropped", "eat": "ate", "fetch": "fetched", "fill": "filled", "follow": "followed", "grab": "grabbed",
    "hit": "hit", "jump": "jumped", "kill": "killed", "lock": "locked", "make": "made", "mine": "mined",
    "move": "moved", "open": "opened", "place": "placed", "plant": "planted", "press": "pressed", "pull": "pulled",
    "push": "pushed", "reach": "reached", "step": "stepped", "take": "took", "throw": "threw", "toggle": "toggled",
    "touch": "touched", "turn": "turned", "unlock": "unlocked", "use": "used", "visit": "visited", "wait": "waited",
    "walk": "walked", "water": "watered",
}  # fmt: skip
TIMES = (
    "", "once", "twice", "three times", "four times", "five times", "six times", "seven times", "eight times",
    "nine times", "ten times",
)  # fmt: skip
ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")

MOST_CLAUSES = (6, 4)
"""Things that are told of the plan, and of each of its parts; what is between is counted."""


def plan_sentence(tree: PlanTree) -> str:
    """The plan in one plain sentence, such as: I got the blue block: I found it, then picked it up."""
    return _Teller(tree.world).sentence(tree.root)


class _Teller:
    """Tells a plan from its beginning, and so knows what "it" is and what is in the hand.

    What an action did to the world is not in a plan; only how runs ended is. So a teller only claims what follows from
    that, and says "tried" of the rest.
    """

    def __init__(self, world: str) -> None:
        self._blocks = world.startswith("rooms")
        self._it: str | None = None  # the item that was mentioned last
        self._held: str | None = None  # as far as is known
        self._faced: str | None = None
        self._stacked: str | None = None  # the item that is being stacked: there are two, so one of them is "a" block

    def sentence(self, root: PlanRun) -> str:
        tries = _tries(root) if root.outcome == ACHIEVED else [core(root)]
        thing = self._introduce(root.instruction)
        past, infinitive = (phrase.format(thing) for phrase in _phrases(root.instruction))
        if root.outcome == ACHIEVED:
            steps = f" in {terminal_steps(tries[0])}" if is_terminal(tries[0]) else ""
            told = past + (f" {_at_try(len(tries))}" if len(tries) > 1 else steps)
        else:
            told = f"could not {infinitive}" if root.outcome else f"am trying to {infinitive}"
        story = "" if _is_obvious(tries[-1]) else self._story(tries[-1], detail=0)
        return f"I {told}: {story}." if story else f"I {told}."

    def _introduce(self, task: Instruction) -> str:
        if task.skill == "stack":
            self._stacked = task.item
            return f"the {_plural(self._noun(task.item))}"
        return self._thing(task.item)

    # The parts of a run

    def _story(self, run: PlanRun, detail: int) -> str:
        """What a run's level did, one clause for each thing, and how it ended if it is the whole plan."""
        outer = self._stacked
        if run.instruction.skill == "stack":
            self._stacked = run.instruction.item
        clauses = [] if is_terminal(run) else self._clauses(run, detail)
        self._stacked = outer
        ending = _ending_clause(run) if detail == 0 else ""
        if not clauses:
            return ending if is_terminal(run) else ""
        so_far = "so far " if not run.outcome and detail == 0 else ""
        return f"{so_far}I {_join(clauses, _link(run), ending)}"

    def _clauses(self, run: PlanRun, detail: int) -> list[str]:
        groups = _groups(run.decisions)
        most = MOST_CLAUSES[detail]
        clauses: list[str] = []
        for number, group in enumerate(groups):
            last = number == len(groups) - 1
            if last and len(groups) > most:
                left_out = len(clauses) - (most - 2)
                clauses = [*clauses[: most - 2], f"did {left_out} other things"]
                self._it = None  # what it is may be among what was left out
            clauses.append(self._clause(group, run, last, detail))
        return clauses

    def _clause(self, group: Sequence[PlanDecision], run: PlanRun, last: bool, detail: int) -> str:
        first = group[0]
        crowning = last and run.outcome == ACHIEVED  # what achieved the run's goal
        if first.action is not None:
            return self._action(first.action, len(group), run.instruction if crowning else None)
        if first.run is None:
            assert first.utterance is not None, "a decision is an action or an utterance"
            what, why = self._refused(first.utterance)
            often = f" {_times(len(group))}" if len(group) > 1 else ""
            return f"asked myself{often} to {what}" + (f", {why}" if last and run.outcome == REFUSED else f" ({why})")
        tries = [attempt for decision in group if decision.run for attempt in _tries(decision.run)]
        clause = self._attempts(tries)
        if crowning and run.instruction.skill == "stack" and tries[-1].instruction.skill == "put":
            clause += " on top"
        clause += self._details(tries, detail)
        self._remember(tries[-1])
        return clause

    def _attempts(self, tries: Sequence[PlanRun]) -> str:
        task, outcome = tries[-1].instruction, tries[-1].outcome
        thing, often = self._target(task), f" {_times(len(tries))}" if len(tries) > 1 else ""
        past, infinitive = (phrase.format(thing) for phrase in _phrases(task))
        search = task.skill == "find"
        if all(attempt.outcome == ACHIEVED for attempt in tries):
            return past + often
        if outcome == ACHIEVED:
            return f"looked for {thing}{often} until I found it" if search else f"{past} {_at_try(len(tries))}"
        if outcome in ("", CUT_OFF):
            be = "was still" if outcome else "am now"
            return f"{be} looking for {thing}" if search else f"{be} trying to {infinitive}"
        return f"looked for {thing}{often} in vain" if search else f"failed{often} to {infinitive}"

    def _details(self, tries: Sequence[PlanRun], detail: int) -> str:
        run = tries[-1]
        if is_terminal(run) or _is_obvious(run) or detail + 1 == len(MOST_CLAUSES) or not run.decisions:
            return ""
        return f" ({self._story(run, detail + 1)})"

    def _action(self, action: str, times: int, achieved: Instruction | None) -> str:
        """An own action; `achieved` is the goal that it brought about, if it did."""
        if action == "pick up":
            return self._pick_up(times, achieved)
        if action == "put down":
            return self._put_down(times, achieved)
        self._faced = None
        often = f" {_times(times)}" if times > 1 else ""
        verb, *rest = action.split()
        return (" ".join([PAST[verb], *rest]) if verb in PAST else f'did "{action}"') + often

    def _pick_up(self, times: int, achieved: Instruction | None) -> str:
        item = achieved.item if achieved and achieved.skill == "get" else None
        if item is None and self._held is None and times == 1:
            item = self._faced
        self._faced = None
        if item is None:
            return "tried to pick something up" + (f" {_times(times)}" if times > 1 else "")
        self._held = item
        return f"picked {self._thing(item)} up" + (f" {_at_try(times)}" if times > 1 else "")

    def _put_down(self, times: int, achieved: Instruction | None) -> str:
        item = achieved.item if achieved and achieved.skill in ("put", "stack") else None
        if item is None and times == 1:
            item = self._held
        self._faced = item
        if item is None:
            return "tried to put something down" + (f" {_times(times)}" if times > 1 else "")
        self._held = None
        on_top = " on top" if achieved and achieved.skill == "stack" else ""
        return f"put {self._thing(item)} down{on_top}" + (f" {_at_try(times)}" if times > 1 else "")

    def _remember(self, run: PlanRun) -> None:
        task = run.instruction
        self._faced = task.item if run.outcome == ACHIEVED and task.skill in ("find", "put") else None
        if run.outcome == ACHIEVED and task.skill in ("get", "put", "stack"):
            self._held = task.item if task.skill == "get" else None

    # Things

    def _target(self, task: Instruction) -> str:
        """The thing of a call; one that is in the hand can be found again only in another one."""
        if task.skill == "find" and self._held == task.item:
            self._it = task.item
            return "the other one" if self._stacked == task.item else f"another {self._noun(task.item)}"
        if task.skill == "stack":
            return f"the {_plural(self._noun(task.item))}"
        return self._thing(task.item)

    def _thing(self, item: str) -> str:
        noun = self._noun(item)
        if self._it == item:
            return "it"
        self._it = item
        return _a(noun) if self._stacked == item else f"the {noun}"

    def _noun(self, item: str) -> str:
        return f"{item} block" if self._blocks or item in WOOL else item

    def _refused(self, task: Instruction) -> tuple[str, str]:
        """What was uttered, and why it could not be done."""
        noun = self._noun(task.item)
        self._it = None  # "it" would now be misunderstood
        if task.skill == "find":
            return f"find {f'another {noun}' if self._held == task.item else _a(noun)}", "which was not there"
        if task.skill == "put":
            return f"put {_a(noun)} down", "which I did not hold"
        if task.skill == "stack":
            return f"stack {_plural(noun)}", "of which there were not two"
        return _phrases(task)[1].format(_a(noun)), "which was not possible"


def _is_obvious(run: PlanRun) -> bool:
    """Whether what was done is what the instruction says."""
    return run.instruction.skill == "put" and [decision.action for decision in run.decisions] == ["put down"]


def _tries(run: PlanRun) -> list[PlanRun]:
    """A run that did nothing but call its own instruction stands for those calls."""
    below = [decision.run for decision in run.decisions]
    calls = [call for call in below if call is not None and call.instruction == run.instruction]
    if not calls or len(calls) < len(below) or calls[-1].outcome != run.outcome:
        return [run]
    return [attempt for call in calls for attempt in _tries(call)]


def _groups(decisions: Sequence[PlanDecision]) -> list[list[PlanDecision]]:
    """Decisions that are told as one: an action again, a refused utterance again, a call until it works out."""
    groups: list[list[PlanDecision]] = []
    for decision in decisions:
        if groups and _belongs(decision, groups[-1]):
            groups[-1].append(decision)
        else:
            groups.append([decision])
    return groups


def _belongs(decision: PlanDecision, group: Sequence[PlanDecision]) -> bool:
    previous = group[-1]
    if (decision.action, decision.utterance) != (previous.action, previous.utterance):
        return False
    if decision.run is None or previous.run is None:
        return decision.run is previous.run
    done = [attempt.run is not None and attempt.run.outcome == ACHIEVED for attempt in (*group, decision)]
    return not any(done[:-1]) or all(done)


def _link(run: PlanRun) -> str:
    """What stands before the last of several clauses."""
    last = run.decisions[-1] if run.decisions else None
    if run.outcome == REFUSED:
        return "but then"
    if last and last.run and last.run.outcome in ("", CUT_OFF):
        return "and"
    return "then"


def _join(clauses: Sequence[str], link: str, ending: str) -> str:
    """Clauses as a list, and a clause with a subject of its own, if there is one, behind them."""
    if ending.startswith("when "):
        clauses, ending = [*clauses[:-1], f"{clauses[-1]} {ending}"], ""
    if ending:
        return f"{', '.join(clauses)}, and {ending}"
    if len(clauses) > 2 and link == "then":
        link = "and"
    return ", ".join(clauses[:-1]) + (f", {link} " if len(clauses) > 1 else "") + clauses[-1]


def _ending_clause(run: PlanRun) -> str:
    """Why the whole plan ended, where its last clause does not say it."""
    if run.outcome == LIMIT:
        if is_terminal(run):
            return f"I gave up after {terminal_steps(run)}"
        return f"gave up after {len(run.decisions)} decision{'' if len(run.decisions) == 1 else 's'}"
    if run.outcome != CUT_OFF:
        return ""
    if is_terminal(run):
        return "the game ran out of steps"
    last = run.decisions[-1].run if run.decisions else None
    return f"{'when' if last and last.outcome == CUT_OFF else 'then'} the game ran out of steps"


def _phrases(task: Instruction) -> tuple[str, str]:
    if task.skill in PHRASES:
        return PHRASES[task.skill]
    if task.skill in PAST:
        return f"{PAST[task.skill]} {{}}", f"{task.skill} {{}}"
    return f'did "{task}"', f'do "{task}"'


def _times(times: int) -> str:
    return TIMES[times] if times < len(TIMES) else f"{times} times"


def _at_try(number: int) -> str:
    return f"at the {ORDINALS[number]} try" if number < len(ORDINALS) else f"at try {number}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"
