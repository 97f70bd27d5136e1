import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.errors import SkillstackError
from skillstack.instructions import Instruction, TaskSet, make_stages
from skillstack.policies.grammar import Grammar
from skillstack.policies.grammar_text import MOST_STATES, describe, describe_all, grammar_svg

STAGE = make_stages()[3]
STACK_BLUE = Instruction("stack", "blue")
SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]


def learned(*episodes: tuple[int, str], smoothing: float = 0.0) -> Grammar:
    """A grammar for "stack blue" from so many times such an episode, its states parted by commas."""
    grammar = Grammar(STAGE.tasks, STAGE.base, smoothing)
    task = STAGE.tasks.vocabulary.encode(STACK_BLUE)
    for times, states in episodes:
        for _ in range(times):
            grammar.update(task, [grammar.state_names.index(name) for name in states.split(", ")])
    return grammar


USUAL = (
    (89, "call get blue, call find blue, act"),
    (10, "call find blue, call get blue, call find blue, act, act"),
    (1, "call put red, act"),
)


class TestWords:
    def test_a_chain_is_told_from_the_start_with_probabilities_and_counts(self) -> None:
        # find blue is entered 89 + 2 * 10 = 109 times: 99 times an act follows, 10 times get blue.
        # The acts are entered 89 + 2 * 10 + 1 = 110 times: 10 times one more follows, 100 times the episode ends.
        assert describe(learned(*USUAL), STACK_BLUE).plain.splitlines() == [
            "stack blue: from 100 positive episodes",
            "  start     -> get blue   0.89   (89)",
            "            -> find blue  0.10   (10)",
            "            -> other      0.01    (1)",
            "  get blue  -> find blue  1.00   (99)",
            "  find blue -> act        0.91   (99)",
            "            -> get blue   0.09   (10)",
            "  act       -> act        1.00   (10)",
            "            -> the end          (100)",
        ]

    def test_a_lower_threshold_shows_rarer_steps_and_their_states(self) -> None:
        text = describe(learned(*USUAL), STACK_BLUE, min_probability=0.01).plain
        assert re.search(r"-> put red +0\.01 +\(1\)", text)
        assert re.search(r"\n  put red +-> act +1\.00 +\(1\)", text)
        assert "other" not in text

    def test_the_likeliest_step_is_shown_even_below_the_threshold(self) -> None:
        text = describe(learned(*USUAL), STACK_BLUE, min_probability=1.0).plain
        assert re.search(r"start +-> get blue +0\.89", text)

    def test_what_smoothing_gives_to_steps_never_seen_is_told_as_other(self) -> None:
        # A weight of 1: get blue (1 + 1/36) / 2 = 0.51, all others together 0.49, with no count.
        text = describe(learned((1, "call get blue"), smoothing=1.0), STACK_BLUE).plain
        assert re.search(r"get blue +0\.51 +\(1\)\n +-> other +0\.49 +\(0\)", text)

    def test_a_task_without_success_says_so(self) -> None:
        text = describe(learned(*USUAL), Instruction("stack", "red")).plain
        assert text == "stack red: no positive episode yet, so every choice is equally likely"

    def test_all_tasks_are_the_chains_and_one_line_for_those_without(self) -> None:
        text = describe_all(learned((1, "act"))).plain
        assert text.startswith("stack blue: from 1 positive episode\n  start -> act")
        assert text.count("\n\n") == 1
        assert "\n\nNo positive episode yet: find red, find yellow," in text
        assert "stack blue" not in text.split("\n\n")[1]

    def test_an_unknown_task_or_threshold_is_refused(self) -> None:
        with pytest.raises(SkillstackError, match="Unknown task"):
            describe(learned(), Instruction("fly", "blue"))
        with pytest.raises(SkillstackError, match="between 0 and 1"):
            describe(learned(), STACK_BLUE, min_probability=5)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def boxes(svg: str) -> tuple[Box, list[Box]]:
    """The whole picture, and the boxes of its states and of its labels: left, top, right, bottom."""
    found = []
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        left, top, width, height = (float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
        found.append((left, top, left + width, top + height))
    return found[0], found[1:]


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


class TestPicture:
    def test_it_shows_states_probabilities_counts_and_ends(self) -> None:
        shown = texts(grammar_svg(learned(*USUAL), STACK_BLUE))
        assert shown[:2] == ["stack blue", "from 100 positive episodes"]
        for words in ("start", "get blue", "find blue", "act", "ends 100", "0.89 (89)", "0.10 (10)", "1.00 (99)"):
            assert words in shown
        assert "put red" not in shown

    def test_a_lower_threshold_shows_more(self) -> None:
        assert "put red" in texts(grammar_svg(learned(*USUAL), STACK_BLUE, min_probability=0.001))

    def test_the_usual_chain_reads_from_left_to_right(self) -> None:
        root = ElementTree.fromstring(grammar_svg(learned(*USUAL), STACK_BLUE))
        x = {"".join(text.itertext()): float(text.get("x", "nan")) for text in root.iter(f"{SVG}text")}
        assert x["start"] < x["get blue"] < x["find blue"] < x["act"]

    def test_likelier_steps_are_drawn_stronger(self) -> None:
        root = ElementTree.fromstring(grammar_svg(learned(*USUAL), STACK_BLUE))
        widths = [float(path.get("stroke-width", "nan")) for path in root.iter(f"{SVG}path")]
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]

    def test_every_step_has_a_line_an_arrow_head_and_a_label(self) -> None:
        svg = grammar_svg(learned(*USUAL), STACK_BLUE)
        assert svg.count("<path") == svg.count("<polygon") == svg.count("<tspan") == 6

    def test_it_is_self_contained_and_titled(self) -> None:
        svg = grammar_svg(learned(*USUAL), STACK_BLUE)
        assert "<title>The grammar of stack blue</title>" in svg
        assert "href" not in svg
        assert "url(" not in svg

    def test_words_cannot_break_the_picture(self) -> None:
        base = TaskSet.of(["find"], ["<b>&"])
        grammar = Grammar(base, base)
        grammar.update([0, 0], [0])
        assert "find <b>&" in texts(grammar_svg(grammar, base.tasks[0]))

    def test_a_task_without_success_is_drawn_as_its_start(self) -> None:
        shown = texts(grammar_svg(learned(*USUAL), Instruction("stack", "red")))
        assert "no positive episode yet, so every choice is equally likely" in shown
        assert "start" in shown

    def test_a_messy_grammar_is_cut_to_its_most_used_states_and_says_so(self) -> None:
        grammar = learned(*((20 - state, Grammar(STAGE.tasks, STAGE.base).state_names[state]) for state in range(18)))
        svg = grammar_svg(grammar, STACK_BLUE, min_probability=0.0)
        assert svg.count("ends ") == MOST_STATES - 1
        assert f"At most {MOST_STATES} states are drawn." in svg

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.lists(st.integers(0, 18), min_size=1, max_size=8), max_size=30), st.sampled_from([0.0, 0.1]))
    def test_no_label_or_state_overlaps_another_or_leaves_the_picture(
        self, episodes: list[list[int]], min_probability: float
    ) -> None:
        grammar = learned()
        for states in episodes:
            grammar.update(STAGE.tasks.vocabulary.encode(STACK_BLUE), states)
        whole, parts = boxes(grammar_svg(grammar, STACK_BLUE, min_probability))
        for one, other in itertools.combinations(parts, 2):
            assert not overlap(one, other)
        for left, top, right, bottom in parts:
            assert left >= 0
            assert top >= 66  # under the headings
            assert right <= whole[2]
            assert bottom <= whole[3] - 30  # over the caption
