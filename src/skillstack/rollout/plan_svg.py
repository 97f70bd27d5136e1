"""A plan drawn as in the paper's figures 1 and 5: a tree of utterances, with what the agent saw along the bottom.

Each arrow is one decision, in the colour of the policy that made it; branches are ordered in time from left to right.
Every leaf has the column below it for itself, so that the line down to its picture meets nothing.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from PIL import Image

from skillstack.instructions import Instruction
from skillstack.rollout.plan import ACHIEVED, REFUSED, PlanDecision, PlanRun, PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.plan_text import (
    fold,
    is_terminal,
    plan_line,
    same_actions,
    step_range,
    terminal_steps,
)
from skillstack.rollout.replay import Picture, Recording
from skillstack.worlds.rooms.looks import WOOL

LEVEL_COLOURS = ("#7b828c", "#2e8b4f", "#2a6db8", "#cf3a2e", "#8a4fae", "#c97a00", "#0d8f98")
"""Of the policies, from the terminal one upwards; red is the paper's top level."""
INK, GREY, FAINT, FAILED, PAPER = "#1f2933", "#697586", "#c3cad3", "#c0262d", "#ffffff"

LETTER = 7.4
"""Width of a letter at the size of the words, a little more than any usual font needs."""
WORDS, NOTE = 13.0, 10.5  # sizes of letters
BOX_HEIGHT, NOTED_HEIGHT, LABEL_HEIGHT = 30.0, 42.0, 18.0
ROW, GAP, MARGIN = 92.0, 16.0, 26.0  # from row to row, between columns, around the picture
HEADER = 58.0  # height of the legend's part
ARROW, SWATCH = 8.0, 10.0
THUMB, SMALLEST_THUMB, THUMB_GAP = 92.0, 60.0, 10.0


def level_colour(level: int) -> str:
    """The colour of a policy, the same in every picture."""
    if level < len(LEVEL_COLOURS):
        return LEVEL_COLOURS[level]
    return LEVEL_COLOURS[1 + (level - 1) % (len(LEVEL_COLOURS) - 1)]


@dataclass
class Node:
    """A box (an utterance) or a plain label (actions), and where it goes: `x` is its middle, `row` counts from 0."""

    words: str
    level: int | None = None
    """Of the policy that carries it out; None for actions and for what could not be executed."""
    item: str | None = None
    note: str = ""
    """How it failed."""
    tip: str = ""
    """Shown where the mouse rests."""
    moment: int | None = None
    """Steps taken when it ended, if it is a leaf that may have changed something."""
    began: int = 0
    children: list[Node] = field(default_factory=list)
    x: float = 0.0
    row: int = 0

    @property
    def is_box(self) -> bool:
        return self.item is not None

    @property
    def width(self) -> float:
        words = len(self.words) * LETTER + (2 * SWATCH + 16 if self.is_box else 0)
        return max(words, len(self.note) * LETTER * NOTE / WORDS + 16)

    @property
    def height(self) -> float:
        return LABEL_HEIGHT if not self.is_box else NOTED_HEIGHT if self.note else BOX_HEIGHT

    @property
    def top(self) -> float:
        return HEADER + self.row * ROW

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def span(self) -> float:
        """The width of this node with all below it."""
        below = sum(child.span for child in self.children) + GAP * max(len(self.children) - 1, 0)
        return max(self.width, below)

    def nodes(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.nodes()

    def place(self, left: float, row: int) -> None:
        """Put this node and all below it into the columns from `left` on."""
        self.row = row
        below = sum(child.span for child in self.children) + GAP * (len(self.children) - 1)
        edge = left + (self.span - below) / 2
        for child in self.children:
            child.place(edge, row + 1)
            edge += child.span + GAP
        middle = (self.children[0].x + self.children[-1].x) / 2 if self.children else left + self.span / 2
        half = self.width / 2
        self.x = min(max(middle, left + half), left + self.span - half)


@dataclass(frozen=True)
class Thumbnail:
    """What the agent saw after so many steps, below the leaf that led there."""

    step: int
    name: str
    leaf: Node | None


def plan_svg(tree: PlanTree, recording: Recording | None = None) -> str:
    """The plan as a self-contained SVG picture; a `recording` adds what was to be seen at the critical moments."""
    root = _run_node(tree.root)
    moments = _critical_moments(tree, root, recording) if recording else []
    legend, status = (
        sorted({node.level for node in root.nodes() if node.level is not None}, reverse=True),
        _status(tree),
    )
    inner = max(root.span, 62.0 * len(legend) + 24 + len(status) * LETTER * NOTE / WORDS)
    edge = min(max((inner + THUMB_GAP) / max(len(moments), 1) - THUMB_GAP, SMALLEST_THUMB), THUMB)
    inner = max(inner, len(moments) * (edge + THUMB_GAP) - THUMB_GAP)
    width = inner + 2 * MARGIN
    root.place((width - root.span) / 2, 0)
    floor = max(node.bottom for node in root.nodes())
    height = floor + MARGIN + (62 + edge if moments else 0)
    body = [
        f"<title>{escape(plan_line(tree))}</title>",
        f"<desc>{escape(plan_sentence(tree))}</desc>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>',
        *(_legend_entry(level, MARGIN + 62.0 * place) for place, level in enumerate(legend)),
        _text(width - MARGIN, 30, status, NOTE, GREY, anchor="end"),
        *_film(moments, recording, floor, edge, width),
        *(arrow for node in root.nodes() for arrow in _arrows(node)),
        *(_draw(node) for node in root.nodes()),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, *body, "</svg>\n"])


def _status(tree: PlanTree) -> str:
    steps = len(tree.actions())
    count = f"{steps} step{'' if steps == 1 else 's'}"
    return f"{tree.world}, seed {tree.seed}: {tree.root.outcome or 'under way'} after {count}"


# From the plan to the nodes


def _run_node(run: PlanRun) -> Node:
    note = "" if run.outcome in (ACHIEVED, "") else run.outcome
    tip = f"{run.instruction}: {run.outcome or 'under way'}, {step_range(run)}"
    node = _box(run.instruction, run.level, note, tip)
    if is_terminal(run):
        node.children = [_terminal_node(run)] if run.decisions else []
    else:
        node.children = [_decision_node(decisions) for decisions in same_actions(run.decisions)]
    return node


def _box(instruction: Instruction, level: int | None, note: str, tip: str) -> Node:
    return Node(str(instruction).capitalize(), level, instruction.item, note, tip)


def _decision_node(decisions: Sequence[PlanDecision]) -> Node:
    first, last = decisions[0], decisions[-1]
    if first.run is not None:
        return _run_node(first.run)
    if first.utterance is not None:
        return _box(first.utterance, None, REFUSED, f"{first.utterance}: {REFUSED}, at step {first.step}")
    (words,) = fold(decision.action or "" for decision in decisions)
    return Node(words, tip=f"{words}, from step {first.step}", moment=last.step + 1, began=first.step)


def _terminal_node(run: PlanRun) -> Node:
    actions = [decision.action or "" for decision in run.decisions]
    words = actions[0] if len(actions) == 1 else terminal_steps(run)
    return Node(words, tip=", ".join(fold(actions)), moment=run.decisions[-1].step + 1, began=run.decisions[0].step)


def _critical_moments(tree: PlanTree, root: Node, recording: Recording) -> list[Thumbnail]:
    """The start, the end of each leaf that changed what is to be seen, and the end."""
    recording.check(tree)
    steps = len(tree.actions())
    moments = [Thumbnail(0, "start", None)]
    for node in root.nodes():
        if node.moment is None:
            continue
        is_end = node.moment == steps
        if is_end or (recording.frames[node.moment] != recording.frames[node.began]).any():
            moments.append(Thumbnail(node.moment, f"{'end, ' if is_end else ''}t = {node.moment}", node))
    return moments


# From the nodes to the picture


def _draw(node: Node) -> str:
    middle = node.top + node.height / 2
    if not node.is_box:
        return _tipped(node, _text(node.x, middle + 4.5, node.words, WORDS, INK))
    left = node.x - node.width / 2
    outline = GREY if node.level is None else level_colour(node.level)
    dashes = ' stroke-dasharray="4 3"' if node.level is None else ""
    rect = (
        f'<rect x="{left:.1f}" y="{node.top:.1f}" width="{node.width:.1f}" height="{node.height:.1f}" rx="9" '
        f'fill="{_tint(outline)}" stroke="{outline}" stroke-width="1.5"{dashes}/>'
    )
    words_y = node.top + BOX_HEIGHT / 2 - (2 if node.note else 0)
    swatch, shift = _swatch(node, left + 11, words_y), SWATCH / 2 + 2
    words = _text(node.x + (shift if swatch else 0), words_y + 4.5, node.words, WORDS, INK)
    note = _text(node.x, node.bottom - 7.5, node.note, NOTE, FAILED) if node.note else ""
    badge = _badge(left + node.width - 3, node.top + 3) if node.note else ""
    return _tipped(node, rect + swatch + words + note + badge)


def _badge(x: float, y: float) -> str:
    """A cross on a red disc: this failed."""
    cross = f"M {x - 2.6:.1f} {y - 2.6:.1f} l 5.2 5.2 m 0 -5.2 l -5.2 5.2"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" fill="{FAILED}" stroke="{PAPER}" stroke-width="1.5"/>'
        f'<path d="{cross}" fill="none" stroke="{PAPER}" stroke-width="1.7" stroke-linecap="round"/>'
    )


def _swatch(node: Node, left: float, middle: float) -> str:
    """A patch of the item's wool, if it is one."""
    if node.item not in WOOL:
        return ""
    colour = "#{:02x}{:02x}{:02x}".format(*WOOL[node.item])
    return (
        f'<rect x="{left:.1f}" y="{middle - SWATCH / 2:.1f}" width="{SWATCH:.0f}" height="{SWATCH:.0f}" rx="1.5" '
        f'fill="{colour}" stroke="{INK}" stroke-width="0.6"/>'
    )


def _tint(colour: str) -> str:
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * 0.09):02x}" for part in parts)


def _tipped(node: Node, drawing: str) -> str:
    return f"<g><title>{escape(node.tip)}</title>{drawing}</g>"


def _arrows(node: Node) -> Iterator[str]:
    """The decisions of a run, in the colour of its policy, fanned out so that far ones run above near ones."""
    colour = level_colour(node.level or 0)
    farthest = max((abs(child.x - node.x) for child in node.children), default=0.0) or 1.0
    pitch = min(12.0, 0.6 * node.width / max(len(node.children), 1))
    for number, child in enumerate(node.children):
        start = node.x + (number - (len(node.children) - 1) / 2) * pitch
        tip = child.top - 2
        end = tip - ARROW + 1
        bend = node.bottom + (end - node.bottom) * (0.65 - 0.3 * abs(child.x - node.x) / farthest)
        path = (
            f"M {start:.1f} {node.bottom:.1f} C {start:.1f} {bend:.1f} {child.x:.1f} {bend:.1f} {child.x:.1f} {end:.1f}"
        )
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>' + _arrow_head(child.x, tip, colour)


def _arrow_head(x: float, y: float, colour: str) -> str:
    """A triangle that points down to (x, y)."""
    wing = ARROW * 0.55
    points = f"{x:.1f},{y:.1f} {x - wing:.1f},{y - ARROW:.1f} {x + wing:.1f},{y - ARROW:.1f}"
    return f'<polygon points="{points}" fill="{colour}"/>'


def _legend_entry(level: int, x: float) -> str:
    colour, y = level_colour(level), 26.0
    corners = f"{x + 26:.1f},{y:.1f} {x + 17:.1f},{y - 4.5:.1f} {x + 17:.1f},{y + 4.5:.1f}"
    return (
        f'<path d="M {x:.1f} {y:.1f} h 18" stroke="{colour}" stroke-width="2"/>'
        f'<polygon points="{corners}" fill="{colour}"/>'
        f'<text x="{x + 31:.1f}" y="{y + 4.5:.1f}" font-size="16" font-style="italic" fill="{INK}">'
        f'&#960;<tspan dy="4" font-size="{NOTE:g}">{level}</tspan></text>'
    )


def _film(
    moments: Sequence[Thumbnail], recording: Recording | None, floor: float, edge: float, width: float
) -> Iterator[str]:
    """The pictures in a row below the tree, each as near to its leaf as the others let it be."""
    if recording is None:
        return
    places = [moment.leaf.x if moment.leaf else MARGIN + edge / 2 for moment in moments]
    places = _spread(places, edge + THUMB_GAP, MARGIN + edge / 2, width - MARGIN - edge / 2)
    top = floor + 44
    for moment, x in zip(moments, places, strict=True):
        if moment.leaf is not None:
            yield _thread(moment.leaf, floor, x, top)
        place = f'x="{x - edge / 2:.1f}" y="{top:.1f}" width="{edge:.1f}" height="{edge:.1f}"'
        data = _data_uri(recording.frames[moment.step])
        yield f'<image {place} href="{data}" preserveAspectRatio="xMidYMid" style="image-rendering: pixelated"/>'
        yield f'<rect {place} fill="none" stroke="{GREY}" stroke-width="1"/>'
        yield _text(x, top + edge + 16, moment.name, NOTE, GREY)


def _thread(leaf: Node, floor: float, x: float, top: float) -> str:
    """From a leaf straight down its own column to the floor of the tree, then over to its picture."""
    bend = f"C {leaf.x:.1f} {top - 14:.1f} {x:.1f} {floor + 20:.1f} {x:.1f} {top:.1f}"
    return (
        f'<path d="M {leaf.x:.1f} {leaf.bottom + 3:.1f} V {floor + 6:.1f} {bend}" fill="none" stroke="{FAINT}" '
        f'stroke-width="1.3" stroke-dasharray="1.5 3.5" stroke-linecap="round"/>'
    )


def _spread(wanted: Sequence[float], apart: float, least: float, most: float) -> list[float]:
    """Places in the same order, at least so far apart, within bounds that are wide enough, and near those wanted."""
    last = len(wanted) - 1
    right, left = list(wanted), list(wanted)
    for i in range(1, last + 1):
        right[i] = max(right[i], right[i - 1] + apart)
        left[last - i] = min(left[last - i], left[last - i + 1] - apart)
    places = [(a + b) / 2 for a, b in zip(right, left, strict=True)]
    places = [min(place, most - (last - i) * apart) for i, place in enumerate(places)]
    return [max(place, least + i * apart) for i, place in enumerate(places)]


def _data_uri(picture: Picture) -> str:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _text(x: float, y: float, words: str, size: float, fill: str, anchor: str = "middle") -> str:
    style = f'font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'
