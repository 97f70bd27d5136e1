"""The agent that comes with Skillstack: where it lies, in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

from skillstack.errors import SkillstackError

PLACES = (
    Path(__file__).parent / "pretrained" / "agent",  # of a wheel
    Path(__file__).parents[2] / "pretrained" / "agent",  # of a checkout
)


def shipped_agent() -> Path:
    """The folder of the shipped agent."""
    for place in PLACES:
        if place.exists():
            return place
    raise SkillstackError("This copy of Skillstack comes without an agent: train one, and name its folder.")
