"""`explain` and `export --html`: a decision in the terminal, a log in a file; no text of it gets out of its place."""

# ruff: noqa: D102 - the methods are those of html.parser

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatch.inspector.exported import PAGE, bundled, html
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.log.reader import LogReader
from kernel.errors import LogError
from tests.dispatch.test_inspector_index import HOSTILE, hostile_log
from tests.dispatch.test_replay_decide import played

Forked = Callable[..., Any]


@pytest.fixture
def hostile(tmp_path: Path, counter: SimpleNamespace) -> Path:
    """A log of two decisions whose every text is hostile."""
    return hostile_log(tmp_path / "hostile.jsonl", counter.write(tmp_path / "plain", 1))


def test_a_decision_is_explained_in_its_own_numbers(place: Path, forked: Forked, counter: SimpleNamespace) -> None:
    """Options, scores, what the rule did, what came of it: each as the log has it; --json has the whole."""
    played(place / "log.jsonl", counter, rule="exact")
    with LogReader(place / "log.jsonl") as reader:
        record = list(reader)[4]
    done = forked(["explain", "log.jsonl", "5"])
    assert done.code == 0, done
    assert repr(record.instruction.instruction()) in done.out
    assert record.result in done.out
    for row in record.legal or ():
        line = next(x for x in done.out.splitlines() if x.startswith(row.text.strip().partition("\n")[0] + " "))
        assert f"{row.logprob:.2f}" in line
        assert f"{100 * (row.probability or 0):.1f} %" in line
    assert f"ahead by {record.margin:.2f}" in done.out
    assert "each compared whole" in done.out
    found = json.loads(forked(["explain", "log.jsonl", "5", "--json"]).out)
    assert (found["n"], found["margin"], found["result"]) == (5, record.margin, record.result)
    assert found["prompt"]["why"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["log.jsonl", "41"], 2, "there is no decision 41; there are 40"),
        (["options.txt", "1"], 1, "no header"),
        (["log.jsonl", "0"], 2, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_explained_is_said(
    arguments: list[str], code: int, said: str, place: Path, forked: Forked, counter: SimpleNamespace
) -> None:
    """In one line, with the exit code of misuse or of failure."""
    played(place / "log.jsonl", counter)
    done = forked(["explain", *arguments])
    assert (done.code, len(done.lines)) == (code, 1), done
    assert said in done.lines[0]


def test_hostile_texts_do_not_steer_the_terminal(hostile: Path, forked: Forked) -> None:
    """Controls and what turns text around are escapes; nothing is markup."""
    done = forked(["explain", str(hostile), "1"])
    assert done.code == 0, done.err
    assert not set(done.out) & set("\x00\x1b\u202e")
    assert "\\u202e\\x00\\ud800" in done.out
    assert "<img src=x onerror=alert(1)>" in " ".join(done.out.split())


class Scripts(HTMLParser):
    """Collects the elements of a file, and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.policy = ""
        self._in = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
            self._in = True
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs)["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._in:
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data


def exported(log: Path, counter: SimpleNamespace, most: int = 1000, *, prompts: bool = True) -> tuple[Scripts, Any]:
    opened = OpenedLog(log.name, log, counter.make, Vocabularies(), until=0)
    text, _ = html(opened, most, prompts=prompts)
    opened.close()
    found = Scripts()
    found.feed(text)
    return found, json.loads(found.scripts[0][1])


def test_no_text_of_a_log_ends_its_element(hostile: Path, counter: SimpleNamespace) -> None:
    """Two scripts, no element of a log's making, and the texts come out as they went in."""
    found, data = exported(hostile, counter)
    assert [attrs.get("type") for attrs, _ in found.scripts] == ["application/json", "module"]
    assert "img" not in found.tags
    assert "<" not in found.scripts[0][1]
    assert data["answers"]["/api/s/hostile.jsonl/d/2"]["result"] == HOSTILE


def test_only_the_page_s_own_script_may_run(hostile: Path, counter: SimpleNamespace) -> None:
    """The policy names its hash, and lets nothing be loaded; what plays in a tab is not in the file."""
    found, _ = exported(hostile, counter)
    digest = base64.b64encode(hashlib.sha256(found.scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in found.policy
    assert found.policy.startswith("default-src 'none';")
    script = found.scripts[1][1]
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    imported = {
        name for path in PAGE.glob("*.js") for name in re.findall(r'from "\./(\w+\.js)"', path.read_text("utf-8"))
    }
    assert {path.name for path in PAGE.glob("*.js")} - imported == {"main.js", "tabstart.js"}
    assert script.count("= (() => {\n") == len(imported | {"main.js"})


def test_a_file_holds_what_the_page_asks_for(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Sessions, summary, decisions, prompts, rows, strip; fewer of them when so many are asked for."""
    log = played(tmp_path / "a log.jsonl", counter)
    _, data = exported(log, counter, 12)
    answers = data["answers"]
    assert answers["/api/sessions"]["default"] == "a log.jsonl"
    summary = answers["/api/s/a%20log.jsonl"]
    assert (summary["decisions"], summary["verified"]["state"]) == (12, "verified")
    assert summary["notes"] == ["this file has the first 12 of 40 decisions"]
    assert [row["n"] for row in data["rows"]] == list(range(1, 13))
    assert len(base64.b64decode(data["strip"])) == 32 + 12 * 16
    assert {f"/api/s/a%20log.jsonl/d/{n}" for n in range(1, 13)} <= set(answers)
    assert "/api/s/a%20log.jsonl/d/12/prompt" in answers
    assert "/api/s/a%20log.jsonl/d/13" not in answers


def test_prompts_and_requests_can_be_left_out(hostile: Path, counter: SimpleNamespace) -> None:
    """Neither the prompts nor what people asked is in the file then."""
    _, data = exported(hostile, counter, prompts=False)
    assert not [path for path in data["answers"] if path.endswith("/prompt")]
    assert data["answers"]["/api/s/hostile.jsonl/d/1"]["request"] is None
    assert all(row["request"] is None for row in data["rows"])


def test_prompts_in_a_file_are_warned_of(place: Path, forked: Forked, counter: SimpleNamespace) -> None:
    """On stderr, where they are in it; a file that is there is not written over unasked."""
    played(place / "log.jsonl", counter)
    done = forked(["export", "--html", "log.jsonl"])
    assert done.code == 0, done
    assert done.out == "40 of 40 decisions written to log.jsonl.html\n"
    assert "note: log.jsonl.html holds prompts and what people asked" in done.err
    again = forked(["export", "--html", "log.jsonl"])
    assert (again.code, "is there already" in again.err) == (2, True)
    assert forked(["export", "--html", "log.jsonl", "-o", "log.jsonl"]).code == 2
    assert forked(["export", "log.jsonl"]).code == 2
    quiet = forked(["export", "--html", "log.jsonl", "-o", "b.html", "--no-prompts"])
    assert (quiet.code, quiet.err) == (0, "")


def test_modules_that_cannot_be_put_together_are_refused(tmp_path: Path) -> None:
    """A circle, and a form of import that is not known."""
    (tmp_path / "main.js").write_text('import { a } from "./x.js";\n')
    (tmp_path / "x.js").write_text('import { b } from "./main.js";\nexport const a = 1;\n')
    with pytest.raises(LogError, match=r"main\.js imports itself"):
        bundled(tmp_path)
    (tmp_path / "x.js").write_text("export default 1;\n")
    with pytest.raises(LogError, match="export default"):
        bundled(tmp_path)
    (tmp_path / "x.js").write_text("export const a = 1;\n")
    assert "const { a } = m_x;" in bundled(tmp_path)
