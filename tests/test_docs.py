"""The pages name files and links that are there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from dispatch.cli import app

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("cartridges/*/README.md"), ROOT / "benchmarks" / "README.md"])

NAMED = re.compile(r"`((?:kernel|dispatch|cartridges|benchmarks|tests|scripts|docs)/[\w./-]+\.\w+)`")
COMMAND = re.compile(r"python -m kernel ([a-z][^`\n#|>]*)")
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


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_a_page_names_have_the_options_that_it_gives_them(page: Path) -> None:
    """What stands behind `python -m kernel`, up to a comment or words set apart by spaces."""
    for line in COMMAND.findall(page.read_text("utf-8")):
        words = shlex.split(line.partition("   ")[0])
        command: Any = typer.main.get_command(app)
        assert words[0] in command.commands, line
        while words and words[0] in getattr(command, "commands", ()):
            command = command.commands[words.pop(0)]
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
        assert {word.partition("=")[0] for word in words if word.startswith("-")} <= known, line


def test_the_pages_name_commands() -> None:
    """So that the test above looks at something."""
    assert sum(len(COMMAND.findall(page.read_text("utf-8"))) for page in [ROOT / "README.md", *PAGES]) > 60
