"""What a run was begun with: the version, and the commit where the source is a checkout of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

from skillstack import __version__


def source() -> str:
    """For people to read: "skillstack 0.1.0, commit 1a2b3c4", with "-dirty" behind it where files were changed."""
    commit = _git("describe", "--always", "--dirty", "--exclude=*") if _is_checkout() else ""
    return f"skillstack {__version__}" + (f", commit {commit}" if commit else "")


def _is_checkout() -> bool:
    """Whether git knows this file: an installed package may lie in somebody else's checkout."""
    return bool(_git("ls-files", Path(__file__).name))


def _git(*arguments: str) -> str:
    """What git says; nothing where there is no git or no checkout."""
    try:
        answer = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
