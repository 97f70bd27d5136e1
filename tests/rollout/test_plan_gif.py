from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from PIL import Image
from plans import any_plan, find, refused, run, stack_blue, tree

from skillstack.errors import SkillstackError
from skillstack.rollout.plan import CUT_OFF, LIMIT, REFUSED, PlanTree
from skillstack.rollout.plan_gif import (
    END_MS,
    SHORTEST_STEP_MS,
    STEP_MS,
    chain_words,
    draw_film,
    film,
    latest,
    write_gif,
)
from skillstack.rollout.plan_svg import level_colour
from skillstack.rollout.replay import Recording, replay
from skillstack.worlds.rooms.topdown import draw_map
from skillstack.worlds.rooms.world import RoomsWorld


def blank(plan: PlanTree, maps: bool = False) -> Recording:
    steps = len(plan.actions()) + 1
    frames = np.zeros((steps, 84, 84, 3), dtype=np.uint8)
    return Recording(frames, [np.full((336, 630, 3), 128, dtype=np.uint8)] * steps if maps else None)


def told(plan: PlanTree) -> list[tuple[int, str, str]]:
    """The frame, the chain and the words of each scene."""
    return [
        (scene.step, " > ".join(words for words, _ in chain_words(scene.chain)), scene.words) for scene in film(plan)
    ]


def test_each_step_is_told_with_the_chain_of_utterances_that_led_to_it() -> None:
    assert told(stack_blue()) == [
        (0, "stack blue > get blue > find blue", "move forward"),
        (1, "stack blue > get blue > find blue", "move forward"),
        (2, "stack blue > get blue > find blue", "turn left"),
        (3, "stack blue > get blue", "pick up"),
        (4, "stack blue > find blue", "turn right"),
        (5, "stack blue > find blue", "move forward"),
        (6, "stack blue > put blue", "put down"),
        (7, "stack blue", "achieved after 7 steps"),
    ]


def test_the_plan_grows_from_scene_to_scene() -> None:
    plans = [scene.plan for scene in film(stack_blue())]
    assert plans[0] == "stack blue ...: get blue ... (find blue ...)"
    assert plans[2:4] == ["stack blue ...: get blue ... (find blue)", "stack blue ...: get blue (find blue, pick up)"]
    assert plans[-1] == "stack blue: get blue (find blue, pick up), find blue, put blue (put down)"
    failed = tree(run(1, "get blue", find(0, "turn left", outcome=LIMIT), refused("find red"), outcome=REFUSED))
    assert film(failed)[-1].plan == "get blue (refused): find blue (gave up), find red (refused)"


def test_of_a_plan_that_is_too_long_for_a_line_the_end_is_seen() -> None:
    plan = tree(run(1, "get blue", *[find(0, "turn left", item=f"item{number}") for number in range(60)]))
    line = film(plan)[-1].plan
    assert latest(line, 11, 1e6) == line
    assert latest(line, 11, 336).startswith("..., find item")
    assert latest(line, 11, 336).endswith(", find item58, find item59")
    assert latest(line, 11, 1) == "..."
    *_, last = draw_film(film(plan), blank(plan))
    assert (last[-30:, -8:] == 255).all()  # nothing runs over the edge
    assert (last[-30:, 12:200] != 255).any()


def test_an_utterance_that_cannot_be_executed_is_a_scene_of_its_own() -> None:
    plan = tree(run(1, "get blue", "turn left", refused("find red"), outcome=REFUSED))
    assert told(plan)[1:] == [
        (1, "get blue", '"find red" cannot be done now'),
        (1, "get blue", "not executable after 1 step: the level uttered an instruction that cannot be executed"),
    ]


def test_the_end_says_how_it_failed() -> None:
    assert told(tree(find(0, "turn left", "turn left", outcome=CUT_OFF)))[-1][2] == (
        "cut off after 2 steps: the whole game ran out of steps"
    )


def test_utterances_have_their_policies_colours() -> None:
    chain = film(stack_blue())[0].chain
    assert chain_words(chain) == [
        ("stack blue", level_colour(3)), ("get blue", level_colour(2)), ("find blue", level_colour(0)),
    ]  # fmt: skip


def test_the_caption_is_drawn_below_the_view_and_the_map() -> None:
    plan = stack_blue()
    first, *_ = draw_film(film(plan), blank(plan, maps=True))
    height, width, _ = first.shape
    assert (height, width) == (12 + 336 + 98, 12 + 336 + 12 + 630 + 12)
    assert (first[12:348, 12:348] == 0).all()
    assert (first[12:348, 360:990] == 128).all()
    assert (first[348:] != 255).any()
    assert (first[:, -4:] == 255).all()


def test_a_chain_that_is_too_long_loses_its_middle_but_not_its_ends() -> None:
    deep = find(0, "turn left")
    for level in range(1, 12):
        deep = run(level, f"get item{level}", deep)
    plan = tree(deep)
    for maps in (False, True):
        first, *_ = draw_film(film(plan), blank(plan, maps))
        assert (first[350:, -8:] == 255).all()  # nothing runs over the edge


def test_a_gif_has_a_picture_for_each_scene_and_holds_the_last(tmp_path: Path) -> None:
    plan = stack_blue()
    write_gif(tmp_path / "plan.gif", plan, blank(plan))
    with Image.open(tmp_path / "plan.gif") as picture:
        assert durations(picture) == [STEP_MS] * 7 + [END_MS]
        assert picture.info["loop"] == 0


def test_a_long_game_is_shown_faster(tmp_path: Path) -> None:
    plan = tree(find(0, *["turn left"] * 200, outcome=LIMIT))
    write_gif(tmp_path / "plan.gif", plan, blank(plan))
    with Image.open(tmp_path / "plan.gif") as picture:
        assert SHORTEST_STEP_MS <= durations(picture)[0] < STEP_MS / 2


def test_sixty_steps_of_a_real_game_are_small_and_true_in_colour(tmp_path: Path) -> None:
    world = RoomsWorld()
    actions = np.random.default_rng(1).choice(world.description.actions, 60).tolist()
    plan = tree(find(0, *actions, outcome=CUT_OFF), seed=3)
    recording = replay(world, plan)
    maps = [draw_map(world.config, world.state[0])] * 61
    write_gif(tmp_path / "plan.gif", plan, Recording(recording.frames, maps))
    assert (tmp_path / "plan.gif").stat().st_size < 3_000_000
    with Image.open(tmp_path / "plan.gif") as picture:
        for step in (0, 20, 60):
            picture.seek(step)
            seen = np.asarray(picture.convert("RGB"))[12:348:4, 12:348:4].astype(int)
            assert abs(seen - recording.frames[step]).mean() < 4


def test_a_colour_that_is_seen_for_a_moment_only_keeps_its_hue(tmp_path: Path) -> None:
    plan = tree(find(0, *["turn left"] * 40, outcome=LIMIT))
    noise = np.random.default_rng(0).integers(0, 256, (41, 84, 84, 1), dtype=np.uint8)
    frames = np.concatenate([noise, noise // 2, noise // 3], axis=-1)  # many shades, none of them green
    frames[17, 40:46, 40:46] = (20, 200, 40)
    write_gif(tmp_path / "plan.gif", plan, Recording(frames))
    with Image.open(tmp_path / "plan.gif") as picture:
        picture.seek(17)
        red, green, blue = np.asarray(picture.convert("RGB"))[12 + 4 * 43, 12 + 4 * 43].tolist()
    assert green > 2 * red
    assert green > 2 * blue


def test_a_recording_of_another_game_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(SkillstackError, match="frames"):
        write_gif(tmp_path / "plan.gif", stack_blue(), blank(tree(find(0, "turn left"))))
    assert not list(tmp_path.iterdir())


@given(any_plan(most_levels=4))
@settings(max_examples=20, deadline=None)
def test_any_plan_can_be_filmed(plan: PlanTree) -> None:
    scenes = film(plan)
    pictures = list(draw_film(scenes, blank(plan)))
    assert len(pictures) == len(scenes) >= len(plan.actions()) + 1
    assert scenes[-1].step == len(plan.actions())
    assert len({picture.shape for picture in pictures}) == 1


def durations(picture: Image.Image) -> list[int]:
    found = []
    for number in range(picture.n_frames):  # type: ignore[attr-defined]
        picture.seek(number)
        found.append(picture.info["duration"])
    return found
