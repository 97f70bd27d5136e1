from dataclasses import replace

import numpy as np
import pytest
from rooms_helpers import STANDARD, looks_of, start, tasks, world_of

from skillstack import SkillstackError
from skillstack.instructions import COLOURS
from skillstack.worlds.rooms import Randomisation, RoomsConfig
from skillstack.worlds.rooms.looks import STEADY, WOOL, Looks, make_materials, paint_looks

ALONE = {"texture": 0.3, "hue": 0.2, "light": 0.25, "fov": 5.0, "eye": 0.1, "pitch": 6.0}
"""An amount of each change."""


def painted(**changes: float) -> Looks:
    """32 looks that differ in what is given alone."""
    return looks_of(replace(STANDARD, randomise=replace(STEADY, variety=32, **changes)))


class TestStandardLook:
    def test_there_is_one_and_it_is_the_same_for_everyone(self) -> None:
        one, other = looks_of(STANDARD), looks_of(STANDARD)
        assert len(one.texels) == 1
        np.testing.assert_array_equal(one.texels, other.texels)

    def test_a_change_of_nothing_is_the_standard_look(self) -> None:
        looks = painted()
        for part in ("texels", "sky", "view"):
            values, standard = getattr(looks, part), getattr(looks_of(STANDARD), part)
            np.testing.assert_array_equal(values, np.broadcast_to(standard, values.shape))

    def test_there_are_textures_of_16_texels_for_each_theme_and_item(self) -> None:
        assert looks_of(STANDARD).texels.shape == (1, 3 * (2 + 6), 16 * 16, 3)

    def test_wools_have_minecrafts_colours(self) -> None:
        for colour, wool in zip(COLOURS, make_materials(COLOURS)[4:], strict=True):
            np.testing.assert_allclose(wool.mean(axis=(0, 1)), WOOL[colour], rtol=0.05)

    def test_light_falls_on_the_faces_as_in_minecraft(self) -> None:
        top, face_x, face_z = looks_of(STANDARD).texels[0, 6:9].astype(float).mean(axis=(1, 2))
        assert face_x / top == pytest.approx(0.6, abs=0.02)
        assert face_z / top == pytest.approx(0.8, abs=0.02)

    def test_the_camera_is_as_set(self) -> None:
        view = looks_of(RoomsConfig(fov=90, eye=1.5, pitch=30)).view
        np.testing.assert_allclose(view, [[1.0, 1.5, np.sqrt(0.75), 0.5]])

    def test_words_that_are_no_wool_get_colours_of_their_own(self) -> None:
        wools = make_materials(tuple(f"thing{n}" for n in range(12)))[4:].mean(axis=(1, 2))
        apart = np.linalg.norm(wools[:, None] - wools[None], axis=-1) + 1000 * np.eye(12)
        assert apart.min() > 15


class TestRandomLooks:
    @pytest.mark.parametrize("name", ALONE)
    def test_each_change_matters_and_only_where_it_should(self, name: str) -> None:
        looks, standard = painted(**{name: ALONE[name]}), looks_of(STANDARD)
        camera = {"fov": 0, "eye": 1, "pitch": 2}
        if name in camera:
            changed = looks.view != standard.view
            assert changed[:, camera[name]].all()
            assert not changed[:, : camera[name]].any()
            np.testing.assert_array_equal(looks.texels, np.broadcast_to(standard.texels, looks.texels.shape))
        else:
            assert (looks.texels != standard.texels).any(axis=(1, 2, 3)).all()
            np.testing.assert_array_equal(looks.view, np.broadcast_to(standard.view, looks.view.shape))
        assert len(np.unique(looks.texels.reshape(32, -1), axis=0)) == (1 if name in camera else 32)

    def test_changes_stay_within_their_ranges(self) -> None:
        looks = painted(fov=5.0, eye=0.1, pitch=6.0)
        fov = 2 * np.degrees(np.arctan(looks.view[:, 0]))
        pitch = np.degrees(np.arctan2(looks.view[:, 3], looks.view[:, 2]))
        for values, middle, change in ((fov, 70, 5), (looks.view[:, 1], 1.62, 0.1), (pitch, 0, 6)):
            assert np.abs(values - middle).max() <= change
            assert np.abs(values - middle).max() > 0.8 * change, "and use them"

    def test_more_looks_leave_the_first_ones_as_they_are(self) -> None:
        materials = make_materials(COLOURS)
        few, many = (paint_looks(materials, 70, 1.62, 0, Randomisation(variety=n)) for n in (5, 50))
        np.testing.assert_array_equal(few.texels, many.texels[:5])
        np.testing.assert_array_equal(few.view, many.view[:5])

    def test_a_games_seed_decides_its_look(self) -> None:
        config = replace(STANDARD, randomise=Randomisation(variety=20))
        looks = start(config, 400, tasks("find red")).state["look"].copy()
        assert set(looks.tolist()) == set(range(20))
        np.testing.assert_array_equal(start(config, 400, tasks("find red")).state["look"], looks)

    def test_a_look_stays_through_the_game(self) -> None:
        world = start(replace(STANDARD, randomise=Randomisation(variety=20)), 8)
        before = world.state["look"].copy()
        world.step(np.arange(8))
        np.testing.assert_array_equal(world.state["look"], before)

    def test_the_same_state_is_drawn_differently_in_different_looks(self) -> None:
        world = world_of(replace(STANDARD, randomise=Randomisation(variety=20)))
        state = np.repeat(world.snapshot(), 20)
        state["look"] = np.arange(20)
        assert len(np.unique(world.render(state).reshape(20, -1), axis=0)) == 20

    def test_random_looks_do_not_change_the_games(self) -> None:
        plain = start(STANDARD, 96).snapshot()
        random = start(replace(STANDARD, randomise=Randomisation(variety=20)), 96).snapshot()
        for part in ("agent", "room", "blocks"):
            np.testing.assert_array_equal(random[part], plain[part])

    @pytest.mark.parametrize(
        ("name", "value"),
        [("texture", 1.1), ("hue", -0.1), ("light", 0.7), ("fov", 11.0), ("eye", 0.4), ("pitch", 16.0)],
    )
    def test_too_much_change_is_an_error(self, name: str, value: float) -> None:
        with pytest.raises(SkillstackError, match=f"Randomisation of {name} must be from 0 to .*, not {value}"):
            Randomisation(**{name: value})

    @pytest.mark.parametrize("variety", [0, 65_537])
    def test_there_are_1_to_65536_looks(self, variety: int) -> None:
        with pytest.raises(SkillstackError, match=f"1 to 65536 looks, not {variety}"):
            Randomisation(variety=variety)
