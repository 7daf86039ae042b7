"""The pages name files and links that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("cartridges/*/README.md"), ROOT / "benchmarks" / "README.md"])

NAMED = re.compile(r"`((?:kernel|dispatch|cartridges|benchmarks|tests|scripts|docs)/[\w./-]+\.\w+)`")
LINKED = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """Paths in backquotes count from the top of the repository, links from the page."""
    text = page.read_text("utf-8")
    named = {name: ROOT / name for name in NAMED.findall(text)}
    linked = {name: page.parent / name for name in LINKED.findall(text)}
    assert [name for name, path in (named | linked).items() if not path.exists()] == []


def test_the_pages_name_files_and_have_links() -> None:
    """So that the test above looks at something."""
    texts = [page.read_text("utf-8") for page in PAGES]
    assert sum(len(NAMED.findall(text)) for text in texts) > 20
    assert sum(len(LINKED.findall(text)) for text in texts) > 5
