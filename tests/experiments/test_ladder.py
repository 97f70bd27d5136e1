"""What is trained for each experiment, and that what several need is one job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from skillstack.experiments.catalogue import EXPERIMENTS
from skillstack.experiments.jobs import Measuring, Training, in_order
from skillstack.experiments.ladder import matching_lstm
from skillstack.experiments.settings import FIGURE_EPISODES, Encoder, Settings, changed
from skillstack.learning.config import PRESETS
from skillstack.learning.run import FORK_FIELDS
from skillstack.learning.trainer import count_parameters


def jobs(settings: Settings, *names: str) -> dict[str, Training]:
    parts = [EXPERIMENTS[name].parts(settings, 0) for name in names or EXPERIMENTS]
    return {
        job.name: job for job in in_order([job for part in parts for job in part.jobs]) if isinstance(job, Training)
    }


def test_experiments_share_their_runs() -> None:
    settings = Settings()
    together = jobs(settings, "figure-get", "figure-curriculum", "table-rooms")
    alone = [jobs(settings, name) for name in ("figure-get", "figure-curriculum", "table-rooms")]
    assert len(together) < sum(map(len, alone))
    assert set(together) == set().union(*alone)


def test_all_presets_and_both_kinds_of_encoder_stand_on_the_same_pi_0() -> None:
    first, *others = (jobs(Settings(preset, encoder)) for preset in PRESETS for encoder in ("frozen", "own"))
    for other in others:
        assert [name for name in first if name in other] == ["pi0-s0"]
        assert first["pi0-s0"] == other["pi0-s0"]
    for job in (job for found in (first, *others) for job in found.values()):
        assert job.config.terminal == PRESETS["paper"].terminal, "else flat policies would learn it in another way"


@pytest.mark.parametrize("encoder", ["frozen", "own"])
def test_each_ablation_of_figure_3b_changes_one_thing_after_the_fork(encoder: Encoder) -> None:
    runs = jobs(Settings(encoder=encoder), "figure-stack")
    full = runs[f"paper-{encoder}/pi3-full-s0"]
    assert full.config.fork_points
    forked = [job for job in runs.values() if job.start and job.start.how == "fork"]
    assert len(forked) == 3
    for job in forked:
        assert job.start is not None
        assert job.start.job == full.name
        assert all(getattr(job.config, name) == getattr(full.config, name) for name in FORK_FIELDS)
        groups = [getattr(job.config, group) != getattr(full.config, group) for group in ("level", "a2c")]
        assert sum(groups) == 1


def test_a_colour_is_left_out_of_get_alone() -> None:
    for seed, colour in ((0, "red"), (4, "purple"), (6, "red")):
        part = EXPERIMENTS["unseen-pairs"].parts(Settings(), seed)
        left = {job.config.leave_out for job in part.training if job.start is not None}
        assert left == {(f"get {colour}",)}


def test_the_wide_flat_policy_has_as_many_parameters_as_the_hierarchy() -> None:
    config = Settings(scale="toy").config(0)
    lstm = matching_lstm(config)
    hierarchy = count_parameters(replace(config, flat=False))
    assert count_parameters(replace(config, lstm=lstm, flat=True)) >= hierarchy
    assert count_parameters(replace(config, lstm=lstm - 1, flat=True)) < hierarchy


def test_experiments_have_the_two_phases_and_the_grammar_whatever_the_preset_has() -> None:
    for preset in PRESETS:
        level = Settings(preset).config(seed=0).level
        assert level.curriculum
        assert (level.each, level.novel) == (PRESETS["paper"].level.each, PRESETS["paper"].level.novel)
        assert level.unguided == 0


def test_what_was_kept_by_another_version_is_looked_at_again(tmp_path: Path) -> None:
    look = Measuring("measures", "agent")
    look.file(tmp_path).write_text("{}")
    assert not look.finished(tmp_path)


def test_a_record_of_pi_0_is_good_whatever_the_levels_above_it_learn_by() -> None:
    found = jobs(Settings(), "figure-get")
    first, second = found["pi0-s0"], found["paper-frozen/pi1-full-s0"]
    for job, good in ((first, True), (second, False)):
        other = changed(job.config, level={"silent": False}, a2c={"entropy": 0.0})
        assert job.is_asked({**job.asked, "settings": other.to_json()}) == good
        assert not job.is_asked({**job.asked, "settings": changed(other, terminal={"target": 0.5}).to_json()})
        assert not job.is_asked({**job.asked, "settings": changed(other, level={"window": 9}).to_json()})


def test_levels_below_the_top_have_no_more_episodes_than_figure_3a() -> None:
    for preset in PRESETS:
        found = jobs(Settings(preset))
        top = PRESETS[preset].level.episodes
        for job in (job for name, job in found.items() if name != "pi0-s0"):
            is_top = job.config.stages.endswith("stack")
            assert job.config.level.episodes == (top if is_top else min(top, FIGURE_EPISODES))
