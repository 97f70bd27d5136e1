"""What the documents show works: the README's Python runs, links lead somewhere, and pictures can be drawn anew."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_python_of_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_pictures_of_the_docs_can_be_drawn_anew() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    for view in (view for row in drawing["SHEET"] for view in row):
        assert view.draw().size == (view.config.image_size, view.config.image_size)
