from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack import Instruction, SkillstackError, Stage, TaskSet, Vocabulary, make_stages
from skillstack.instructions import COLOURS, DEFAULT_VOCABULARY, SKILLS, add_stage

RELAXED = settings(deadline=None)  # a busy machine is no failure
WORDS = st.text("abcdefghij", min_size=1, max_size=4)
WORD_LISTS = st.lists(WORDS, min_size=1, max_size=5, unique=True)


class TestInstruction:
    def test_a_task_prints_as_it_is_said(self) -> None:
        assert str(Instruction("stack", "blue")) == "stack blue"

    @pytest.mark.parametrize("text", ["stack blue", "Stack BLUE", "  stack\t blue\n", "STACK  Blue"])
    def test_reading_forgives_case_and_spaces(self, text: str) -> None:
        assert Instruction.parse(text) == Instruction("stack", "blue")

    @RELAXED
    @given(st.sampled_from(DEFAULT_VOCABULARY.tasks))
    def test_every_task_can_be_read_back_from_its_name(self, task: Instruction) -> None:
        assert Instruction.parse(str(task)) == task

    def test_equal_tasks_are_one_thing(self) -> None:
        assert len({Instruction("get", "red"), Instruction.parse("get red")}) == 1

    @pytest.mark.parametrize("text", ["stak blue", "stacks blue", "stock blue"])
    def test_an_unknown_skill_gets_the_known_ones_and_the_nearest(self, text: str) -> None:
        with pytest.raises(
            SkillstackError, match=r'Unknown skill .* Did you mean "stack"\? Known: find, get, put, stack'
        ):
            Instruction.parse(text)

    @pytest.mark.parametrize(("word", "nearest"), [("bleu", "blue"), ("gren", "green"), ("purpel", "purple")])
    def test_an_unknown_item_gets_the_known_ones_and_the_nearest(self, word: str, nearest: str) -> None:
        with pytest.raises(SkillstackError) as caught:
            Instruction.parse(f"find {word}")
        assert f'Unknown item "{word}". Did you mean "{nearest}"?' in str(caught.value)
        assert all(colour in str(caught.value) for colour in COLOURS)

    def test_a_word_that_is_near_nothing_gets_no_guess(self) -> None:
        with pytest.raises(SkillstackError, match=r'Unknown item "xyz"\. Known: red') as caught:
            Instruction.parse("find xyz")
        assert "Did you mean" not in str(caught.value)

    @pytest.mark.parametrize("text", ["", "stack", "stack blue please", "bluestack"])
    def test_what_is_not_two_words_gets_the_words_and_an_example(self, text: str) -> None:
        with pytest.raises(SkillstackError, match=r'say a skill \(find, .*\) and an item \(red, .*\), .*"stack white"'):
            Instruction.parse(text)

    def test_reading_uses_the_vocabulary_it_is_given(self) -> None:
        kitchen = Vocabulary(("wash",), ("cup", "plate"))
        assert Instruction.parse("Wash cup", kitchen) == Instruction("wash", "cup")
        with pytest.raises(SkillstackError, match=r'Unknown skill "find". .*wash'):
            Instruction.parse("find cup", kitchen)

    def test_bad_words_are_refused_by_errors_of_ours(self) -> None:
        with pytest.raises(SkillstackError, match="Unknown"):
            Instruction.parse("find nothing")


class TestVocabulary:
    def test_the_papers_words_are_the_default(self) -> None:
        assert SKILLS == ("find", "get", "put", "stack")
        assert set(COLOURS) == {"blue", "white", "green", "purple", "red", "yellow"}
        assert len(DEFAULT_VOCABULARY.tasks) == 24

    @RELAXED
    @given(WORD_LISTS, WORD_LISTS)
    def test_every_task_survives_its_word_numbers(self, skills: list[str], items: list[str]) -> None:
        vocabulary = Vocabulary(tuple(f"s{word}" for word in skills), tuple(f"i{word}" for word in items))
        numbers = vocabulary.encode(vocabulary.tasks)
        assert numbers.shape == (len(skills) * len(items), 2)
        assert tuple(vocabulary.decode(pair) for pair in numbers) == vocabulary.tasks

    def test_one_task_is_a_pair_of_numbers(self) -> None:
        assert DEFAULT_VOCABULARY.encode(Instruction("put", "yellow")).tolist() == [2, 1]

    def test_no_tasks_are_an_empty_array_of_pairs(self) -> None:
        assert DEFAULT_VOCABULARY.encode([]).shape == (0, 2)

    def test_an_unknown_task_has_no_numbers(self) -> None:
        with pytest.raises(SkillstackError, match='Unknown item "orange"'):
            DEFAULT_VOCABULARY.encode([Instruction("find", "red"), Instruction("find", "orange")])

    def test_new_words_come_last_so_that_numbers_stay_valid(self) -> None:
        more = DEFAULT_VOCABULARY.extended(skills=["drop", "find"], items=["black"])
        assert more.skills == (*SKILLS, "drop")
        assert more.items == (*COLOURS, "black")
        for task in DEFAULT_VOCABULARY.tasks:
            np.testing.assert_array_equal(more.encode(task), DEFAULT_VOCABULARY.encode(task))

    @pytest.mark.parametrize(
        ("skills", "items", "message"),
        [
            ((), ("red",), "at least one skill"),
            (("find",), (), "at least one item"),
            (("find", "find"), ("red",), 'skill "find" is listed twice'),
            (("find",), ("red", "red"), 'item "red" is listed twice'),
            (("Find",), ("red",), '"Find" is no skill: use one lower-case word'),
            (("find",), ("light blue",), '"light blue" is no item'),
            (("find",), ("",), '"" is no item'),
            (("find",), ("find",), "both a skill and an item"),
        ],
    )
    def test_words_must_be_plain_and_differ(
        self, skills: tuple[str, ...], items: tuple[str, ...], message: str
    ) -> None:
        with pytest.raises(SkillstackError, match=message):
            Vocabulary(skills, items)


class TestTaskSet:
    def test_skills_are_outermost(self) -> None:
        tasks = TaskSet.of(["find", "get"], ["red", "blue"])
        assert [str(task) for task in tasks] == ["find red", "find blue", "get red", "get blue"]

    def test_a_union_keeps_the_order_and_holds_each_task_once(self) -> None:
        union = TaskSet.of(["find"], ["red", "blue"]) | TaskSet.of(["get", "find"], ["blue"])
        assert [str(task) for task in union] == ["find red", "find blue", "get blue"]

    def test_it_knows_its_own_words(self) -> None:
        tasks = TaskSet((Instruction("put", "blue"), Instruction("find", "red"), Instruction("put", "red")))
        assert tasks.skills == ("put", "find")
        assert tasks.items == ("blue", "red")
        assert tasks.vocabulary == Vocabulary(("put", "find"), ("blue", "red"))

    def test_it_can_be_asked_what_it_holds(self) -> None:
        tasks = TaskSet.of(["find"], ["red"])
        assert Instruction("find", "red") in tasks
        assert Instruction("find", "blue") not in tasks
        assert len(tasks) == 1
        assert not TaskSet()

    def test_a_task_twice_is_an_error(self) -> None:
        with pytest.raises(SkillstackError, match="each task once"):
            TaskSet((Instruction("find", "red"), Instruction("find", "red")))


class TestStages:
    def test_the_papers_ladder_adds_six_tasks_a_stage(self) -> None:
        stages = make_stages()
        assert [len(stage.tasks) for stage in stages] == [6, 12, 18, 24]
        assert [stage.novel.skills for stage in stages] == [("find",), ("get",), ("put",), ("stack",)]
        assert [stage.level for stage in stages] == [0, 1, 2, 3]

    @RELAXED
    @given(st.permutations(SKILLS), WORD_LISTS)
    def test_skills_can_be_learned_in_any_order_over_any_items(self, order: list[str], items: list[str]) -> None:
        stages = make_stages(order, [f"i{item}" for item in items])
        assert [stage.novel.skills for stage in stages] == [(skill,) for skill in order]
        for below, stage in pairwise(stages):
            assert stage.base == below.tasks
            assert stage.tasks == stage.base | stage.novel
            assert not set(stage.base) & set(stage.novel)
        assert len(stages[-1].tasks) == len(SKILLS) * len(items)

    def test_the_first_stage_stands_on_nothing(self) -> None:
        assert make_stages()[0].base == TaskSet()

    @pytest.mark.parametrize("order", ["find get put", "find, get, put", " Find,GET ,put"])
    def test_an_order_can_be_one_text(self, order: str) -> None:
        assert make_stages(order) == make_stages(("find", "get", "put"))

    def test_items_can_be_one_text_too(self) -> None:
        assert make_stages("find", "red, blue") == make_stages(["find"], ["red", "blue"])

    def test_words_that_are_not_the_papers_are_welcome(self) -> None:
        stages = make_stages(["see", "wash"], ["cup"])
        assert [str(stage) for stage in stages] == ["stage 0: learn see", "stage 1: learn wash on top of see"]

    @pytest.mark.parametrize("order", ["find get find", ["get", "get"]])
    def test_an_order_that_repeats_a_skill_is_an_error(self, order: str | list[str]) -> None:
        with pytest.raises(SkillstackError, match="listed twice"):
            make_stages(order)

    @pytest.mark.parametrize(("order", "items"), [("", COLOURS), ([], COLOURS), ("find", [])])
    def test_a_ladder_needs_a_skill_and_an_item(self, order: str | list[str], items: list[str]) -> None:
        with pytest.raises(SkillstackError, match="at least one"):
            make_stages(order, items)

    def test_a_stage_can_bring_new_items_for_known_skills(self) -> None:
        stages = add_stage(make_stages("find get", ["red"]), items=["blue"])
        assert [str(task) for task in stages[-1].novel] == ["find blue", "get blue"]
        assert stages[-1].base == stages[-2].tasks

    def test_a_stage_can_bring_a_new_skill_for_known_items(self) -> None:
        stages = add_stage(make_stages("find", ["red", "blue"]), skills=["get"])
        assert [str(task) for task in stages[-1].novel] == ["get red", "get blue"]

    def test_a_stage_can_bring_both(self) -> None:
        stages = add_stage(make_stages("find", ["red"]), skills=["find", "get"], items=["red", "blue"])
        assert [str(task) for task in stages[-1].novel] == ["find blue", "get red", "get blue"]

    def test_a_stage_that_brings_nothing_is_an_error(self) -> None:
        with pytest.raises(SkillstackError, match="must bring a skill or an item"):
            add_stage(make_stages(), skills=["find"])

    def test_adding_a_stage_leaves_the_ladder_below_alone(self) -> None:
        below: tuple[Stage, ...] = make_stages("find", ["red"])
        assert add_stage(below, skills=["get"])[:1] == below
        assert len(below) == 1
