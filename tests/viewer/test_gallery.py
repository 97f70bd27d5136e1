"""Recorded games: examples that come with the package, and a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillstack import Instruction, SkillstackError
from skillstack.rollout.casting import cast
from skillstack.rollout.plan import PlanTree
from skillstack.rollout.runner import Runner
from skillstack.viewer.gallery import Gallery
from skillstack.worlds.rooms import RoomsConfig


@pytest.fixture(scope="module")
def plan() -> PlanTree:
    world, player = cast("oracle", RoomsConfig())
    (episode,) = Runner(world, player, plans=True).play([Instruction("get", "red")], [4])
    assert episode.plan is not None
    return episode.plan


def test_the_examples_of_the_package_can_all_be_shown(tmp_path: Path) -> None:
    cards = Gallery(tmp_path / "none").cards()
    assert len(cards) >= 3
    assert {card["outcome"] for card in cards} >= {"achieved"}
    assert all(card["picture"].startswith("data:image/png") and card["sentence"] for card in cards)


def test_what_is_kept_comes_first_and_never_replaces_anything(tmp_path: Path, plan: PlanTree) -> None:
    gallery = Gallery(tmp_path / "games")
    names = [gallery.save(plan) for _ in range(2)]
    assert names == ["get-red-seed-4-1.json", "get-red-seed-4-2.json"]
    assert {card["name"] for card in gallery.cards()[:2]} == set(names)
    assert gallery.open(names[0]) == plan


def test_what_is_no_plan_is_left_out_and_cannot_be_opened(tmp_path: Path, plan: PlanTree) -> None:
    gallery = Gallery(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[1]")
    (tmp_path / "homeless.json").write_text(json.dumps(plan.to_json() | {"settings": {}}))
    shown = [card["name"] for card in gallery.cards()]
    assert not {"broken.json", "other.json", "homeless.json"} & set(shown)
    with pytest.raises(SkillstackError, match="cannot be read as a plan"):
        gallery.open("broken.json")


@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "none.json", "..", ""])
def test_a_name_is_one_of_those_shown_and_never_a_path(tmp_path: Path, plan: PlanTree, name: str) -> None:
    (tmp_path / "secret.json").write_text(plan.dumps())
    (tmp_path / "games").mkdir()
    with pytest.raises(SkillstackError, match="no recorded game"):
        Gallery(tmp_path / "games").open(name)


def test_a_folder_that_is_full_takes_no_more(tmp_path: Path, plan: PlanTree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillstack.viewer.gallery.MOST_SAVED", 2)
    with pytest.raises(SkillstackError, match="make space there first"):
        Gallery(tmp_path).save(plan)
