"""A plan as a film: what the agent sees beside the map, beneath them who tells whom to do what, and the plan so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from skillstack.rollout.plan import ACHIEVED, CUT_OFF, LIMIT, OUTCOMES, REFUSED, PlanRun, PlanTree
from skillstack.rollout.plan_svg import FAILED, GREY, INK, PAPER, level_colour
from skillstack.rollout.plan_text import plan_line
from skillstack.rollout.replay import MAP_SIZE, Picture, Recording

STEP_MS, SHORTEST_STEP_MS, FILM_MS, END_MS = 400, 80, 24_000, 3_000
"""A step is shown for so long, or as short as that where the film would last longer; the end is held."""

SUCCEEDED = "#1d7a3a"
MARGIN, CAPTION_HEIGHT = 12, 98
CHAIN_SIZE, SMALLEST_SIZE, WORDS_SIZE, PLAN_SIZE = 22, 11, 18, 16  # of letters
ARROW = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
DOTS = "..."
LEFT_OUT = (DOTS, GREY)
SIGNS = {"": DOTS, LIMIT: "(gave up)", REFUSED: "(refused)", CUT_OFF: "(out of steps)"}
"""What stands behind a run that was not achieved: in words, as the letters of a picture have no signs for it."""


@dataclass(frozen=True)
class Scene:
    """One picture of the film."""

    step: int
    """Which frame of the recording is seen."""
    chain: tuple[PlanRun, ...]
    """Who is active, the root first."""
    words: str
    """What happens."""
    colour: str = INK
    count: str = ""
    """Where in the film this is."""
    plan: str = ""
    """The plan as far as it has come."""


def write_gif(path: str | Path, tree: PlanTree, recording: Recording) -> None:
    """Write the film of a plan as an animated GIF: a picture for each step and each refused utterance, then the end."""
    recording.check(tree)
    scenes = film(tree)
    pictures = _with_one_palette([Image.fromarray(picture) for picture in draw_film(scenes, recording)])
    step_ms = int(min(STEP_MS, max(SHORTEST_STEP_MS, FILM_MS / len(scenes))))
    durations = [step_ms] * (len(scenes) - 1) + [END_MS]
    pictures[0].save(path, "GIF", save_all=True, append_images=pictures[1:], duration=durations, loop=0)


def film(tree: PlanTree) -> list[Scene]:
    """The scenes of a plan in order of time."""
    steps = len(tree.actions())
    end = f"{tree.root.outcome or 'under way'} after {steps} step{'' if steps == 1 else 's'}"
    if tree.root.outcome not in ("", ACHIEVED):
        end += f": {OUTCOMES[tree.root.outcome]}"
    colour = {"": INK, ACHIEVED: SUCCEEDED}.get(tree.root.outcome, FAILED)
    scenes, step = [], 0
    for moment, (chain, words, refused) in enumerate(_events(tree.root, ())):
        count = f"step {min(step + 1, steps)} of {steps}:  " if steps else ""
        so_far = plan_line(tree.until(moment + 1), SIGNS)  # what is being done belongs to it already
        scenes.append(Scene(step, chain, words, FAILED if refused else INK, count, so_far))
        step += not refused
    return [*scenes, Scene(steps, (tree.root,), end, colour, plan=plan_line(tree, SIGNS))]


def _events(run: PlanRun, above: tuple[PlanRun, ...]) -> Iterator[tuple[tuple[PlanRun, ...], str, bool]]:
    """Actions and refused utterances, each with the chain of runs that led to it."""
    chain = (*above, run)
    for decision in run.decisions:
        if decision.run is not None:
            yield from _events(decision.run, chain)
        elif decision.action is not None:
            yield chain, decision.action, False
        else:
            yield chain, f'"{decision.utterance}" cannot be done now', True


def draw_film(scenes: Sequence[Scene], recording: Recording) -> Iterator[Picture]:
    """The pictures of the scenes, all of one size."""
    views = _views(recording, 0)
    width = sum(view.width for view in views) + MARGIN * (len(views) + 1)
    height = max(view.height for view in views) + MARGIN + CAPTION_HEIGHT
    chains = [_fit(chain_words(scene.chain), width - 2 * MARGIN) for scene in scenes]
    # One size for all, so that the words do not jump.
    size = min(size for _, size in chains)
    plan_size = min(_size_for(scene.plan, width - 2 * MARGIN, PLAN_SIZE) for scene in scenes)
    for scene, (links, _) in zip(scenes, chains, strict=True):
        canvas = Image.new("RGB", (width, height), PAPER)
        left, middle = MARGIN, MARGIN + (height - MARGIN - CAPTION_HEIGHT) // 2
        for view in _views(recording, scene.step):
            canvas.paste(view, (left, middle - view.height // 2))
            left += view.width + MARGIN
        _caption(canvas, scene, links, size, height - CAPTION_HEIGHT)
        _plan(canvas, scene.plan, plan_size, height - CAPTION_HEIGHT + 80)
        yield np.asarray(canvas)


def _views(recording: Recording, step: int) -> list[Image.Image]:
    """What the agent sees, enlarged without blur, and the map where there is one."""
    view = Image.fromarray(recording.frames[step])
    times = max(MAP_SIZE // view.height, 1)
    views = [view.resize((view.width * times, view.height * times), Image.Resampling.NEAREST)]
    if recording.maps is not None:
        views.append(Image.fromarray(recording.maps[step]))
    return views


def _caption(canvas: Image.Image, scene: Scene, links: Sequence[tuple[str, str]], size: int, top: int) -> None:
    pen = ImageDraw.Draw(canvas)
    x, y = float(MARGIN), top + 24
    font = ImageFont.load_default(size)
    for number, (words, colour) in enumerate(links):
        if number:
            pen.text((x, y), ARROW, fill=GREY, font=font, anchor="lm")
            x += font.getlength(ARROW)
        pen.text((x, y), words, fill=colour, font=font, anchor="lm")
        x += font.getlength(words)
    small = ImageFont.load_default(_size_for(scene.count + scene.words, canvas.width - 2 * MARGIN, WORDS_SIZE))
    pen.text((MARGIN, top + 52), scene.count, fill=GREY, font=small, anchor="lm")
    left = MARGIN + small.getlength(scene.count)
    pen.text((left, top + 52), scene.words, fill=scene.colour, font=small, anchor="lm")


def _plan(canvas: Image.Image, plan: str, size: int, y: int) -> None:
    """The plan so far on one line."""
    words = latest(plan, size, canvas.width - 2 * MARGIN)
    ImageDraw.Draw(canvas).text((MARGIN, y), words, fill=INK, font=ImageFont.load_default(size), anchor="lm")


def latest(plan: str, size: int, room: float) -> str:
    """A plan's line, or as much of its end as there is room for in letters of this size."""
    font, parts = ImageFont.load_default(size), plan.split(", ")
    ends = (", ".join([DOTS, *parts[first:]]) for first in range(1, len(parts)))
    return next((words for words in (plan, *ends) if font.getlength(words) <= room), DOTS)


def chain_words(chain: Sequence[PlanRun]) -> list[tuple[str, str]]:
    """The instructions of a chain in their policies' colours; one that is only handed down is told once."""
    return [
        (str(instruction), level_colour(next(runs).level))
        for instruction, runs in groupby(chain, lambda run: run.instruction)
    ]


def _fit(links: list[tuple[str, str]], room: float) -> tuple[list[tuple[str, str]], int]:
    """The chain and a size of letters for it; where no size is small enough, its middle is left out."""
    while True:
        words = ARROW.join(words for words, _ in links)
        size = _size_for(words, room, CHAIN_SIZE)
        if len(links) <= 3 or ImageFont.load_default(size).getlength(words) <= room:
            return links, size
        links = [links[0], LEFT_OUT, *links[3 if links[1] == LEFT_OUT else 2 :]]


def _size_for(words: str, room: float, largest: int) -> int:
    """The largest size of letters for which the words fit."""
    sizes = range(largest, SMALLEST_SIZE, -1)
    return next((size for size in sizes if ImageFont.load_default(size).getlength(words) <= room), SMALLEST_SIZE)


def _with_one_palette(pictures: Sequence[Image.Image]) -> list[Image.Image]:
    """All pictures in the same 256 colours, so that what stands still costs nothing.

    Every colour counts once, however often it is seen, or a block that is seen for a moment would have no colour.
    """
    places = np.array([65536, 256, 1], dtype=np.uint32)
    codes = (np.asarray(picture)[::2, ::2].astype(np.uint32) @ places for picture in pictures)
    seen = np.unique(np.concatenate([np.unique(part) for part in codes]))
    swatch = np.stack([seen >> 16, seen >> 8 & 255, seen & 255], axis=-1).astype(np.uint8)[None]  # (1, colours, 3)
    palette = Image.fromarray(swatch).quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1)
    return [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
