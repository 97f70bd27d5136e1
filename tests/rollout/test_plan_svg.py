import itertools
import re
from base64 import b64decode
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from PIL import Image
from plans import any_plan, find, refused, run, stack_blue, tree

from skillstack.errors import SkillstackError
from skillstack.rollout.plan import LIMIT, REFUSED, PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.plan_svg import FAILED, LETTER, WORDS, level_colour, plan_svg
from skillstack.rollout.plan_text import plan_line
from skillstack.rollout.replay import Recording

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def picture(plan: PlanTree, recording: Recording | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(plan_svg(plan, recording))


def recorded(plan: PlanTree) -> Recording:
    """Frames that are all different: the step's number is their grey."""
    steps = len(plan.actions()) + 1
    return Recording(np.repeat(np.arange(steps) % 256, 8 * 8 * 3).reshape(steps, 8, 8, 3).astype(np.uint8))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def x_of(root: ElementTree.Element, words: str) -> list[float]:
    return [float(text.get("x", "")) for text in root.iter(f"{SVG}text") if "".join(text.itertext()) == words]


def boxes(root: ElementTree.Element) -> list[Box]:
    """What must not overlap: utterances, labels of actions, pictures with their names, the header's words."""
    found = []
    for group in root.iter(f"{SVG}g"):
        rect, words = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert words is not None
        found.append(_text_box(words) if rect is None else _rect_box(rect))
    found += [_rect_box(image) for image in root.iter(f"{SVG}image")]
    return found + [_text_box(text) for text in root.findall(f"{SVG}text")]


def _rect_box(rect: ElementTree.Element) -> Box:
    x, y, width, height = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def _text_box(text: ElementTree.Element) -> Box:
    size, x, y = (float(text.get(name, "")) for name in ("font-size", "x", "y"))
    width = len("".join(text.itertext())) * LETTER * size / WORDS * 0.92  # LETTER is a little generous
    left = {"middle": x - width / 2, "end": x - width}.get(text.get("text-anchor", "start"), x)
    return left, y - size * 0.8, left + width, y + size * 0.2


def overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] - 0.2 and b[0] < a[2] - 0.2 and a[1] < b[3] - 0.2 and b[1] < a[3] - 0.2


def test_the_root_is_on_top_and_its_parts_go_from_left_to_right_in_time() -> None:
    root = picture(stack_blue())
    assert [words for words in texts(root) if words[0].isupper()] == [
        "Stack blue", "Get blue", "Get blue", "Find blue", "Find blue", "Find blue", "Find blue", "Put blue",
    ]  # fmt: skip
    assert x_of(root, "3 steps") < x_of(root, "pick up") < x_of(root, "2 steps") < x_of(root, "put down")


def test_arrows_have_the_colour_of_the_policy_that_decided() -> None:
    paths = [path.get("stroke") for path in picture(stack_blue()).findall(f"{SVG}path") if " C " in path.get("d", "")]
    # Three decisions of pi_3; pi_2 called twice and put down; pi_1 called twice and picked up; two terminal runs.
    assert [paths.count(level_colour(level)) for level in (3, 2, 1, 0)] == [3, 3, 3, 2]


def test_the_legend_names_the_levels_that_take_part_from_the_top() -> None:
    assert [words for words in texts(picture(stack_blue())) if words.startswith("π")] == ["π3", "π2", "π1", "π0"]
    assert [words for words in texts(picture(tree(find(0, "turn left")))) if words.startswith("π")] == ["π0"]


def test_every_level_has_a_colour_however_many_there_are() -> None:
    colours = [level_colour(level) for level in range(7)]
    assert len(set(colours)) == 7
    assert FAILED not in colours
    assert all(level_colour(level) in colours[1:] for level in range(7, 30))


def test_a_terminal_runs_actions_are_folded_and_told_where_the_mouse_rests() -> None:
    root = picture(tree(run(1, "get blue", find(0, *["turn left"] * 9), "pick up")))
    assert "9 steps" in texts(root)
    assert "turn left x9" in [title.text for title in root.iter(f"{SVG}title")]


def test_failures_are_marked_with_how_they_ended() -> None:
    plan = tree(run(1, "get blue", find(0, "turn left", outcome=LIMIT), refused("find red"), outcome=REFUSED))
    root = picture(plan)
    assert texts(root).count("limit") == 1
    assert texts(root).count("not executable") == 2  # the utterance, and the run that made it
    assert len(root.findall(f".//{SVG}circle")) == 3
    assert len([rect for rect in root.iter(f"{SVG}rect") if rect.get("stroke-dasharray")]) == 1
    assert not picture(stack_blue()).findall(f".//{SVG}circle")


def test_the_header_says_how_it_went_and_the_title_and_description_say_the_plan() -> None:
    plan = stack_blue()
    root = picture(plan)
    assert "rooms, seed 0: achieved after 7 steps" in texts(root)
    assert root.findtext(f"{SVG}title") == plan_line(plan)
    assert root.findtext(f"{SVG}desc") == plan_sentence(plan)


def test_pictures_show_the_start_the_end_of_each_leaf_and_the_end() -> None:
    plan = stack_blue()
    root = picture(plan, recorded(plan))
    assert [words for words in texts(root) if words == "start" or "t =" in words] == [
        "start", "t = 3", "t = 4", "t = 6", "end, t = 7",
    ]  # fmt: skip
    assert [int(shown(image)[0, 0, 0]) for image in root.iter(f"{SVG}image")] == [0, 3, 4, 6, 7]


def test_a_leaf_that_changed_nothing_has_no_picture_unless_it_is_the_end() -> None:
    plan = tree(run(1, "get blue", "move left", "turn left", "move left", outcome=LIMIT))
    frames = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    frames[2:] = 9  # only the turn was to be seen
    root = picture(plan, Recording(frames))
    assert [words for words in texts(root) if "t =" in words] == ["t = 2", "end, t = 3"]


def test_pictures_are_embedded_whole_and_not_blurred() -> None:
    plan = stack_blue()
    recording = Recording(np.random.default_rng(0).integers(0, 256, (8, 84, 84, 3)).astype(np.uint8))
    first, *_ = picture(plan, recording).iter(f"{SVG}image")
    assert (shown(first) == recording.frames[0]).all()
    assert "pixelated" in first.get("style", "")


def test_a_recording_of_another_game_is_refused() -> None:
    with pytest.raises(SkillstackError, match="frames"):
        plan_svg(stack_blue(), Recording(np.zeros((3, 8, 8, 3), dtype=np.uint8)))


def test_nothing_is_fetched_from_elsewhere() -> None:
    plan = stack_blue()
    links = re.findall(r'(?:href|src|url\()[="\']*([^"\')]{0,20})', plan_svg(plan, recorded(plan)))
    assert links
    assert all(link.startswith("data:image/png") for link in links)


@given(any_plan(most_levels=6))
@settings(max_examples=60, deadline=None)
def test_any_plan_is_drawn_without_overlaps_within_the_picture(plan: PlanTree) -> None:
    root = picture(plan, recorded(plan))
    _, _, width, height = (float(part) for part in root.get("viewBox", "").split())
    found = boxes(root)
    assert all(left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in found)
    assert not [pair for pair in itertools.combinations(found, 2) if overlap(*pair)]
    for path in root.findall(f"{SVG}path"):
        thread = re.match(r"M (\S+) (\S+) V (\S+) C", path.get("d", ""))
        if thread:
            x, top, bottom = map(float, thread.groups())
            assert not [box for box in found if overlap(box, (x - 0.5, top, x + 0.5, bottom))]


def shown(image: ElementTree.Element) -> np.ndarray:
    data = image.get("href", "").removeprefix("data:image/png;base64,")
    return np.asarray(Image.open(BytesIO(b64decode(data))))
