"""Every command, misused and in odd surroundings: an exit code, at most one line that says why, never a traceback.

The commands are those of the app, so a new one has to be added here. Each runs in a fork of this process whose streams
are made as Python makes them at its start; models are scripted.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from dispatch.cli import app
from kernel.models import browser

Forked = Callable[..., Any]

GOOD: dict[str, list[str]] = {
    "run": ["home", "--requests", "requests.txt", "--rule", "exact", "--log", "new.jsonl"],
    "choose": ["-p", "The opposite of open is", "-o", "shut", "-o", "opener"],
    "call": ["home", "I am cold", "--rule", "exact", "--yes"],
    "write": ["--schema", "schema.json", "--max-tokens", "40"],
    "serve": ["home", "--port", "0", "--for", "0.01", "--rule", "exact"],
    "bundle": ["site", "tetris"],
    "mcp": ["home", "--rule", "exact"],
    "inspect": ["home"],
    "compile": ["home", "-o", "home.trie"],
    "list": [],
    "new": ["chess2"],
    "check": ["home", "--model", "any"],
    "import": ["tools.json", "-o", "mytools"],
    "learn": ["home", "--only", "--cases", "cases.jsonl", "-o", "home.learned"],
    "eval": ["choose", "--rule", "exact", "--split", "all"],
    "replay": ["game.jsonl"],
    "explain": ["game.jsonl", "2"],
    "export": ["--html", "game.jsonl", "-o", "game.html"],
    "stats": ["game.jsonl"],
    "diff": ["game.jsonl", "game.jsonl"],
    "log redact": ["game.jsonl", "redacted.jsonl"],
    "log schema": [],
    "models list": [],
    "models pull": ["smollm2"],
    "models browser": ["--list"],
}
"""Arguments that do; the files are those of the fixture `place`."""

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
TYPED = {"mcp": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n"}
"""What stands on stdin of those that say nothing before they are asked."""


@pytest.fixture(autouse=True)
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the files of packages that a tab needs, wherever the cache folder is."""

    def files(part: str) -> dict[str, Path]:
        names = ["wllama.js", "wllama.wasm"] if part == "wllama" else [*browser.PYODIDE, "pydantic-0-py3-none-any.whl"]
        for name in names:
            (tmp_path / name).write_bytes(b"")
        return {name: tmp_path / name for name in names}

    monkeypatch.setattr(browser, "files", files)


GROUP: Any = typer.main.get_command(app)


def commands() -> Iterator[tuple[str, Any]]:
    """Yield every command of the app by its words."""
    for name, found in GROUP.commands.items():
        if hasattr(found, "commands"):
            yield from ((f"{name} {inner}", each) for inner, each in found.commands.items())
        else:
            yield name, found


COMMANDS = dict(commands())


def given(name: str, *more: str) -> list[str]:
    return [*name.split(), *GOOD[name], *more]


def test_no_command_is_forgotten() -> None:
    """The table has the commands of the app, no more and no less."""
    assert set(GOOD) == set(COMMANDS)


@pytest.mark.parametrize("name", GOOD)
def test_a_command_does_its_work(place: Path, forked: Forked, name: str) -> None:
    """Else the tests below would show nothing."""
    done = forked(given(name), typed=TYPED.get(name, b""))
    assert done.code == 0, done
    assert done.out
    assert "error" not in done.err


ODD: dict[str, dict[str, Any]] = {
    "narrow": {"encoding": "ascii", "variables": {"TERM": "dumb", "COLUMNS": "1", "HOME": None, "LANG": "C"}},
    "western": {"encoding": "cp1252", "variables": {"TERM": "dumb", "COLUMNS": "20", "LC_ALL": "C"}},
    "alone": {"stdin": "closed", "stderr": "closed", "variables": {"HOME": "/nowhere"}},
    "full stderr": {"stderr": "full", "variables": {"HOME": "/proc/nothing"}},
}
LOST = {
    "closed": (1, "error: stdout cannot be written: Bad file descriptor"),
    "full": (1, "error: stdout cannot be written: No space left on device"),
    "gone": (141, ""),
}


@pytest.mark.parametrize(
    "around", [pytest.param(kind, marks=pytest.mark.slow if kind == "western" else ()) for kind in ODD]
)
@pytest.mark.parametrize("name", GOOD)
def test_odd_surroundings_change_nothing(place: Path, forked: Forked, name: str, around: str) -> None:
    """Kind: an environment that the author did not have. No home, no locale, a line of one column, closed streams."""
    done = forked(given(name), typed=TYPED.get(name, b""), **ODD[around])
    assert done.code == 0, done
    assert done.out or (name in TYPED and around == "alone")  # which has no stdin
    assert "Traceback" not in done.err
    done.out.encode(ODD[around].get("encoding", "utf-8"))


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("name", GOOD)
def test_a_result_that_cannot_be_told_is_no_success(place: Path, forked: Forked, name: str, lost: str) -> None:
    """Kind: a stream that is not there. One line and exit code 1, or silence and 141 where a reader went away."""
    code, said = LOST[lost]
    done = forked(given(name), stdout=lost, typed=TYPED.get(name, b""))
    assert done.code == code, done
    own = [line for line in done.lines if not line.startswith(("try: ", "default: ", "1 tools", "salt "))]
    assert own == ([said] if said else []), done


@pytest.mark.parametrize("lost", LOST)
def test_a_log_gets_its_outcome_where_the_output_fails(place: Path, forked: Forked, lost: str) -> None:
    """Kind: the output fails in the middle of a session; what was written stays and says how it ended."""
    code, _ = LOST[lost]
    done = forked(["run", "home", "--player", "random", "--decisions", "3", "--log", "new.jsonl"], stdout=lost)
    assert done.code == code, done
    last = json.loads(Path("new.jsonl").read_text().splitlines()[-1])
    assert last["ending"] == ("interrupted" if lost == "gone" else "error"), last


def numbers() -> Iterator[tuple[str, str, str]]:
    """Yield (command, option, value) with every number that is out of its bounds."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            kind = parameter.type_descriptor.annotation
            if kind in (int, float):
                info = parameter.type_descriptor.parameter_info
                most = info.max if info.max is not None else pytest.fail(f"{name} {parameter.name} has no bound")
                values = ["x", "", str(most * 2), "9" * 400, *(["nan", "inf", "-inf"] if kind is float else ["1.5"])]
                values += [str(info.min - 1)] if info.min is not None else ["-1"]
                yield from ((name, max(parameter.opts, key=len), value) for value in values)


def test_numbers_out_of_their_bounds_are_misuse(place: Path, in_process: Forked) -> None:
    """Kind: a number without an upper bound. Every number of every command has one, and one line says what it is."""
    seen = 0
    for name, option, value in numbers():
        done = in_process([*given(name), f"{option}={value}"])
        assert (done.code, len(done.lines), done.out) == (2, 1, ""), (name, option, value, done)
        assert option in done.err or "speed" in done.err
        seen += 1
    assert seen > 100


@pytest.fixture
def in_process() -> Forked:
    """Run the app in this process, for what ends before anything is loaded."""

    def run(arguments: list[str]) -> Any:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as exited:
            GROUP.main(arguments, prog_name="kernel")
        assert isinstance(exited.value.code, int)
        lines = err.getvalue().splitlines()
        return SimpleNamespace(code=exited.value.code, out=out.getvalue(), err=err.getvalue(), lines=lines)

    return run


def test_misuse_is_one_line_and_code_2(place: Path, in_process: Forked) -> None:
    """Kind: an argument that makes no sense. Unknown, missing, too many, half a character: for every command."""
    for name, command in COMMANDS.items():
        wrong = [given(name, "--frob"), given(name, "\udcff"), given(name, "--frob=\x1b[2J")]
        required = [p for p in command.params if p.required]
        wrong += [name.split()] if required else []
        for parameter in command.params:
            if parameter.param_type_name == "option" and not getattr(parameter, "is_flag", False):
                wrong.append([*name.split(), max(parameter.opts, key=len)])
                wrong.append(given(name, max(parameter.opts, key=len), "\udcff"))
        if not any(p.nargs == -1 for p in command.params):
            wrong.append(given(name, "one", "too", "many"))
        for arguments in wrong:
            done = in_process(arguments)
            assert (done.code, len(done.lines), done.out) == (2, 1, ""), (arguments, done)
            assert "\x1b" not in done.err
    assert in_process(["frob"]).lines == ["error: No such command 'frob'; see kernel --help"]


PATHS = {
    "nowhere": "none_{}/x2",
    "a folder": "folder",
    "below a file": "schema.json/below",
    "not to be written": "/proc/self/nothing/here",
    "long": "x" * 5000,
}


@pytest.mark.parametrize(
    "kind", [k if k in ("nowhere", "a folder") else pytest.param(k, marks=pytest.mark.slow) for k in PATHS]
)
def test_paths_that_are_none_end_in_one_line(place: Path, forked: Forked, kind: str) -> None:
    """Kind: a path that cannot be read or written, a folder for a file, a file for a folder; for every path."""
    (place / "folder").mkdir()
    for name, command in COMMANDS.items():
        path = PATHS[kind].format(name)
        for parameter in command.params:
            if not parameter.type_descriptor.is_path and parameter.name not in ("source", "spec", "name", "names"):
                continue
            arguments = given(name)
            if parameter.param_type_name == "option":
                arguments += [max(parameter.opts, key=len), path]
            elif parameter.nargs == -1:
                arguments[len(name.split())] = path
            else:
                at = [p.name for p in command.params if p.param_type_name == "argument"].index(parameter.name)
                arguments[len(name.split()) + at] = path
            done = forked(arguments)
            good = (name, parameter.name, kind) in {("new", "into", "a folder"), ("new", "into", "nowhere")}
            good |= name == "bundle" and kind in ("a folder", "nowhere")
            good |= (parameter.name, kind) == ("output", "nowhere") and name in ("compile", "import", "learn")
            assert done.code in ((0,) if good else (1, 2)), (arguments, done)
            if not good:
                assert len(done.lines) == 1, (arguments, done)
                assert done.lines[0].startswith("error: "), (arguments, done)
                assert len(done.lines[0]) < 4100
