"""Every argument that names a text file, in the forms that files of other systems have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.casefile import RequestRow, read
from kernel.errors import CartridgeError

Forked = Callable[..., Any]

TEXTS = {
    "options": "shut\nopener\n",
    "requests": "I am cold\n",
    "tools": '[{"name":"ping",\n"description":"Pings."}]\n',
    "schema": '{"properties":\n{"a":{"type":"boolean"}},"required":["a"]}\n',
    "prompt": "The opposite of\nopen is",
}
COMMANDS = {
    "options": ["choose", "-p", "The opposite of open is", "--options", "FILE", "--json"],
    "requests": ["run", "home", "--rule", "exact", "--headless", "--json", "--requests", "FILE"],
    "requests, stdin": ["run", "home", "--rule", "exact", "--headless", "--json", "--requests", "-"],
    "tools": ["import", "FILE", "-o", "mytools", "--json"],
    "tools, stdin": ["import", "-", "-o", "mytools", "--json"],
    "schema": ["write", "--max-tokens", "20", "--json", "--schema", "FILE"],
    "prompt, stdin": ["choose", "-p", "-", "-o", "shut", "-o", "opener", "--json"],
}
GOOD: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "marked": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "of Windows": lambda text: text.replace("\n", "\r\n").encode(),
}
BAD: dict[str, tuple[Callable[[str], bytes], str]] = {
    "UTF-16": (lambda text: text.encode("utf-16"), ":1: it is UTF-16; save the file as UTF-8"),
    "NUL": (lambda text: text.replace("\n", "\n\0", 1).encode(), ":2: it has a NUL byte"),
    "Latin-1": (lambda text: text.replace("\n", "\n\xfc", 1).encode("latin-1"), ":2: byte b'\\xfc' is not UTF-8"),
}


def asked(forked: Forked, argument: str, data: bytes) -> Any:
    """Run the command with a file of these bytes, or with them on stdin."""
    Path("file").write_bytes(data)
    arguments = [{"FILE": "file"}.get(each, each) for each in COMMANDS[argument]]
    return forked(arguments, typed=data if argument.endswith("stdin") else b"")


def told(argument: str, out: str) -> Any:
    """What the command understood: no times, no file names."""
    document = json.loads(out)
    if argument == "tools" or argument == "tools, stdin":
        return document["tools"], Path("mytools/tools.json").read_text()
    return {name: value for name, value in document.items() if "second" not in name}


@pytest.mark.parametrize("form", GOOD)
@pytest.mark.parametrize("argument", COMMANDS)
def test_a_file_of_another_system_means_the_same(
    place: Path, forked: Forked, argument: str, form: str, plain: dict[str, Any]
) -> None:
    """Kind: readers that disagree. A byte-order mark is dropped and noted, CRLF is a line end."""
    text = TEXTS[argument.partition(",")[0]]
    if argument == "prompt, stdin" and form == "of Windows":
        pytest.skip("line ends inside a prompt are the author's")
    done = asked(forked, argument, GOOD[form](text))
    assert done.code == 0, done
    noted = "begins with a byte-order mark, which is dropped" in done.err
    assert noted is (form == "marked"), done.err
    understood = told(argument, done.out)
    assert plain.setdefault(argument, understood) == understood


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """What was understood of the file as it is, by argument."""
    return {}


@pytest.mark.parametrize("form", BAD)
@pytest.mark.parametrize("argument", COMMANDS)
def test_a_file_that_is_no_text_is_named_with_the_line(place: Path, forked: Forked, argument: str, form: str) -> None:
    """Kind: bytes that are not UTF-8. One line, with file and line of it, and nothing is written."""
    make_bytes, said = BAD[form]
    done = asked(forked, argument, make_bytes(TEXTS[argument.partition(",")[0]]))
    where = "stdin" if argument.endswith("stdin") else "'file'"
    assert done.code in (1, 2), done
    assert len(done.lines) == 1, done
    assert f"{where}{said}" in done.err
    assert not Path("mytools").exists()


def test_options_are_parted_at_line_ends_only(place: Path, forked: Forked) -> None:
    """Three lines are three options, whatever Python's splitlines makes of them."""
    done = asked(forked, "options", "a\u2028b\nc\x0bd\ne\x85f\n".encode())
    assert sorted(option["text"] for option in json.loads(done.out)["options"]) == ["a\u2028b", "c\x0bd", "e\x85f"]
    assert "\u2028" not in done.out
    assert "\x85" not in done.out


@pytest.mark.parametrize("form", [*GOOD, *BAD])
def test_case_files_are_read_alike(tmp_path: Path, form: str) -> None:
    """Those that lie beside a cartridge."""
    case = '{"id":"a","split":"dev","request":"x","answer":"y"}\n{"id":"b","split":"dev","request":"x","answer":"z"}\n'
    make_bytes = GOOD[form] if form in GOOD else BAD[form][0]
    (tmp_path / "cases.jsonl").write_bytes(make_bytes(case))
    if form in GOOD:
        assert [row.answer for row in read(tmp_path / "cases.jsonl", RequestRow)] == ["y", "z"]
        return
    with pytest.raises(CartridgeError) as error:
        read(tmp_path / "cases.jsonl", RequestRow)
    assert f"cases.jsonl{BAD[form][1]}" in str(error.value)


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (b"x" * 1_000_000 + b"\n", 1, "shorten the prompt"),
        (b"I am cold\n" + b"x" * 1_100_000 + b"\n", 2, "stdin:2: the line has more than 1 MiB"),
        (b"I am cold\n/join " + b"\x1b[2J\n", 2, "'\\x1b[2J' names no cartridge"),
        (b"/leave [/b]\n", 2, "no cartridge '[/b]' takes part"),
        (b"/join ../../etc\n", 2, "there is no folder or file"),
        (b"/join \n", 2, "is no request"),
        (b"/" + b"y" * 900_000 + b"\n", 2, "is no request"),
        (b"I am cold\nI am \0cold\n", 2, "stdin:2: it has a NUL byte"),
        (b"I am cold\nI am \xffcold\n", 2, "stdin:2: byte b'\\xff' is not UTF-8"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_hostile_requests_end_a_session_in_one_line(
    place: Path, forked: Forked, typed: bytes, code: int, said: str
) -> None:
    """Kind: lines that are too long, no text, or steer. What was decided before stays, and the log has its outcome."""
    done = forked([*COMMANDS["requests, stdin"], "--log", "new.jsonl"], typed=typed)
    assert (done.code, len(done.lines), done.out) == (code, 1, ""), done
    assert said in done.err
    assert len(done.err) < 5000
    assert "\x1b" not in done.err
    *before, outcome = map(json.loads, Path("new.jsonl").read_text().splitlines())
    assert outcome["ending"] == "error"
    assert len(before) == (2 if typed.startswith(b"I am cold") else 1)


def test_requests_that_steer_are_told_literally(place: Path, forked: Forked) -> None:
    """Escapes, brackets, marks of direction in a request: escapes on the line of its decision, as it is in the log."""
    done = forked(
        ["run", "home", "--rule", "exact", "--log", "new.jsonl", "--requests", "-"],
        typed="I am \x1b]0;x\x07 [/b] \u202ecold\n".encode(),
    )
    assert done.code == 0, done
    assert "I am \\x1b]0;x\\x07 [/b] \\u202ecold -> " in done.out
    assert not any(c in done.out + done.err for c in "\x1b\x07\u202e")
    assert json.loads(Path("new.jsonl").read_text().splitlines()[1])["request"] == "I am \x1b]0;x\x07 [/b] \u202ecold"
