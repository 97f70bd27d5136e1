"""A plan in words: as a tree in colour for the terminal, and as a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from rich.text import Text
from rich.tree import Tree

from skillstack.instructions import Instruction
from skillstack.rollout.plan import ACHIEVED, CUT_OFF, LIMIT, REFUSED, Odds, PlanDecision, PlanRun, PlanTree
from skillstack.worlds.rooms.looks import WOOL

SIGNS = {ACHIEVED: "✓", LIMIT: "⏱", REFUSED: "✗", CUT_OFF: "✂", "": "…"}

MOST_ACTIONS = 10
"""Different actions after each other that the line of a terminal run names; the others are counted."""
LIKELY = 0.05
"""Choices that were not made are shown from this probability on, ..."""
MOST_CHOICES = 3
"""... and at most so many, the one that was made counted."""


def fold(words: Iterable[str]) -> list[str]:
    """Equal words after each other as one: "turn left x3".

    >>> fold(["turn left", "turn left", "pick up"])
    ['turn left x2', 'pick up']
    """
    counted = [(word, len(list(group))) for word, group in groupby(words)]
    return [word if times == 1 else f"{word} x{times}" for word, times in counted]


def core(run: PlanRun) -> PlanRun:
    """The run that did the work: calls that only hand the same instruction down are skipped."""
    while len(run.decisions) == 1:
        below = run.decisions[0].run
        if below is None or (below.instruction, below.outcome) != (run.instruction, run.outcome):
            break
        run = below
    return run


def is_terminal(run: PlanRun) -> bool:
    """Whether this is a run of the terminal policy, whose actions are many and small."""
    return run.level == 0


def step_range(run: PlanRun) -> str:
    """The steps that a run covers, in words."""
    if not run.outcome:
        return f"from step {run.first_step}"
    steps = run.last_step - run.first_step
    if steps <= 1:
        return f"step {run.first_step}" if steps else "no steps"
    return f"steps {run.first_step}-{run.last_step - 1}"


def terminal_steps(run: PlanRun) -> str:
    """How many steps a run took: "1 step", "9 steps"."""
    return f"{len(run.decisions)} step{'' if len(run.decisions) == 1 else 's'}"


# As a line


def plan_line(tree: PlanTree, signs: Mapping[str, str] = SIGNS) -> str:
    """The plan on one line: `get blue: find blue, pick up`, with a sign at what did not work out."""
    run = core(tree.root)
    parts = _line_parts(run, signs)
    return _line_name(run, signs) + (f": {', '.join(parts)}" if parts else "")


def _line_parts(run: PlanRun, signs: Mapping[str, str]) -> list[str]:
    return [] if is_terminal(run) else fold(_line_part(decision, signs) for decision in run.decisions)


def _line_part(decision: PlanDecision, signs: Mapping[str, str]) -> str:
    if decision.run is None:
        return decision.action or f"{decision.utterance} {signs[REFUSED]}"
    run = core(decision.run)
    parts = _line_parts(run, signs)
    return _line_name(run, signs) + (f" ({', '.join(parts)})" if parts else "")


def _line_name(run: PlanRun, signs: Mapping[str, str]) -> str:
    return str(run.instruction) + ("" if run.outcome == ACHIEVED else f" {signs[run.outcome]}")


# As a tree


def plan_tree_renderable(tree: PlanTree, probabilities: bool = False) -> Tree:
    """The plan as a tree that rich prints in colour; `probabilities` adds the odds behind each decision."""
    label = _run_label(tree.root)
    if probabilities:
        label.append("\nprobabilities: policy / grammar / both together", style="dim")
    root = Tree(label, guide_style="dim")
    _grow(root, tree.root, probabilities)
    return root


def _grow(node: Tree, run: PlanRun, probabilities: bool) -> None:
    if is_terminal(run):
        if run.decisions:
            node.add(_terminal_label(run))
        return
    for decisions in same_actions(run.decisions, apart=probabilities):
        first = decisions[0]
        label = _decision_label(decisions)
        if probabilities:
            _append_odds(label, first)
        child = node.add(label)
        if first.run is not None:
            _grow(child, first.run, probabilities)


def same_actions(decisions: Sequence[PlanDecision], apart: bool = False) -> list[list[PlanDecision]]:
    """Equal own actions after each other together, unless they are wanted `apart`; each utterance alone."""
    groups: list[list[PlanDecision]] = []
    for decision in decisions:
        if groups and not apart and decision.action is not None and decision.action == groups[-1][-1].action:
            groups[-1].append(decision)
        else:
            groups.append([decision])
    return groups


def _decision_label(decisions: Sequence[PlanDecision]) -> Text:
    first, last = decisions[0], decisions[-1]
    if first.run is not None:
        return _run_label(first.run)
    if first.utterance is not None:
        return Text.assemble(_quoted(first.utterance), "  ", _ending(REFUSED), (f"  at step {first.step}", "dim"))
    times = "" if len(decisions) == 1 else f" x{len(decisions)}"
    steps = f"step {first.step}" if first is last else f"steps {first.step}-{last.step}"
    return Text.assemble((f"{first.action}{times}", "bold"), (f"  {steps}", "dim"))


def _run_label(run: PlanRun) -> Text:
    place = f"  level {run.level}, {step_range(run)}"
    return Text.assemble(_quoted(run.instruction), "  ", _ending(run.outcome), (place, "dim"))


def _terminal_label(run: PlanRun) -> Text:
    actions = fold(decision.action.removeprefix("move ") for decision in run.decisions if decision.action)
    named, more = actions[:MOST_ACTIONS], len(actions) - MOST_ACTIONS
    text = ", ".join(named) + (f", ... ({more} more)" if more > 0 else "")
    return Text(f"{terminal_steps(run)}: {text}", style="dim")


def _quoted(instruction: Instruction) -> Text:
    """The instruction on a patch of its item's wool, which can be read on dark and on light."""
    words = f'"{instruction}"'
    if instruction.item not in WOOL:
        return Text(words, style="bold")
    red, green, blue = WOOL[instruction.item]
    ink = "#141414" if 0.3 * red + 0.59 * green + 0.11 * blue > 120 else "#fafafa"
    return Text(words, style=f"bold {ink} on #{red:02x}{green:02x}{blue:02x}")


def _ending(outcome: str) -> Text:
    style = {ACHIEVED: "green", "": "dim"}.get(outcome, "red")
    return Text(f"{SIGNS[outcome]} {outcome or 'under way'}", style=style)


def _append_odds(label: Text, decision: PlanDecision) -> None:
    """A line for each choice that led to the decision: what was chosen first, then what else was likely."""
    called = decision.utterance is not None
    chosen = {"switch": "call" if called else "act", "instruction": str(decision.utterance), "action": decision.action}
    for name in ("switch", "instruction" if called else "action"):
        if name in decision.odds:
            label.append(f"\n{name:<11} ", style="dim")
            label.append(_odds_words(decision.odds[name], chosen[name] or ""), style="dim cyan")


def _odds_words(odds: Odds, chosen: str) -> str:
    reshaped = odds.policy if odds.reshaped is None else odds.reshaped
    others = sorted(
        (word for word in reshaped if word != chosen and reshaped[word] >= LIKELY), key=lambda word: -reshaped[word]
    )
    return ", ".join(f"{word} {_three(odds, word)}" for word in [chosen, *others][:MOST_CHOICES])


def _three(odds: Odds, word: str) -> str:
    sources = (odds.policy, odds.grammar, odds.reshaped)
    if odds.grammar is None and odds.reshaped is None:
        return f"{odds.policy.get(word, 0.0):.2f}"
    return " / ".join("-" if chances is None else f"{chances.get(word, 0.0):.2f}" for chances in sources)
