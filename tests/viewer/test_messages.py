"""Every message is one of those that there are, to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillstack import SkillstackError
from skillstack.viewer.messages import MAX_MESSAGE, Setup, read_message

SETUP = {"type": "setup", "instruction": "stack blue", "agents": ["oracle"], "seed": 4}


def test_a_message_is_read_with_what_it_leaves_out() -> None:
    message = read_message(json.dumps(SETUP))
    assert isinstance(message, Setup)
    assert (message.room, message.blocks, message.seed, message.greedy) == ("small", None, 4, False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "explode"},
        {"instruction": "stack blue"},
        SETUP | {"room": "huge"},
        SETUP | {"seed": -1},
        SETUP | {"seed": 2**60},
        SETUP | {"seed": "4"},
        SETUP | {"seed": 1.5},
        SETUP | {"agents": []},
        SETUP | {"agents": ["oracle"] * 3},
        SETUP | {"instruction": "x" * 5000},
        SETUP | {"surprise": True},
        {"type": "speed", "steps": 1e9},
        {"type": "speed", "steps": float("nan")},
        {"type": "arrange", "agent": {"x": 1, "z": 1}, "blocks": []},
        {
            "type": "arrange",
            "agent": {"x": 1, "z": 1, "facing": "north"},
            "blocks": [{"item": "red", "x": 900, "z": 0}],
        },
        {"type": "export", "act": 0, "kind": "../../etc/passwd"},
        [],
        3,
        None,
    ],
)
def test_whatever_else_is_refused_in_a_sentence(wrong: Any) -> None:
    with pytest.raises(SkillstackError, match="This is no message of the viewer"):
        read_message(json.dumps(wrong))


def test_long_messages_are_not_even_looked_at() -> None:
    with pytest.raises(SkillstackError, match=f"at most {MAX_MESSAGE} bytes"):
        read_message(json.dumps(SETUP | {"instruction": "x" * MAX_MESSAGE}))


@given(
    st.text()
    | st.recursive(st.none() | st.booleans() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)).map(
        json.dumps
    )
)
def test_no_text_at_all_breaks_the_reader(text: str) -> None:
    with pytest.raises(SkillstackError):
        read_message(text)
