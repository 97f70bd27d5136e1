import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from plans import any_plan, refused, run, stack_blue, tree

import skillstack.rollout.plan as plan_module
from skillstack.errors import SkillstackError
from skillstack.rollout.plan import OUTCOMES, PlanTree
from skillstack.rollout.plan_sentence import plan_sentence

SCHEMA = json.loads(Path(plan_module.__file__).with_name("plan.schema.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[2] / "docs" / "plan.md").read_text(encoding="utf-8")
TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None),
}  # fmt: skip


class TestTree:
    def test_actions_come_in_order_of_time_with_the_chain_that_led_to_each(self) -> None:
        actions = [(action, [str(link.instruction) for link in chain]) for action, chain in stack_blue().actions()]
        assert [action for action, _ in actions] == [
            "move forward", "move forward", "turn left", "pick up", "turn right", "move forward", "put down",
        ]  # fmt: skip
        assert actions[0][1] == ["stack blue", "get blue", "get blue", "find blue"]
        assert actions[3][1] == ["stack blue", "get blue", "get blue"]
        assert actions[6][1] == ["stack blue", "put blue"]

    def test_runs_come_in_order_of_time_each_before_those_below_it(self) -> None:
        runs = [(each.level, str(each.instruction)) for each in stack_blue().root.runs()]
        assert runs == [
            (3, "stack blue"), (2, "get blue"), (1, "get blue"), (0, "find blue"),
            (2, "find blue"), (1, "find blue"), (0, "find blue"), (2, "put blue"),
        ]  # fmt: skip

    def test_depth_counts_the_levels_that_were_active(self) -> None:
        assert stack_blue().root.depth == 4
        assert run(3, "stack blue", "pick up", refused("find red")).depth == 1

    def test_steps_and_success_are_the_roots(self) -> None:
        failed = tree(run(1, "get blue", "pick up", "pick up", outcome="limit"))
        assert (failed.steps, failed.success) == (2, False)
        assert (stack_blue().steps, stack_blue().success) == (7, True)


class TestJson:
    @given(any_plan())
    @settings(max_examples=60, deadline=None)
    def test_any_plan_comes_back_from_json_as_it_was_and_fits_the_schema(self, plan: PlanTree) -> None:
        text = json.dumps(plan.to_json())
        assert PlanTree.from_json(json.loads(text)) == plan
        assert list(complaints(json.loads(text), SCHEMA)) == []
        assert json.loads(plan.dumps()) == json.loads(text)

    @pytest.mark.parametrize("outcome", ["", *OUTCOMES])
    def test_every_outcome_can_be_written_and_read(self, outcome: str) -> None:
        plan = tree(run(0, "find blue", "turn left", outcome=outcome))
        data = json.loads(plan.dumps())
        assert PlanTree.from_json(data) == plan
        assert list(complaints(data, SCHEMA)) == []

    def test_the_first_lines_tell_success_and_steps(self) -> None:
        data = stack_blue().to_json()
        assert (data["success"], data["steps"]) == (True, 7)

    def test_what_is_not_a_plan_is_refused_in_a_sentence(self) -> None:
        wrong: tuple[Any, ...] = ({}, {"format": "something"}, [])
        for data in wrong:
            with pytest.raises(SkillstackError, match="not a plan"):
                PlanTree.from_json(data)

    def test_a_plan_of_another_version_is_refused(self) -> None:
        with pytest.raises(SkillstackError, match="format version 2; this Skillstack reads 1"):
            PlanTree.from_json(stack_blue().to_json() | {"format_version": 2})

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("seed",), "seven"),
            (("root",), None),
            (("root", "outcome"), "bored"),
            (("root", "instruction"), "stack"),
            (("root", "decisions"), 3),
            (("root", "decisions", 0), {}),
            (("root", "decisions", 0, "utterance"), None),
            (("root", "decisions", 0, "action"), "pick up"),
            (("root", "decisions", 0, "odds"), [1]),
        ],
    )
    def test_a_damaged_plan_is_refused_and_does_not_fit_the_schema(self, place: tuple[Any, ...], value: object) -> None:
        data = stack_blue().to_json()
        part = data
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        with pytest.raises(SkillstackError, match="damaged"):
            PlanTree.from_json(data)
        assert list(complaints(data, SCHEMA))


class TestPage:
    def test_the_example_is_a_plan_and_its_sentence_is_told(self) -> None:
        (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
        data = json.loads(text)
        assert list(complaints(data, SCHEMA)) == []
        plan = PlanTree.from_json(data)
        assert plan.to_json() == data
        assert PAGE.rstrip().endswith("\n" + plan_sentence(plan))

    def test_every_field_and_outcome_is_explained(self) -> None:
        for properties in (SCHEMA["properties"], *(part.get("properties", {}) for part in SCHEMA["$defs"].values())):
            for name, part in properties.items():
                assert part["description"], name
                assert f"`{name}`" in PAGE
        for outcome, meaning in OUTCOMES.items():
            assert re.search(rf"\| . \| `{outcome}` \| {meaning} \|", PAGE), outcome

    def test_the_schema_names_the_outcomes_and_the_format_that_the_code_has(self) -> None:
        assert set(SCHEMA["$defs"]["run"]["properties"]["outcome"]["enum"]) == {"", *OUTCOMES}
        assert SCHEMA["properties"]["format"]["const"] == plan_module.FORMAT
        assert SCHEMA["properties"]["format_version"]["const"] == plan_module.FORMAT_VERSION


def complaints(value: Any, schema: dict[str, Any], place: str = "plan") -> Iterator[str]:
    """What a value lacks of a JSON Schema, for as much of JSON Schema as ours uses."""
    for keyword, rule in schema.items():
        match keyword:
            case "$schema" | "$id" | "$defs" | "title" | "description":
                pass
            case "$ref":
                yield from complaints(value, SCHEMA["$defs"][rule.removeprefix("#/$defs/")], place)
            case "type":
                names = [rule] if isinstance(rule, str) else rule
                if not any(isinstance(value, TYPES[name]) for name in names) or (
                    isinstance(value, bool) and "boolean" not in names
                ):
                    yield f"{place} is no {rule}"
            case "const":
                if value != rule:
                    yield f"{place} is not {rule}"
            case "enum":
                if value not in rule:
                    yield f"{place} is none of {rule}"
            case "pattern":
                if isinstance(value, str) and not re.search(rule, value):
                    yield f"{place} does not match {rule}"
            case "minimum":
                if isinstance(value, (int, float)) and value < rule:
                    yield f"{place} is below {rule}"
            case "oneOf":
                if sum(not list(complaints(value, choice, place)) for choice in rule) != 1:
                    yield f"{place} is not exactly one of {rule}"
            case "items":
                for number, item in enumerate(value if isinstance(value, list) else []):
                    yield from complaints(item, rule, f"{place}[{number}]")
            case "required" | "properties" | "additionalProperties":
                if isinstance(value, dict):
                    yield from _field_complaints(value, keyword, schema, place)
            case _:
                raise AssertionError(f"the test does not know {keyword!r}")


def _field_complaints(value: dict[str, Any], keyword: str, schema: dict[str, Any], place: str) -> Iterator[str]:
    rule = schema[keyword]
    if keyword == "required":
        yield from (f"{place} lacks {name}" for name in rule if name not in value)
    elif keyword == "properties":
        for name in rule.keys() & value.keys():
            yield from complaints(value[name], rule[name], f"{place}.{name}")
    else:
        for name in value.keys() - schema.get("properties", {}).keys():
            if rule is False:
                yield f"{place} has an unknown {name}"
            else:
                yield from complaints(value[name], rule, f"{place}.{name}")
