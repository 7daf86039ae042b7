"""The files of the page, read as text: modules that find each other, and nothing that could run foreign text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "dispatch" / "serve" / "page"
MODULES = sorted(PAGE.rglob("*.js"))

FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
    r"|setHTML|DOMParser|srcdoc|javascript:|setAttribute\(\"style\""
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PAGE)))
def test_a_module_is_short_and_names_what_is_there(path: Path) -> None:
    """At most 300 lines, a comment on top, imports of files and names that exist, nothing that makes markup of text."""
    text = path.read_text("utf-8")
    assert text.startswith("// ")
    assert text.count("\n") <= 300
    assert not FORBIDDEN.search(text)
    for names, file in re.findall(r'^import \{ ([^}]+) \} from "\./([\w.]+)";$', text, re.MULTILINE):
        exported = r"^export (?:async )?(?:function|class|const) (\w+)"
        there = set(re.findall(exported, (path.parent / file).read_text("utf-8"), re.MULTILINE))
        assert set(names.split(", ")) <= there
    assert len(re.findall(r"\bimport\b.*from", text)) == len(
        re.findall(r'^import \{ [^}]+ \} from "\./[\w.]+";$', text, re.MULTILINE)
    )


def test_the_page_asks_nobody_else() -> None:
    """No address of another host stands in any file, and markup has neither styles nor handlers in line."""
    for path in filter(Path.is_file, PAGE.rglob("*")):
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name
    index = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script>", index)


def test_the_docs_list_the_keys_that_the_page_obeys() -> None:
    """`?` and docs/inspector.md say the same."""
    script = (PAGE / "keys.js").read_text("utf-8")
    keys = re.findall(r'^\s+\["[^"]*", "([^"]*)", "\w+", "([^"]*)"\],$', script, re.MULTILINE)
    assert len(keys) > 20
    docs = (PAGE.parents[2] / "docs" / "inspector.md").read_text("utf-8")
    table = docs.partition("<!-- keys -->")[2].partition("<!-- end of keys -->")[0]
    assert re.findall(r"^\| `(.*)` \| (.*) \|$", table, re.MULTILINE) == keys
