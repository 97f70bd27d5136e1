"""Compiled code does not outlive the sources it came from."""

from __future__ import annotations

import os
from pathlib import Path

from skillstack.jit import drop_stale_caches


def test_code_compiled_before_the_newest_source_is_dropped(tmp_path: Path) -> None:
    caches = tmp_path / "part" / "__pycache__"
    caches.mkdir(parents=True)
    old, new, source = caches / "old.nbi", caches / "new.nbi", tmp_path / "part" / "rules.py"
    for moment, path in enumerate([old, source, new]):
        path.touch()
        os.utime(path, (moment + 1, moment + 1))
    drop_stale_caches(tmp_path)
    assert not old.exists()
    assert new.exists()
