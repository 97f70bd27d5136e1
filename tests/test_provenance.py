"""Whose commit it is: ours in our checkout, nobody's where the package only lies in somebody else's."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import skillstack
from skillstack import provenance

ROOT = Path(__file__).parents[1]


def test_in_a_checkout_the_commit_is_named() -> None:
    if not (ROOT / ".git").exists():  # a source archive has none
        assert "commit" not in provenance.source()
        return
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = re.fullmatch(
        rf"skillstack {re.escape(skillstack.__version__)}, commit ([0-9a-f]+)(-dirty)?", provenance.source()
    )
    assert found is not None
    assert head.startswith(found[1])


def test_in_the_checkout_of_somebody_else_no_commit_is_named(tmp_path: Path) -> None:
    installed = tmp_path / "theirs" / "lib" / "skillstack"
    installed.mkdir(parents=True)
    for name in ("__init__.py", "provenance.py"):
        shutil.copy(Path(skillstack.__file__).parent / name, installed)
    (installed / "__init__.py").write_text('__version__ = "1.2.3"\n')
    git = ["git", "-c", "user.name=they", "-c", "user.email=they@example.org"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *command], cwd=tmp_path / "theirs", check=True)
    script = "from skillstack.provenance import source; import sys; sys.stdout.write(source())"
    said = subprocess.run(
        [sys.executable, "-c", script], cwd=installed.parent, capture_output=True, text=True, check=True
    )
    assert said.stdout == "skillstack 1.2.3"
