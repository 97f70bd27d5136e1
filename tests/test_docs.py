"""What the documents show works: the README's Python runs, links lead somewhere, and pictures can be drawn anew."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [
    *(ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"),
    *(ROOT / "pretrained" / "README.md", ROOT / "results" / "README.md"),
    *sorted((ROOT / "docs").glob("*.md")),
]


def test_the_python_of_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    for target, _, anchor in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", page.read_text()):
        if not target.startswith("http"):
            goal = page.parent / target if target else page
            assert goal.exists(), target
            assert not anchor or anchor in anchors(goal), f"{target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The names under which the headings of a page can be linked to."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_curve_that_is_kept_is_spoken_of() -> None:
    results = ROOT / "results"
    words = "".join(page.read_text() for page in PAGES)
    experiments = {path.stem for path in results.glob("*.json")}
    for path in results.glob("*.csv"):
        table_of = path.stem.removesuffix("-curves").removesuffix("-success")
        assert f"`{path.stem}.csv`" in words or f"results/{path.stem}.csv" in words or table_of in experiments, (
            path.name
        )


def test_the_pictures_of_the_docs_can_be_drawn_anew() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    for view in (view for row in drawing["SHEET"] for view in row):
        assert view.draw().size == (view.config.image_size, view.config.image_size)
