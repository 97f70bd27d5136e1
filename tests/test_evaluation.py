"""Evaluations say how well an agent plays, and say the same each time."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from skillstack import Instruction, SkillstackError, cli, make_stages
from skillstack.evaluation import (
    Evaluation,
    Figures,
    Game,
    dump_csv,
    evaluate,
    game_seed,
    results_table,
    summarise,
    ways,
    wilson,
)
from skillstack.instructions import TaskSet
from skillstack.policies.agent import Agent
from skillstack.rollout.oracle_player import OraclePlayer
from skillstack.rollout.plan import ACHIEVED, LIMIT, REFUSED
from skillstack.rollout.player import AgentPlayer, RandomPlayer
from skillstack.rollout.runner import Runner, RunnerConfig
from skillstack.worlds.rooms import RoomsConfig, RoomsWorld
from skillstack.worlds.world import Limits

torch.set_num_threads(1)
TINY = RoomsConfig(image_size=36, room_width=4, room_depth=4, max_blocks=4)
SKILLS = ["find", "get", "put", "stack"]


def rooms(num_games: int = 16, **settings: Any) -> RoomsWorld:
    return RoomsWorld(replace(TINY, **settings), num_games)


def random_player() -> RandomPlayer:
    return RandomPlayer(make_stages(), 8)


def untrained_player() -> AgentPlayer:
    """An agent whose grammars favour what can be called, so that they matter."""
    agent = Agent.create(TINY.description, make_stages(), shared_encoder=True, smoothing=0.1)
    for grammar in agent.grammars[1:]:
        assert grammar is not None
        for task in agent.vocabulary.encode(grammar.tasks):
            grammar.update(task, [grammar.act_state] * 3)
    return AgentPlayer(agent)


def by_label(evaluation: Evaluation) -> dict[str, Figures]:
    return {figures.label: figures for figures in (*evaluation.skills, *evaluation.tasks)}


# Intervals


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # these four from Newcombe (1998), table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        (5, 10, 0.2366, 0.7634),  # 0.5 -+ 1.96 sqrt(0.025 + 0.009604) / 1.38416
        (200, 200, 0.9812, 1.0),  # 1 / (1 + 3.8416 / 200)
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilsons_interval_is_the_one_worked_by_hand(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_a_wider_interval_has_a_larger_z() -> None:
    # 0.5 -+ 2.576 sqrt(0.025 + 6.635776 / 400) / 1.6635776 = 0.5 -+ 2.576 * 0.2039349 / 1.6635776 = 0.5 -+ 0.3157871
    assert wilson(5, 10, z=2.576) == pytest.approx((0.1842129, 0.8157871), abs=1e-6)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_the_share_and_turns_over_with_it(pair: tuple[int, int]) -> None:
    successes, n = pair
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize(("successes", "n"), [(3, 2), (-1, 2), (0, -1)])
def test_there_is_no_interval_of_more_successes_than_games(successes: int, n: int) -> None:
    with pytest.raises(SkillstackError, match="Successes"):
        wilson(successes, n)


# Figures


def test_the_figures_of_games_are_the_ones_worked_by_hand() -> None:
    task = Instruction("get", "red")
    games = [
        Game(task, ACHIEVED, steps=4, calls=2, refusals=0, depth=2, optimum=4, uttered=frozenset({"find"})),  # SPL 1
        Game(task, ACHIEVED, steps=8, calls=3, refusals=1, depth=3, optimum=4),  # SPL 1/2, ratio 2
        Game(task, LIMIT, steps=40, calls=0, refusals=0, depth=1, optimum=4),
        Game(task, REFUSED, steps=0, calls=1, refusals=1, depth=1, optimum=4),
    ]
    figures = summarise("get", "red", games, ["find", "put"])
    assert (figures.games, figures.successes, figures.success) == (4, 2, 0.5)
    assert (figures.success_low, figures.success_high) == wilson(2, 4)
    assert (figures.steps, figures.steps_of_successes) == (13.0, 6.0)
    assert (figures.shortest, figures.spl, figures.ratio) == (4.0, 1.5 / 4, 1.5)
    assert figures.uttered == {"find": 0.5, "put": 0.0}
    assert figures.depth == 7 / 4
    assert (figures.calls, figures.refusals, figures.refused) == (6, 2, 1 / 3)
    assert figures.outcomes == {"achieved": 2, "limit": 1, "not executable": 1, "cut off": 0}
    assert (figures.label, summarise("get", None, games).label) == ("get red", "get")


def test_ways_are_the_means_over_skills_of_equal_weight() -> None:
    find, get = Instruction("find", "red"), Instruction("get", "red")
    won = [Game(task, ACHIEVED, steps, 0, 0, 1, best) for task, steps, best in ((find, 3, 1), (get, 9, 8), (get, 7, 6))]
    skills = [summarise("find", None, won[:1]), summarise("get", None, won[1:])]
    assert ways(skills) == ((3 + 8) / 2, (1 + 7) / 2)
    lost = summarise("put", None, [Game(Instruction("put", "red"), LIMIT, 40, 0, 0, 1, 4)])
    assert ways([*skills, lost]) is None
    assert ways([]) is None


def test_figures_that_have_nothing_to_take_a_mean_of_are_missing_and_not_zero() -> None:
    failure = Game(Instruction("get", "red"), LIMIT, steps=40, calls=0, refusals=0, depth=1, optimum=None)
    figures = summarise("get", "red", [failure])
    assert (figures.steps_of_successes, figures.shortest, figures.ratio) == (None, None, None)
    assert (figures.spl, figures.refused) == (None, None)


@pytest.mark.parametrize("big", [False, True])
def test_the_oracle_achieves_everything_by_nearly_the_shortest_way(big: bool) -> None:
    world = RoomsWorld(RoomsConfig(big=big, image_size=16), 64)
    evaluation = evaluate(world, OraclePlayer(world, make_stages()), RunnerConfig(), episodes_per_skill=60)
    assert [figures.skill for figures in evaluation.skills] == SKILLS
    assert all(figures.success == 1.0 and figures.refusals == 0 for figures in by_label(evaluation).values())
    spl = {figures.skill: figures.spl for figures in evaluation.skills}
    assert min(filter(None, spl.values())) > 0.95
    assert spl["put"] == 1.0
    assert all(figures.ratio and figures.ratio >= 1.0 for figures in evaluation.skills)
    assert evaluation.room == ("big" if big else "small")


def test_the_random_player_hardly_ever_stacks() -> None:
    evaluation = evaluate(rooms(), random_player(), RunnerConfig(), episodes_per_skill=120, skills=["stack"])
    (stack,) = evaluation.skills
    assert stack.success < 0.05
    assert stack.spl is not None
    assert stack.spl <= stack.success
    assert sum(stack.outcomes.values()) == stack.games == 120


@pytest.mark.parametrize("make_player", [random_player, untrained_player])
def test_the_same_seed_gives_the_same_figures_for_any_number_of_games_at_once(make_player: Any) -> None:
    evaluations = [evaluate(rooms(n), make_player(), RunnerConfig(), 18, seed=7) for n in (1, 5, 100)]
    assert evaluations[0] == evaluations[1] == evaluations[2]
    assert evaluate(rooms(), make_player(), RunnerConfig(), 18, seed=8).skills != evaluations[0].skills


def test_the_figures_of_a_skill_do_not_depend_on_the_other_skills_or_their_order() -> None:
    everything = by_label(evaluate(rooms(), random_player(), RunnerConfig(), 24))
    alone = evaluate(rooms(), random_player(), RunnerConfig(), 24, skills=["put"])
    assert {figures.skill for figures in alone.tasks} == {"put"}
    assert all(everything[label] == figures for label, figures in by_label(alone).items())


def test_every_agent_plays_the_same_games_whatever_the_order_of_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    world = rooms()
    started: list[tuple[str, int]] = []
    reset = world.reset

    def note(tasks: Any, seeds: Any, games: Any) -> None:
        words = world.description.vocabulary.decode
        started.extend((str(words(task)), int(seed)) for task, seed in zip(tasks, seeds, strict=True))
        reset(tasks, seeds, games)

    monkeypatch.setattr(world, "reset", note)
    evaluate(world, OraclePlayer(world, make_stages()), RunnerConfig(), 12)
    first, started = started, []
    evaluate(world, RandomPlayer(make_stages(SKILLS[::-1], TINY.items[::-1]), 8), RunnerConfig(), 12)
    assert sorted(first) == sorted(started)
    assert len({seed for _, seed in first}) == len(first) == 48


def test_the_seed_of_a_game_is_its_own() -> None:
    tasks = TaskSet.of(SKILLS, ["red", "blue"])
    seeds = {game_seed(seed, task, number) for seed in (0, 1, 2) for task in tasks for number in range(50)}
    assert len(seeds) == 3 * len(tasks) * 50


def test_games_go_evenly_round_the_items_of_a_skill() -> None:
    evaluation = evaluate(rooms(), random_player(), RunnerConfig(), 14)
    assert all(figures.games == 14 for figures in evaluation.skills)
    assert Counter(figures.games for figures in evaluation.tasks) == {2: 16, 3: 8}
    few = evaluate(rooms(), random_player(), RunnerConfig(), 2, skills=["get"])
    assert [figures.label for figures in few.tasks] == ["get red", "get yellow"]


@pytest.mark.parametrize("level", [0, 1, 3])
def test_the_depth_is_that_of_the_plans(level: int) -> None:
    player, world = random_player(), rooms(penalty=False)
    evaluation = evaluate(world, player, RunnerConfig(), 6, level=level)
    depths = []
    for task in player.stages[level].tasks:
        (episode,) = Runner(world, player, plans=True).play([task], [game_seed(0, task, 0)], level)
        assert episode.plan is not None
        depths.append(episode.plan.root.depth)
    assert [figures.depth for figures in evaluation.tasks] == depths
    assert max(depths) == level + 1


def test_what_the_level_utters_is_what_its_plans_say() -> None:
    world = RoomsWorld(RoomsConfig(image_size=16), 8)
    player = OraclePlayer(world, make_stages())
    evaluation = evaluate(world, player, RunnerConfig(), 6)
    for figures in evaluation.tasks:
        task = Instruction(figures.skill, figures.item or "")
        (episode,) = Runner(world, player, plans=True).play([task], [game_seed(0, task, 0)], 3)
        assert episode.plan is not None
        called = {decision.utterance.skill for decision in episode.plan.root.decisions if decision.utterance}
        assert figures.uttered == {skill: float(skill in called) for skill in ("find", "get", "put")}
    assert any(figures.uttered["get"] for figures in evaluation.skills if figures.skill == "stack")
    table = io.StringIO()
    Console(file=table, width=200).print(results_table(evaluation))
    assert 'Share of achieved stack games in which it calls: "' in table.getvalue()
    assert re.search(r"Ways of achieved games: 1\.\d\d times the shortest", " ".join(table.getvalue().split()))


@pytest.mark.parametrize("level", [0, 3])
def test_a_csv_has_a_column_for_each_skill_that_can_be_called(level: int) -> None:
    text = evaluate(rooms(), random_player(), RunnerConfig(), 6, level=level).to_csv()
    columns = {name for name in next(csv.reader(io.StringIO(text))) if name.startswith("uttered")}
    assert columns == (set() if level == 0 else {"uttered_find", "uttered_get", "uttered_put"})


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({"limits": Limits(flat=3)}, 0),
        ({"limits": Limits(decisions=2)}, None),
        ({"limits": Limits(episode=5)}, None),
        ({"greedy": True}, None),
        ({"grammar": False}, None),
    ],
)
def test_each_setting_is_stated_and_changes_the_figures(settings: dict[str, Any], level: int | None) -> None:
    world = rooms(penalty=False)
    plain = evaluate(world, untrained_player(), RunnerConfig(), 12, level=level)
    changed = evaluate(world, untrained_player(), RunnerConfig(**settings), 12, level=level)
    assert plain.skills != changed.skills
    different = {name for name, value in changed.settings.items() if value != plain.settings[name]}
    assert len(different) == 1


def test_a_level_is_evaluated_on_what_it_knows() -> None:
    evaluation = evaluate(rooms(), random_player(), RunnerConfig(), 6, level=1)
    assert [figures.skill for figures in evaluation.skills] == ["find", "get"]
    assert evaluation.level == 1
    assert evaluate(rooms(), random_player(), RunnerConfig(), 1).level == 3


def test_progress_is_told_after_each_game() -> None:
    told: list[tuple[int, int]] = []
    evaluate(rooms(), random_player(), RunnerConfig(), 5, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 20) for done in range(1, 21)]


def test_a_world_without_an_oracle_has_no_path_lengths_to_compare_with() -> None:
    inner = rooms()

    class Opaque:
        """A world with the bare contract."""

        description, rewards, num_games = inner.description, inner.rewards, inner.num_games
        reset, step, observe = inner.reset, inner.step, inner.observe
        achieved, executable = inner.achieved, inner.executable

    evaluation = evaluate(Opaque(), random_player(), RunnerConfig(), 6)
    plain = evaluate(inner, random_player(), RunnerConfig(), 6)
    assert evaluation.room is None
    assert all(figures.spl is None and figures.ratio is None for figures in evaluation.skills)
    assert [figures.outcomes for figures in evaluation.tasks] == [figures.outcomes for figures in plain.tasks]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"episodes_per_skill": 0}, "at least one game"),
        ({"seed": -1}, "seed must be"),
        ({"seed": 2**64}, "seed must be"),
        ({"level": 4}, "levels 0 to 3"),
        ({"level": -1}, "levels 0 to 3"),
        ({"skills": ["stock"]}, 'Did you mean "stack"'),
        ({"skills": ["stack"], "level": 0}, "Unknown skill"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SkillstackError, match=sentence):
        evaluate(rooms(), random_player(), RunnerConfig(), **{"episodes_per_skill": 1, **arguments})


def test_json_and_csv_hold_the_same_figures_and_every_line_states_the_settings() -> None:
    evaluation = evaluate(rooms(), random_player(), RunnerConfig(), 12, seed=5, agent="a, b")
    data = json.loads(json.dumps(evaluation.to_json()))
    lines = list(csv.DictReader(evaluation.to_csv().splitlines()))
    entries = [*data["skills"], *data["tasks"]]
    assert len(lines) == len(entries) == 4 + 24
    for line, entry in zip(lines, entries, strict=True):
        assert (line["agent"], line["seed"], line["episode_limit"], line["room"]) == ("a, b", "5", "200", "small")
        assert line["outcome_not_executable"] == str(entry["outcomes"]["not executable"])
        plain = {name: value for name, value in entry.items() if name not in ("outcomes", "uttered")}
        for name, value in (plain | {f"uttered_{skill}": share for skill, share in entry["uttered"].items()}).items():
            assert line[name] == ("" if value is None else str(value))
    assert data["settings"]["flat_limit"] == 40
    assert data["settings"]["world_settings"]["room_width"] == 4
    assert dump_csv([evaluation, evaluation]).count("agent,world") == 1


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = cli.main(["evaluate", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def rows_of(printed: str) -> dict[str, list[str]]:
    """The printed table's cells by the row's label."""
    rows = {}
    for line in printed.splitlines():
        label, _, rest = line.strip().replace("[", "").replace("]", "").replace(",", "").partition("  ")
        if label.split(" ")[0] in SKILLS:
            rows[label] = rest.split()
    return rows


def test_the_command_writes_json_and_csv_that_agree_with_the_printed_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = ("--json", tmp_path / "e.json", "--csv", tmp_path / "e.csv")
    status, printed, progress = run(capsys, "random", "--episodes", 12, "--colours", *files)
    assert status == 0
    (data,) = json.loads((tmp_path / "e.json").read_text())
    lines = list(csv.DictReader((tmp_path / "e.csv").read_text().splitlines()))
    entries = [*data["skills"], *data["tasks"]]
    rows = rows_of(printed)
    assert len(rows) == len(lines) == len(entries) == 28
    for line, entry in zip(lines, entries, strict=True):
        label = f"{entry['skill']} {entry['item'] or ''}".strip()
        success = [f"{entry[name]:.3f}" for name in ("success", "success_low", "success_high")]
        assert rows[label][:3] == success
        won_in, refused = entry["steps_of_successes"], entry["refused"]
        assert rows[label][3:5] == [f"{entry['steps']:.1f}", "-" if won_in is None else f"{won_in:.1f}"]
        assert rows[label][5:7] == [f"{entry['spl']:.3f}", f"{entry['depth']:.2f}"]
        assert rows[label][7] == ("-" if refused is None else f"{refused:.1%}")
        assert float(line["success"]) == entry["success"]
        assert (line["skill"], line["item"]) == (entry["skill"], entry["item"] or "")
    assert "12 games of each skill" in printed
    assert "48 of 48 games" in progress


def test_on_a_terminal_a_bar_shows_the_progress_and_bad_input_leaves_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes any stream for a terminal
    assert "12/12" in run(capsys, "random", "--episodes", 3)[2]
    status, _, error = run(capsys, "random", "--level", 7)
    assert status == 2
    assert "small room" not in error


def test_the_command_evaluates_both_rooms_with_all_its_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "e.json"
    options = "--room both --episodes 3 --seed 4 --level 1 --greedy --no-grammar --skills get --games 2"
    limits = "--flat-limit 7 --decision-limit 6 --episode-limit 5"
    status, printed, _ = run(capsys, "untrained", *options.split(), *limits.split(), "--json", path)
    assert status == 0
    small, big = json.loads(path.read_text())
    assert (small["settings"]["room"], big["settings"]["room"]) == ("small", "big")
    stated = {
        "agent": "untrained", "episodes_per_skill": 3, "seed": 4, "level": 1, "greedy": True, "grammar": False,
        "flat_limit": 7, "decision_limit": 6, "episode_limit": 5,
    }  # fmt: skip
    for data in (small, big):
        assert stated.items() <= data["settings"].items()
        assert [entry["skill"] for entry in data["skills"]] == ["get"]
    assert printed.count("5 steps of a game") == 2


def test_a_saved_agent_is_evaluated_from_its_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "an [agent]"
    Agent.create(RoomsConfig().description, make_stages("find")).save(folder)
    status, printed, _ = run(capsys, folder, "--episodes", 2, "--flat-limit", 3)
    assert status == 0
    assert "an [agent], small room" in " ".join(printed.split())
    assert list(rows_of(printed)) == ["find"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody"], "There is no agent"),
        (["random", "--episodes", "0"], "at least one game of each skill"),
        (["random", "--games", "0"], "at least one game"),
        (["random", "--threads", "0"], "one thread"),
        (["random", "--level", "9"], "levels 0 to 3"),
        (["random", "--flat-limit", "0"], "step limit"),
        (["random", "--skills", "fly"], "Unknown skill"),
        (["random", "--seed", "-3"], "seed must be"),
        (["random", "--json", "no/such/folder.json"], "no folder"),
        (["random", "--csv", "."], "it is a folder"),
        (["random", "--csv", "same", "--json", "./same"], "a file of its own"),
    ],
)
def test_bad_input_gets_one_sentence_and_status_2_before_any_game_is_played(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, printed, error = run(capsys, *arguments)
    assert (status, printed) == (2, "")
    assert error.startswith("skillstack: ")
    assert sentence in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_place_without_the_right_to_write_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    status, _, error = run(capsys, "random", "--json", tmp_path / "e.json")
    assert status == 2
    assert "no right" in error


def test_the_command_gives_the_same_table_again_from_outside() -> None:
    command = [sys.executable, "-m", "skillstack.cli", "evaluate", "random", "--episodes", "6", "--games"]
    first, second = (
        subprocess.run([*command, games], capture_output=True, text=True, check=True).stdout for games in ("64", "5")
    )
    assert first == second
    assert list(rows_of(first)) == SKILLS
