"""Tool lists of public MCP servers, written out from their documentation: all tools are held."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernel.opcode.tools import read_tools

DATA = Path(__file__).resolve().parents[1] / "data" / "mcp_tools"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "arguments.md"
LISTS = sorted(path.stem for path in DATA.glob("*.json"))
NOTED = {
    "only describes; nothing is enforced",
    "is missing and read as false",
    "'uri' is not enforced; any string is written",
}
"""All that the import may have to say of these lists."""


@pytest.mark.parametrize("name", LISTS)
def test_every_tool_of_a_public_server_is_held(name: str) -> None:
    """The kind: schemas of ordinary tools are refused."""
    listed = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    found = read_tools(listed)
    assert found.refusals == ()
    assert len(found.opcodes) == len(listed["tools"])
    assert {note.text for note in found.notes} <= NOTED


def test_the_page_names_the_lists_and_their_tools() -> None:
    """The table of the page is that of the files."""
    rows = dict(re.findall(r"^\| ([a-z-]+) \| (\d+ of \d+) \|", PAGE.read_text("utf-8"), re.MULTILINE))
    wanted = {}
    for name in LISTS:
        count = len(json.loads((DATA / f"{name}.json").read_text("utf-8"))["tools"])
        wanted[name] = f"{count} of {count}"
    assert rows == wanted
