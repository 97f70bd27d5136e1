import re
from io import StringIO

import pytest
from hypothesis import given, settings
from plans import any_plan, find, refused, run, stack_blue, tree
from rich.console import Console

from skillstack.instructions import Instruction
from skillstack.rollout.plan import CUT_OFF, LIMIT, REFUSED, Odds, PlanDecision, PlanRun, PlanTree
from skillstack.rollout.plan_sentence import plan_sentence
from skillstack.rollout.plan_text import fold, plan_line, plan_tree_renderable
from skillstack.worlds.rooms.looks import WOOL

WAY = ("move forward", "move forward", "turn left")


def say(root: PlanRun, world: str = "rooms") -> str:
    return plan_sentence(tree(root, world=world))


def line(root: PlanRun) -> str:
    return plan_line(tree(root))


def printed(plan: PlanTree, probabilities: bool = False, colour: bool = False) -> str:
    console = Console(file=StringIO(), width=120, force_terminal=colour, color_system="truecolor" if colour else None)
    console.print(plan_tree_renderable(plan, probabilities))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(row.rstrip() for row in text.splitlines())


def get_blue() -> PlanRun:
    return run(1, "get blue", find(0, *WAY), "pick up")


class TestLine:
    def test_the_papers_example_is_told_without_the_terminal_runs_actions(self) -> None:
        expected = "stack blue: get blue (find blue, pick up), find blue, put blue (put down)"
        assert plan_line(stack_blue()) == expected

    def test_a_terminal_run_alone_is_its_instruction(self) -> None:
        assert line(find(0, *WAY)) == "find blue"

    def test_what_did_not_work_out_has_a_sign(self) -> None:
        root = run(
            2, "get red", find(1, "turn left", item="red", outcome=LIMIT), refused("find white"), outcome=REFUSED
        )
        assert line(root) == "get red ✗: find red ⏱ (turn left), find white ✗"
        assert line(find(0, *WAY, outcome=CUT_OFF)) == "find blue ✂"
        assert line(find(0, *WAY, outcome="")) == "find blue …"

    def test_equal_parts_after_each_other_are_folded(self) -> None:
        root = run(1, "get blue", find(0, outcome=LIMIT), find(0, outcome=LIMIT), "turn left", "turn left", "pick up")
        assert line(root) == "get blue: find blue ⏱ x2, turn left x2, pick up"

    def test_a_call_that_hands_its_instruction_down_is_told_once_but_not_if_it_ended_otherwise(self) -> None:
        assert line(run(2, "find blue", run(1, "find blue", find(0, *WAY)))) == "find blue"
        assert line(run(1, "find blue", find(0, *WAY, outcome=LIMIT))) == "find blue: find blue ⏱"

    def test_words_are_folded_only_where_they_follow_each_other(self) -> None:
        assert fold(["a", "a", "b", "a"]) == ["a x2", "b", "a"]


class TestTree:
    def test_every_level_is_shown_with_how_it_ended_and_its_steps(self) -> None:
        assert printed(stack_blue()).splitlines() == [
            '"stack blue"  ✓ achieved  level 3, steps 0-6',
            '├── "get blue"  ✓ achieved  level 2, steps 0-3',
            '│   └── "get blue"  ✓ achieved  level 1, steps 0-3',
            '│       ├── "find blue"  ✓ achieved  level 0, steps 0-2',
            "│       │   └── 3 steps: forward x2, turn left",
            "│       └── pick up  step 3",
            '├── "find blue"  ✓ achieved  level 2, steps 4-5',
            '│   └── "find blue"  ✓ achieved  level 1, steps 4-5',
            '│       └── "find blue"  ✓ achieved  level 0, steps 4-5',
            "│           └── 2 steps: turn right, forward",
            '└── "put blue"  ✓ achieved  level 2, step 6',
            "    └── put down  step 6",
        ]

    def test_each_way_to_end_has_a_sign_and_a_word(self) -> None:
        for outcome, told in ((LIMIT, "⏱ limit"), (REFUSED, "✗ not executable"), (CUT_OFF, "✂ cut off")):
            assert f'"find blue"  {told}  level 0' in printed(tree(find(0, *WAY, outcome=outcome)))

    def test_a_refused_utterance_is_a_leaf_that_says_when(self) -> None:
        plan = tree(run(1, "get blue", "turn left", refused("find red"), outcome=REFUSED))
        assert printed(plan).endswith('└── "find red"  ✗ not executable  at step 1')

    def test_own_actions_are_folded_and_long_ways_are_cut(self) -> None:
        text = printed(tree(run(1, "get blue", find(0, *("turn left", "pick up") * 8), *["move left"] * 3)))
        assert "16 steps: turn left, pick up" in text
        assert "(6 more)" in text
        assert "move left x3  steps 16-18" in text

    def test_a_run_without_steps_and_one_under_way_say_so(self) -> None:
        assert "level 1, no steps" in printed(tree(run(1, "get blue", refused("find red"), outcome=REFUSED)))
        assert printed(tree(find(0, outcome=""))) == '"find blue"  … under way  level 0, from step 0'

    def test_an_instruction_is_on_a_patch_of_its_wool_in_an_ink_that_can_be_read_there(self) -> None:
        for item, colour in WOOL.items():
            label = plan_tree_renderable(tree(find(0, item=item))).label
            (style,) = (span.style for span in label.spans if "on #" in str(span.style))  # type: ignore[union-attr]
            _, ink, _, paper = str(style).split()
            assert paper == "#{:02x}{:02x}{:02x}".format(*colour)
            assert contrast(ink, paper) > 3.5, item

    def test_items_that_are_no_wool_are_printed_in_bold_only(self) -> None:
        assert '\x1b[1m"get key"\x1b[0m' in printed(tree(run(1, "get key", "pick up")), colour=True)

    def test_probabilities_are_told_by_source_the_choice_first_then_what_else_was_likely(self) -> None:
        switch = Odds({"call": 0.5, "act": 0.5}, {"call": 0.9, "act": 0.1}, {"call": 0.9, "act": 0.1})
        instruction = Odds({"find red": 0.7, "find blue": 0.28, "find white": 0.02})
        decision = PlanDecision(0, utterance=Instruction("find", "blue"), run=find(0, *WAY))
        decision.odds = {"switch": switch, "instruction": instruction, "action": Odds({"pick up": 1.0})}
        plan = tree(run(1, "get blue", decision))
        rows = [row.strip("│├└─ ") for row in printed(plan, probabilities=True).splitlines()]
        assert rows[1] == "probabilities: policy / grammar / both together"
        assert rows[3] == "switch      call 0.50 / 0.90 / 0.90, act 0.50 / 0.10 / 0.10"
        assert rows[4] == "instruction find blue 0.28, find red 0.70"
        assert "switch" not in printed(plan)

    def test_probabilities_keep_equal_actions_apart(self) -> None:
        actions = [PlanDecision(0, action="turn left", odds={"action": Odds({"turn left": p})}) for p in (0.25, 0.75)]
        text = printed(tree(run(1, "get blue", *actions)), probabilities=True)
        assert re.findall(r"action +turn left (.*)", text) == ["0.25", "0.75"]
        assert "turn left x2  steps 0-1" in printed(tree(run(1, "get blue", *actions)))


class TestSentence:
    def test_the_papers_example_reads_as_one_would_say_it(self) -> None:
        assert plan_sentence(stack_blue()) == (
            "I stacked the blue blocks: I got a blue block (I found it, then picked it up), found the other one, "
            "and put it down on top."
        )

    @pytest.mark.parametrize(
        ("root", "sentence"),
        [
            (find(0, *WAY), "I found the blue block in 3 steps."),
            (get_blue(), "I got the blue block: I found it, then picked it up."),
            (run(1, "get blue", "pick up"), "I got the blue block: I picked it up."),
            (run(1, "put red", "put down"), "I put the red block down."),
            (
                run(3, "stack orange", find(2, item="orange"), run(2, "get orange", "pick up"), find(2, item="red"),
                    find(2, item="orange"), "put down"),
                "I stacked the orange blocks: I found an orange block, got it (I picked it up), found the red block, "
                "found the other one, and put it down on top.",
            ),
            (
                run(3, "get red", run(2, "put blue", "put down"), run(2, "get red", find(0, item="red"), "pick up")),
                "I got the red block: I put the blue block down, then got the red block (I found it, then picked it "
                "up).",
            ),
        ],
    )  # fmt: skip
    def test_what_worked_out_is_told_in_the_past(self, root: PlanRun, sentence: str) -> None:
        assert say(root) == sentence

    @pytest.mark.parametrize(
        ("root", "sentence"),
        [
            (find(0, *WAY, outcome=LIMIT), "I could not find the blue block: I gave up after 3 steps."),
            (find(0, *WAY, outcome=CUT_OFF), "I could not find the blue block: the game ran out of steps."),
            (
                run(2, "stack blue", get_blue(), find(1, outcome=CUT_OFF), outcome=CUT_OFF),
                "I could not stack the blue blocks: I got a blue block (I found it, then picked it up), and was still "
                "looking for the other one when the game ran out of steps.",
            ),
            (
                run(2, "stack blue", get_blue(), "turn left", "turn left", outcome=CUT_OFF),
                "I could not stack the blue blocks: I got a blue block (I found it, then picked it up), turned left "
                "twice, and then the game ran out of steps.",
            ),
            (
                run(2, "stack blue", run(1, "get blue", find(0, outcome=LIMIT), outcome=LIMIT), "put down",
                    outcome=LIMIT),
                "I could not stack the blue blocks: I failed to get a blue block (I looked for it in vain), tried to "
                "put something down, and gave up after 2 decisions.",
            ),
        ],
    )  # fmt: skip
    def test_what_failed_says_why(self, root: PlanRun, sentence: str) -> None:
        assert say(root) == sentence

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            ("find red", "find a red block, which was not there"),
            ("get orange", "get an orange block, which was not possible"),
            ("put red", "put a red block down, which I did not hold"),
            ("stack red", "stack red blocks, of which there were not two"),
        ],
    )
    def test_an_utterance_that_was_refused_is_told_with_its_reason(self, words: str, told: str) -> None:
        root = run(3, "stack blue", get_blue(), refused(words), outcome=REFUSED)
        assert say(root).endswith(f"picked it up), but then asked myself to {told}.")
        alone = run(3, "stack blue", refused(words), outcome=REFUSED)
        assert say(alone) == f"I could not stack the blue blocks: I asked myself to {told}."

    def test_where_a_game_goes_on_after_a_refusal_its_reason_is_in_brackets(self) -> None:
        root = run(1, "get blue", refused("find red"), refused("find red"), find(0), "pick up")
        assert say(root) == (
            "I got the blue block: I asked myself twice to find a red block (which was not there), found the blue "
            "block, and picked it up."
        )

    def test_repeated_calls_are_told_as_one(self) -> None:
        fails = [find(0, *WAY, outcome=LIMIT) for _ in range(2)]
        assert say(run(1, "get blue", *fails[:1], find(0), "pick up")) == (
            "I got the blue block: I looked for it twice until I found it, then picked it up."
        )
        assert "I looked for it twice in vain, and gave up" in say(run(1, "get blue", *fails, outcome=LIMIT))
        assert say(run(1, "find blue", fails[0], find(0))) == "I found the blue block at the second try."
        tries = [run(1, "get blue", find(0), outcome=LIMIT), get_blue()]
        assert say(run(2, "get blue", *tries)) == (
            "I got the blue block at the second try: I found it, then picked it up."
        )
        assert "got a blue block at the second try (I found it" in say(run(2, "stack blue", *tries, "put down"))

    def test_a_search_that_is_repeated_further_down_counts_as_well(self) -> None:
        search = run(1, "find blue", find(0, outcome=LIMIT), find(0))
        assert "I looked for it twice until I found it" in say(run(2, "get blue", search, "pick up"))

    def test_it_does_not_claim_that_an_action_worked_unless_a_run_shows_it(self) -> None:
        assert "tried to pick something up three times" in say(run(1, "get blue", *["pick up"] * 3, outcome=LIMIT))
        assert "tried to put something down" in say(run(1, "get blue", "put down", "turn left", outcome=LIMIT))
        assert say(run(1, "get blue", *["pick up"] * 2)) == "I got the blue block: I picked it up at the second try."

    def test_a_long_plan_is_cut_in_the_middle_and_names_its_last_thing_anew(self) -> None:
        parts = ["turn left", "move left"] * 4
        told = say(run(2, "get blue", find(0), *parts, run(1, "get blue", "pick up")))
        assert told == (
            "I got the blue block: I found it, turned left, moved left, turned left, did 5 other things, and got the "
            "blue block (I picked it up)."
        )

    def test_a_plan_under_way_is_told_in_the_present(self) -> None:
        assert say(find(0, *WAY, outcome="")) == "I am trying to find the blue block."
        assert say(run(2, "stack blue", get_blue(), find(1, outcome=""), outcome="")) == (
            "I am trying to stack the blue blocks: so far I got a blue block (I found it, then picked it up), and am "
            "now looking for the other one."
        )

    def test_other_worlds_words_are_told_too_and_quoted_where_they_are_unknown(self) -> None:
        get_key = run(1, "get key", find(0, item="key"), "pick up")
        root = run(2, "open door", get_key, run(1, "goto door", "forward", "forward"), "toggle")
        assert say(root, world="doors") == (
            'I opened the door: I got the key (I found it, then picked it up), did "goto door" (I did "forward" '
            "twice), and toggled."
        )
        assert say(run(1, "stack box", outcome=LIMIT), world="doors") == "I could not stack the boxes."

    @given(any_plan())
    @settings(max_examples=100, deadline=None)
    def test_any_plan_can_be_told_in_one_sentence(self, plan: PlanTree) -> None:
        told = plan_sentence(plan)
        assert told.startswith("I ")
        assert told.endswith(".")
        assert told.count("(") == told.count(")")
        assert not re.search(r"None|\{|\}|  |\( | \)|,,|, \.|:\.|: \.|\(\)| ,|I I", told), told

    @given(any_plan())
    @settings(max_examples=60, deadline=None)
    def test_any_plan_can_be_printed_and_its_line_is_one(self, plan: PlanTree) -> None:
        assert "\n" not in plan_line(plan)
        for probabilities in (False, True):
            assert printed(plan, probabilities).startswith(f'"{plan.root.instruction}"')


def contrast(ink: str, paper: str) -> float:
    """The contrast of two colours as the Web Content Accessibility Guidelines define it, from 1 to 21."""
    light = []
    for colour in (ink, paper):
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        light.append(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)
    return max(light) / min(light)
