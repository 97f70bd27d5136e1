"""`skillstack view` and `skillstack play` from outside."""

from __future__ import annotations

import builtins
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from skillstack.cli import main
from skillstack.viewer.server import bind


def start(*arguments: str, cwd: Path) -> tuple[subprocess.Popen[str], str, str]:
    """A viewer of its own: the process, the address that it tells, and all that it said before."""
    command = [sys.executable, "-m", "skillstack.cli", *arguments, "--no-browser", "--port", "0"]
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        found = re.search(r"The viewer is at (\S+)", said)
        if found:
            return process, found[1], said
    raise AssertionError(said)


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("view", "--compare", "random"), "#compare=1"),
        (("play", "get red", "--seed", "7"), "#play=get+red&seed=7&room=small"),
    ],
)
def test_it_says_where_it_is_serves_the_page_and_ends_on_interrupt(
    arguments: tuple[str, ...], fragment: str, tmp_path: Path
) -> None:
    process, address, said = start(*arguments, cwd=tmp_path)
    try:
        assert address.endswith(fragment)
        assert address.startswith("http://127.0.0.1:")
        assert "Warning" not in said
        assert "Tell the agent to" in httpx.get(address.partition("#")[0], timeout=120).text
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (0, 130)


def test_it_warns_when_others_can_reach_it(tmp_path: Path) -> None:
    process, _, said = start("view", "--host", "0.0.0.0", cwd=tmp_path)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert "Warning: everyone who can reach 0.0.0.0" in said


def test_a_port_that_is_taken_is_told_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as taken:
        assert main(["view", "--port", str(taken.getsockname()[1]), "--no-browser"]) == 2
    assert "choose another with --host or --port" in capsys.readouterr().err


def test_an_unknown_agent_is_told_before_anything_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--agent", "nobody", "--no-browser"]) == 2
    assert 'There is no agent "nobody"' in capsys.readouterr().err


def test_an_unknown_word_is_told_before_anything_listens(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["play", "stak blue", "--no-browser"]) == 2
    assert 'Did you mean "stack"?' in capsys.readouterr().err


@pytest.mark.parametrize("command", [["view"], ["play", "get red"]])
def test_a_server_is_for_minecraft_only(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--server", "localhost:25565", "--no-browser", "--port", "0"]) == 2
    assert "say --world minecraft" in capsys.readouterr().err


def test_an_account_can_play_one_game_and_the_viewer_needs_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "--no-browser", "--world", "minecraft", "--server", "alex@localhost:25565"]) == 2
    assert "leave the account out" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_uvicorn(name: str, *rest: Any) -> Any:
        if name == "uvicorn":
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest)

    for module in [name for name in sys.modules if name.startswith("skillstack.viewer")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without_uvicorn)
    assert main(["view", "--no-browser"]) == 2
    assert 'pip install "skillstack[viewer]"' in capsys.readouterr().err
