"""A task's grammar for people: its chain in words, and drawn as a graph (an SVG picture)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from rich.text import Text

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction
from skillstack.policies.grammar import CALL_PREFIX, Grammar, Transition

MIN_PROBABILITY = 0.05
"""Rarer steps are left out, except the likeliest of each state."""

MOST_STATES = 12
"""A picture with more states than this cannot be read; the most used ones are drawn."""


@dataclass(frozen=True)
class Chain:
    """The part of a task's grammar that is shown."""

    states: tuple[int, ...]  # the start first, then along the most used steps
    steps: tuple[Transition, ...]
    left: Counter[int]  # how often a state was left, by shown steps or others
    ends: Counter[int]  # how often an episode ended in a state: it was entered that much more often than it was left


def _chain(grammar: Grammar, task: Instruction, min_probability: float, most_states: int | None = None) -> Chain:
    if not 0 <= min_probability <= 1:
        raise SkillstackError(f"The smallest probability to show must lie between 0 and 1, not at {min_probability}.")
    counted = grammar.transitions(task)
    likely = [step for row in _rows(counted) for step in row if step.probability >= min_probability or step == row[0]]
    states = [grammar.start_state]
    while most_states is None or len(states) < most_states:
        ways_on = [step for step in likely if step.previous in states and step.following not in states]
        if not ways_on:
            break
        states.append(max(ways_on, key=lambda step: step.count).following)
    left, entered = Counter[int](), Counter[int]()
    for step in counted:
        left[step.previous] += step.count
        entered[step.following] += step.count
    shown = tuple(step for step in likely if step.previous in states and step.following in states)
    return Chain(tuple(states), shown, left, entered - left)


def _rows(steps: Sequence[Transition]) -> Iterator[list[Transition]]:
    """The steps of each state, the likeliest first; steps of one state stand together already."""
    for _, row in groupby(steps, key=lambda step: step.previous):
        yield sorted(row, key=lambda step: -step.probability)


def _label(grammar: Grammar, state: int) -> str:
    return grammar.state_names[state].removeprefix(CALL_PREFIX)


def _origin(grammar: Grammar, task: Instruction) -> str:
    episodes = grammar.episodes(task)
    if not episodes:
        return "no positive episode yet, so every choice is equally likely"
    return f"from {episodes} positive episode{'s' if episodes > 1 else ''}"


# In words


def describe_all(grammar: Grammar, min_probability: float = MIN_PROBABILITY) -> Text:
    """The chains of all tasks that have one, then a line that names the others."""
    seen = [task for task in grammar.tasks if grammar.episodes(task)]
    parts = [describe(grammar, task, min_probability) for task in seen]
    unseen = [str(task) for task in grammar.tasks if task not in seen]
    if unseen:
        parts.append(Text(f"No positive episode yet: {', '.join(unseen)}."))
    return Text("\n\n").join(parts)


def describe(grammar: Grammar, task: Instruction, min_probability: float = MIN_PROBABILITY) -> Text:
    """One task's chain, a line for each step: what followed what, with its probability and its count."""
    chain = _chain(grammar, task, min_probability)
    lines = [line for state in chain.states for line in _lines(grammar, chain, state)]
    widths = [max((len(line[column]) for line in lines), default=0) for column in range(4)]
    text = Text.assemble((str(task), "bold"), f": {_origin(grammar, task)}")
    for previous, following, probability, count in lines:
        text.append("\n  ")
        text.append(previous.ljust(widths[0]), style="bold")
        text.append(f" -> {following.ljust(widths[1])}  ")
        text.append(probability.rjust(widths[2]), style="cyan")
        text.append(f"  {count.rjust(widths[3])}", style="dim")
    return text


def _lines(grammar: Grammar, chain: Chain, state: int) -> list[tuple[str, str, str, str]]:
    """The steps out of one state as words: previous, following, probability, count."""
    steps = [step for step in chain.steps if step.previous == state]
    lines = [(_label(grammar, step.following), f"{step.probability:.2f}", f"({step.count})") for step in steps]
    rest = 1 - sum(step.probability for step in steps)
    if steps and rest >= 0.005:
        lines.append(("other", f"{rest:.2f}", f"({chain.left[state] - sum(step.count for step in steps)})"))
    if chain.ends[state]:
        lines.append(("the end", "", f"({chain.ends[state]})"))
    names = [_label(grammar, state)] + [""] * len(lines)
    return [(name, *line) for name, line in zip(names, lines, strict=False)]


# For others to draw


def grammar_to_json(grammar: Grammar, task: Instruction, min_probability: float = MIN_PROBABILITY) -> dict[str, Any]:
    """One task's chain with its states in the order in which they are best read: what `grammar_svg` draws."""
    chain = _chain(grammar, task, min_probability, MOST_STATES)
    order = _reading_order(chain)
    kinds = {grammar.start_state: "start", grammar.act_state: "act"}
    return {
        "task": str(task),
        "origin": _origin(grammar, task),
        "caption": _caption(chain, min_probability),
        "states": [
            {"name": _label(grammar, state), "kind": kinds.get(state, "call"), "ends": chain.ends[state]}
            for state in order
        ],
        "steps": [
            {
                "from": order.index(step.previous),
                "to": order.index(step.following),
                "probability": step.probability,
                "count": step.count,
            }
            for step in sorted(chain.steps, key=lambda step: (order.index(step.previous), -step.probability))
        ],
    }


# As a picture: the states in a row, steps onwards above it, steps back below it. The place of a label is fixed by
# the two places that its step joins, so that no two labels can meet.

INK, GREY, PAPER = "#1f2933", "#697586", "#ffffff"
FAINT_EDGE, STRONG_EDGE = (197, 208, 222), (36, 84, 160)
START_STYLE = ("#3e4c5e", "#3e4c5e", "#ffffff")  # fill, outline, text
ACT_STYLE = ("#fdeecb", "#d99a1c", INK)
SKILL_STYLES = (
    ("#e3edfb", "#5b8bd0", INK),
    ("#e2f4e6", "#4fa165", INK),
    ("#f3e6f8", "#a066bb", INK),
    ("#fde5e1", "#d4705d", INK),
    ("#def3f3", "#3f9c9e", INK),
    ("#f0eddb", "#9c8d3e", INK),
)

LETTER = 7.4
"""Width of a letter at the size of the labels, a little more than any usual font needs."""
NODE_HEIGHT = 42.0
MARGIN = 28.0
ARROW = 9.0


@dataclass(frozen=True)
class Layout:
    """Where everything goes, in pixels."""

    place: dict[int, int]  # the place of each state in the row, from the left
    node_width: float
    gap: float
    row_y: float  # the middle of the row of states

    @property
    def top(self) -> float:
        return self.row_y - NODE_HEIGHT / 2

    @property
    def bottom(self) -> float:
        return self.row_y + NODE_HEIGHT / 2

    def x(self, place: float) -> float:
        return MARGIN + self.node_width / 2 + place * (self.node_width + self.gap)

    def span(self, step: Transition) -> int:
        """How many places a step goes to the right."""
        return self.place[step.following] - self.place[step.previous]


def grammar_svg(grammar: Grammar, task: Instruction, min_probability: float = MIN_PROBABILITY) -> str:
    """One task's chain as a self-contained SVG picture."""
    chain = _chain(grammar, task, min_probability, MOST_STATES)
    layout = _layout(grammar, chain)
    caption = _caption(chain, min_probability)
    depth = max((_rise(-layout.span(step)) for step in chain.steps if layout.span(step) < 0), default=0.0)
    widest_line = max(6 * len(caption), 6.5 * len(_origin(grammar, task)), 13 * len(str(task)))
    width = max(layout.x(len(chain.states) - 1) + layout.node_width / 2, MARGIN + widest_line) + MARGIN
    height = layout.bottom + depth + 58
    steps = sorted(chain.steps, key=lambda step: step.probability)  # strong ones over faint ones
    body = [
        f"<title>The grammar of {escape(str(task))}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>',
        _text(MARGIN, 38, str(task), 20, INK, anchor="start", weight="bold"),
        _text(MARGIN, 58, _origin(grammar, task), 12, GREY, anchor="start"),
        *(_edge(layout, chain, step) for step in steps),
        *(_node(grammar, layout, chain, state) for state in chain.states),
        *(_edge_label(layout, step) for step in steps),
        _text(MARGIN, height - 16, caption, 11, GREY, anchor="start"),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, *body, "</svg>\n"])


def _caption(chain: Chain, min_probability: float) -> str:
    if not chain.steps:
        return ""
    caption = "Each arrow: probability of the next step (how often it was taken)."
    if min_probability:
        caption += f" Steps rarer than {min_probability:g} are not drawn."
    if len(chain.states) == MOST_STATES:
        caption += f" At most {MOST_STATES} states are drawn."
    return caption


def _layout(grammar: Grammar, chain: Chain) -> Layout:
    place = {state: place for place, state in enumerate(_reading_order(chain))}
    longest = max(len(_label(grammar, state)) for state in chain.states)
    widest_label = max((_label_width(step) for step in chain.steps), default=0.0)
    layout = Layout(place, max(78.0, longest * LETTER + 26), widest_label + 2 * ARROW + 12, row_y=0)
    above = [span for span in map(layout.span, chain.steps) if span == 0 or span > 1]
    rise = max(map(_rise, above), default=0.0)
    return Layout(place, layout.node_width, layout.gap, row_y=88 + rise + NODE_HEIGHT / 2)


def _reading_order(chain: Chain) -> list[int]:
    """The states so that most steps go to the right, and not far: single states are moved while that helps."""
    order = list(chain.states)
    best = _disorder(order, chain.steps)
    moved = True
    while moved:
        moved = False
        for state in chain.states[1:]:
            for place in range(1, len(order)):
                others = [other for other in order if other != state]
                candidate = [*others[:place], state, *others[place:]]
                disorder = _disorder(candidate, chain.steps)
                if disorder < best:
                    order, best, moved = candidate, disorder, True
    return order


def _disorder(order: Sequence[int], steps: Sequence[Transition]) -> int:
    place = {state: place for place, state in enumerate(order)}
    spans = [(place[step.following] - place[step.previous], step.count) for step in steps]
    back = 4 * len(order)  # a step back is worse than a few long ways on
    return sum(count * (span if span >= 0 else back - span) for span, count in spans)


def _rise(span: int) -> float:
    """How far an arc over so many places stands off the row; 0 is a loop, with its label on top."""
    return 16 + 40 * span if span else 34


def _edge(layout: Layout, chain: Chain, step: Transition) -> str:
    span = layout.span(step)
    if span == 0:
        return _loop(layout, step)
    if span == 1:
        start = layout.x(layout.place[step.previous]) + layout.node_width / 2
        tip = start + layout.gap - 1
        path = f"M {start:.1f} {layout.row_y:.1f} H {tip - ARROW + 1:.1f}"
        return _stroke(path, step) + _arrow_head(tip, layout.row_y, 1, 0, step)
    side, edge_y = (-1, layout.top) if span > 0 else (1, layout.bottom)
    start, tip = _foot(layout, chain, step, leaving=True), _foot(layout, chain, step, leaving=False)
    # A cubic curve with upright ends reaches 3/4 of the way to its control points.
    control = edge_y + side * _rise(abs(span)) * 4 / 3
    end_y = edge_y + side * (ARROW - 1)
    path = f"M {start:.1f} {edge_y:.1f} C {start:.1f} {control:.1f} {tip:.1f} {control:.1f} {tip:.1f} {end_y:.1f}"
    return _stroke(path, step) + _arrow_head(tip, edge_y + side, 0, -side, step)


def _loop(layout: Layout, step: Transition) -> str:
    x, top = layout.x(layout.place[step.previous]), layout.top
    control = top - _rise(0) * 4 / 3
    start, end = f"{x - 11:.1f} {top:.1f}", f"{x + 14:.1f} {top - 8:.1f}"
    path = f"M {start} C {x - 34:.1f} {control:.1f} {x + 34:.1f} {control:.1f} {end}"
    return _stroke(path, step) + _arrow_head(x + 11, top - 1, -0.35, 0.94, step)


def _foot(layout: Layout, chain: Chain, step: Transition, leaving: bool) -> float:
    """Where an arc meets its state: spread out, and in such an order that arcs of one state do not cross."""
    state, span = step.previous if leaving else step.following, layout.span(step)
    here = [layout.span(other) for other in chain.steps if (other.previous if leaving else other.following) == state]
    same_side = sorted(abs(other) for other in here if other not in (0, 1) and (other > 0) == (span > 0))
    rank = same_side.index(abs(span)) / max(len(same_side), 2)  # 0 for the shortest arc, which is the outermost
    offset = layout.node_width / 2 * (0.85 - 0.4 * rank)
    return layout.x(layout.place[state]) + (offset if leaving == (span > 0) else -offset)


def _stroke(path: str, step: Transition) -> str:
    return f'<path d="{path}" fill="none" stroke="{_shade(step)}" stroke-width="{1.2 + 2.6 * step.probability:.1f}"/>'


def _arrow_head(x: float, y: float, dx: float, dy: float, step: Transition) -> str:
    """A triangle with its tip at (x, y) that points along (dx, dy)."""
    back_x, back_y = x - ARROW * dx, y - ARROW * dy
    wing_x, wing_y = -dy * ARROW * 0.52, dx * ARROW * 0.52
    corners = ((x, y), (back_x + wing_x, back_y + wing_y), (back_x - wing_x, back_y - wing_y))
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return f'<polygon points="{points}" fill="{_shade(step)}"/>'


def _shade(step: Transition) -> str:
    mixed = (faint + (strong - faint) * step.probability for faint, strong in zip(FAINT_EDGE, STRONG_EDGE, strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def _node(grammar: Grammar, layout: Layout, chain: Chain, state: int) -> str:
    fill, outline, ink = _node_style(grammar, state)
    x, ends = layout.x(layout.place[state]), chain.ends[state]
    box = (
        f'<rect x="{x - layout.node_width / 2:.1f}" y="{layout.top:.1f}" width="{layout.node_width:.1f}" '
        f'height="{NODE_HEIGHT:.1f}" rx="{NODE_HEIGHT / 2 if state == grammar.start_state else 9:.1f}" '
        f'fill="{fill}" stroke="{outline}" stroke-width="1.5"/>'
    )
    if not ends:
        return box + _text(x, layout.row_y + 4.5, _label(grammar, state), 13, ink)
    return (
        box
        + _text(x, layout.row_y - 2, _label(grammar, state), 13, ink)
        + _text(x, layout.row_y + 13, f"ends {ends}", 10.5, GREY)
    )


def _node_style(grammar: Grammar, state: int) -> tuple[str, str, str]:
    if state == grammar.start_state:
        return START_STYLE
    if state == grammar.act_state:
        return ACT_STYLE
    return SKILL_STYLES[state // len(grammar.base.items) % len(SKILL_STYLES)]


def _edge_label(layout: Layout, step: Transition) -> str:
    x, y = _label_place(layout, step)
    width = _label_width(step)
    back = f'<rect x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" rx="5" fill="{PAPER}"/>'
    count = f'<tspan fill="{GREY}">({step.count})</tspan>'
    place = f'x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle"'
    return f'{back}<text {place} font-size="12" fill="{INK}">{step.probability:.2f} {count}</text>'


def _label_place(layout: Layout, step: Transition) -> tuple[float, float]:
    span = layout.span(step)
    x = layout.x(layout.place[step.previous] + span / 2)
    if span == 0:
        return x, layout.top - _rise(0) - 11
    if span == 1:
        return x, layout.row_y - 13
    return x, layout.top - _rise(span) if span > 0 else layout.bottom + _rise(-span)


def _label_width(step: Transition) -> float:
    return len(f"{step.probability:.2f} ({step.count})") * LETTER * 12 / 13


def _text(
    x: float, y: float, words: str, size: float, fill: str, anchor: str = "middle", weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{fill}">{escape(words)}</text>'
    )
