"""The command line from outside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from skillstack import __version__, make_stages
from skillstack.cli import main
from skillstack.policies.agent import Agent
from skillstack.rollout.plan import PlanTree
from skillstack.worlds.rooms import RoomsConfig


@pytest.fixture(scope="module")
def agent_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained agent whose grammar knows how to stack blue."""
    agent = Agent.create(RoomsConfig().description, make_stages())
    grammar = agent.grammars[3]
    assert grammar is not None
    words = agent.vocabulary.encode
    tasks = {str(task): task for task in agent.vocabulary.tasks}
    chain = grammar.call_state(words([tasks["get blue"], tasks["find blue"], tasks["put blue"]]))
    for _ in range(3):
        grammar.update(words(tasks["stack blue"]), chain)
    path = tmp_path_factory.mktemp("agents") / "agent"
    agent.save(path)
    return path


def test_version_and_help_come_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert 'skillstack plan "stack blue"' in capsys.readouterr().out


def test_a_plan_is_printed_and_written_in_all_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / f"plan.{name}" for name in ("gif", "svg", "json")}
    arguments = [part for name, path in files.items() for part in (f"--{name}", str(path))]
    assert main(["plan", "Stack  BLUE", "--agent", "oracle", "--seed", "3", "--probabilities", *arguments]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "stack blue: get blue (find blue, pick up), find blue, put blue (put down)" in words
    assert "I stacked the blue blocks" in words
    tree = PlanTree.from_json(json.loads(files["json"].read_text()))
    assert tree.success
    ElementTree.parse(files["svg"])
    with Image.open(files["gif"]) as film:
        assert film.n_frames == tree.steps + 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("agent", ["random", "untrained", "oracle"])
@pytest.mark.parametrize("room", ["small", "big"])
def test_anyone_can_be_asked_to_play(agent: str, room: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "get red", "--agent", agent, "--room", room]) == 0
    assert '"get red"' in capsys.readouterr().out


def test_the_same_seed_prints_the_same_plan(agent_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        assert main(["plan", "stack blue", "--agent", str(agent_folder), "--seed", "8"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_a_grammar_is_printed_in_words_and_drawn(
    agent_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "grammar.svg"
    assert main(["grammar", str(agent_folder), "stack blue", "--svg", str(picture)]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "start -> get blue 1.00 (3)" in words
    ElementTree.parse(picture)
    assert main(["grammar", str(agent_folder)]) == 0
    assert "stack blue: from 3 positive episodes" in capsys.readouterr().out


def test_a_world_of_ones_own_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_worlds.py").write_text(
        "from skillstack.worlds.rooms import RoomsWorld\n"
        "def good(num_games): return RoomsWorld(num_games=num_games)\n"
        "def bad(num_games):\n"
        "    world = RoomsWorld(num_games=num_games)\n"
        "    world.achieved = lambda tasks, games=None: world.executable(tasks, games)\n"
        "    return world\n"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["check-world", "my_worlds:good", "--games", "3", "--steps", "5"]) == 0
    assert main(["check-world", "my_worlds:bad", "--games", "3", "--steps", "5"]) == 2
    assert "starts with it achieved" in " ".join(capsys.readouterr().out.split())


def test_bench_prints_the_world_and_the_runner(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--seconds", "0.05", "--episodes", "8", "--quick"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "steps a second" in words
    assert "of the speed of the bare forward passes" in words
    assert "From import to the first frame" in words


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plan", "stack bleu"], 'Did you mean "blue"?'),
        (["plan", "stack"], "say a skill"),
        (["plan", "stack blue", "--agent", "nobody"], 'There is no agent "nobody"'),
        (["plan", "stack blue", "--gif", "nowhere/plan.gif"], "no folder nowhere"),
        (["grammar", "nowhere"], "There is no agent"),
        (["check-world", "no_such_module:make"], 'There is no module "no_such_module"'),
        (["check-world", "skillstack:make"], 'has no function "make"'),
        (["check-world", "skillstack.worlds.rooms:ACTIONS"], 'has no function "ACTIONS"'),
        (["check-world", "skillstack:make_stages"], "could not be made"),
        (["plan", "stack blue", "--seed", "-1"], "a whole number from 0"),
        (["plan", "stack blue", "--svg", "."], "it is a folder"),
        (["plan", "stack blue", "--svg", "x", "--json", "x"], "for two results"),
        (["bench", "--seconds", "0"], "more than 0"),
        (["evaluate", "nobody"], 'There is no agent "nobody"'),
    ],
)
def test_bad_input_gets_one_sentence_and_status_two(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", [["--level", "0"], ["--level", "9"], ["--svg", "all.svg"]])
def test_a_grammar_that_is_not_there_is_refused(agent_folder: Path, arguments: list[str]) -> None:
    assert main(["grammar", str(agent_folder), *arguments]) == 2


def test_a_damaged_agent_gets_one_sentence(agent_folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "agent.json").write_text("{")
    command = [sys.executable, "-m", "skillstack.cli", "plan", "get red", "--agent", str(broken)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert len(ended.stderr.strip().splitlines()) == 1
