"""Every command, misused and in odd surroundings: an exit code, at most one line that says why, never a traceback.

The commands are those of the app, so a new one has to be added here. Each runs in a fork of this process whose streams
are made as Python makes them at its start; models are scripted.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import typer
from numpy.typing import NDArray

import dispatch.cli
import kernel.backends.llama_cpp
from dispatch.checker import Report, Status
from dispatch.checker.report import Finding
from dispatch.cli import app, call, check, choose, decide, evaluate, opening, write
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.models import catalogue
from kernel.text.vocabulary import NORMAL, Vocabulary

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

GOOD: dict[str, list[str]] = {
    "run": ["home", "--requests", "requests.txt", "--rule", "exact", "--log", "new.jsonl"],
    "choose": ["-p", "The opposite of open is", "-o", "shut", "-o", "opener"],
    "call": ["home", "I am cold", "--rule", "exact"],
    "write": ["--schema", "schema.json", "--max-tokens", "40"],
    "inspect": ["home"],
    "compile": ["home", "-o", "home.trie"],
    "list": [],
    "new": ["chess2"],
    "check": ["home", "--model", "any"],
    "import": ["tools.json", "-o", "mytools"],
    "eval": ["choose", "--rule", "exact", "--split", "all"],
    "replay": ["game.jsonl"],
    "stats": ["game.jsonl"],
    "diff": ["game.jsonl", "game.jsonl"],
    "log redact": ["game.jsonl", "redacted.jsonl"],
    "log schema": [],
    "models list": [],
    "models pull": ["smollm2"],
}
"""Arguments that do; the files are those of the fixture `place`."""


def vocabulary() -> Vocabulary:
    """A token a byte."""
    return Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )


def scripted(*_: object, **__: object) -> Kernel:
    """A kernel that likes small letters."""

    def row(ids: tuple[int, ...]) -> NDArray[np.float32]:
        out = np.linspace(0, 1, 256).astype(np.float32)
        out[97:123] += 3
        return out

    return Kernel(ScriptedBackend(vocabulary(), row, n_ctx=16384))


def without_models() -> None:
    """Put scripted models in the place of real ones, in a process that ends soon."""
    for module in (call, choose, decide, evaluate, opening, write):
        module.load_kernel = scripted  # type: ignore[attr-defined]
    catalogue.resolve = lambda name, pull=True, progress=None: Path(name)
    pull = catalogue.pull
    catalogue.pull = lambda name, progress=None: Path(name) if name == "smollm2" else pull(name, progress)
    kernel.backends.llama_cpp.read_vocabulary = lambda path: vocabulary()
    found = (Finding("It is there", Status.PASSED, "seen"),)
    check.check_cartridge = lambda made, **_: Report(made.name, made.version, found)
    cases = evaluate._cases
    evaluate._cases = lambda name, strategy: cases(name, strategy)[:6]


@dataclass
class Around:
    """What is around a command. A stream is "pipe", "closed", "full" (a device without space) or "gone" (no reader)."""

    name: str
    stdin: str = "pipe"
    stdout: str = "pipe"
    stderr: str = "pipe"
    encoding: str = "utf-8"
    variables: dict[str, str | None] = field(default_factory=dict)


@dataclass
class Done:
    """What came of a command; `code` is below 0 when a signal killed it."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """What stands on stderr and is no note."""
        return [line for line in self.err.splitlines() if not line.startswith(("note: ", "log: "))]


PLAIN = Around("plain")


def forked(
    arguments: list[str], around: Around = PLAIN, typed: bytes = b"", meanwhile: Callable[[int], None] | None = None
) -> Done:
    """Run the command line in a fork; `meanwhile` gets its process id."""
    reading, writing = {}, {}
    for number in (1, 2):
        reading[number], writing[number] = os.pipe()
    inward, typing = os.pipe()
    os.write(typing, typed)
    os.close(typing)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, of which nothing is used here
        process = os.fork()
    if process == 0:
        _child(arguments, around, inward, writing)
    os.close(inward)
    for number in writing.values():
        os.close(number)
    if meanwhile is not None:
        meanwhile(process)
    said = []
    for number in (1, 2):
        with os.fdopen(reading[number], "rb") as stream:
            said.append(stream.read().decode("utf-8", "backslashreplace"))
    _, status = os.waitpid(process, 0)
    return Done(os.waitstatus_to_exitcode(status), *said)


def _streams_of_python(around: Around) -> None:
    """Make the three streams as Python does when it starts: None for one that is closed."""
    streams: Any = sys
    made = io.TextIOWrapper
    streams.stdin = streams.stdout = streams.stderr = None
    if around.stdin != "closed":
        streams.stdin = made(io.BufferedReader(io.FileIO(0)), around.encoding)
    if around.stdout != "closed":
        streams.stdout = made(io.BufferedWriter(io.FileIO(1, "w")), around.encoding)
    if around.stderr != "closed":
        raw = io.BufferedWriter(io.FileIO(2, "w"))
        streams.stderr = made(raw, around.encoding, "backslashreplace", line_buffering=True)


def _child(arguments: list[str], around: Around, inward: int, writing: dict[int, int]) -> NoReturn:
    code = 99
    try:
        os.environ.update({name: value for name, value in around.variables.items() if value is not None})
        for name, value in around.variables.items():
            if value is None:
                os.environ.pop(name, None)
        os.dup2(inward, 0)
        for number in (1, 2):
            kind = around.stdout if number == 1 else around.stderr
            if kind == "full":
                os.dup2(os.open("/dev/full", os.O_WRONLY), number)
            elif kind == "gone":
                end, begin = os.pipe()
                os.close(end)
                os.dup2(begin, number)
            else:
                os.dup2(writing[number], number)
        for number in range(3, 64):
            with contextlib.suppress(OSError):
                os.close(number)
        for number, kind in enumerate((around.stdin, around.stdout, around.stderr)):
            if kind == "closed":
                os.close(number)
        _streams_of_python(around)
        sys.argv = ["kernel", *arguments]
        without_models()
        try:
            dispatch.cli.main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0
        try:  # as the interpreter does when it ends
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            code = 120
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands read."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "requests.txt").write_text("I am cold\n")
    (folder / "options.txt").write_text("shut\nopener\n")
    (folder / "schema.json").write_text('{"properties":{"a":{"type":"boolean"}},"required":["a"]}')
    (folder / "tools.json").write_text('[{"name":"ping","description":"Pings."}]')
    before = Path.cwd()
    os.chdir(folder)
    try:
        made = forked(["run", "home", "--player", "random", "--decisions", "3", "--log", "game.jsonl", "--headless"])
    finally:
        os.chdir(before)
    assert made.code == 0, made.err
    return folder


@pytest.fixture
def place(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with those files, which is the working directory."""
    folder = tmp_path / "place"
    shutil.copytree(template, folder)
    monkeypatch.chdir(folder)
    return folder


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
def test_a_command_does_its_work(place: Path, name: str) -> None:
    """Else the tests below would show nothing."""
    done = forked(given(name))
    assert done.code == 0, done
    assert done.out
    assert "error" not in done.err


ODD = [
    Around("narrow", encoding="ascii", variables={"TERM": "dumb", "COLUMNS": "1", "HOME": None, "LANG": "C"}),
    Around("western", encoding="cp1252", variables={"TERM": "dumb", "COLUMNS": "20", "LC_ALL": "C"}),
    Around("alone", stdin="closed", stderr="closed", variables={"HOME": "/nowhere"}),
    Around("full stderr", stderr="full", variables={"HOME": "/proc/nothing"}),
]
LOST = {
    "closed": (Around("no stdout", stdout="closed"), 1, "error: stdout cannot be written: Bad file descriptor"),
    "full": (Around("full stdout", stdout="full"), 1, "error: stdout cannot be written: No space left on device"),
    "gone": (Around("no reader", stdout="gone"), 141, ""),
}


@pytest.mark.parametrize("around", ODD, ids=lambda around: around.name)
@pytest.mark.parametrize("name", GOOD)
def test_odd_surroundings_change_nothing(place: Path, name: str, around: Around) -> None:
    """Kind: an environment that the author did not have. No home, no locale, a line of one column, closed streams."""
    done = forked(given(name), around)
    assert done.code == 0, done
    assert done.out
    assert "Traceback" not in done.err
    done.out.encode(around.encoding)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("name", GOOD)
def test_a_result_that_cannot_be_told_is_no_success(place: Path, name: str, lost: str) -> None:
    """Kind: a stream that is not there. One line and exit code 1, or silence and 141 where a reader went away."""
    around, code, said = LOST[lost]
    done = forked(given(name), around)
    assert done.code == code, done
    own = [line for line in done.lines if not line.startswith(("try: ", "default: ", "1 tools", "salt "))]
    assert own == ([said] if said else []), done


@pytest.mark.parametrize("lost", LOST)
def test_a_log_gets_its_outcome_where_the_output_fails(place: Path, lost: str) -> None:
    """Kind: the output fails in the middle of a session; what was written stays and says how it ended."""
    around, code, _ = LOST[lost]
    done = forked(["run", "home", "--player", "random", "--decisions", "3", "--log", "new.jsonl"], around)
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


def test_numbers_out_of_their_bounds_are_misuse(place: Path, in_process: Callable[..., Done]) -> None:
    """Kind: a number without an upper bound. Every number of every command has one, and one line says what it is."""
    seen = 0
    for name, option, value in numbers():
        done = in_process([*given(name), f"{option}={value}"])
        assert (done.code, len(done.lines), done.out) == (2, 1, ""), (name, option, value, done)
        assert option in done.err or "speed" in done.err
        seen += 1
    assert seen > 100


@pytest.fixture
def in_process() -> Callable[..., Done]:
    """Run the app in this process, for what ends before anything is loaded."""

    def run(arguments: list[str]) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as exited:
            GROUP.main(arguments, prog_name="kernel")
        assert isinstance(exited.value.code, int)
        return Done(exited.value.code, out.getvalue(), err.getvalue())

    return run


def test_misuse_is_one_line_and_code_2(place: Path, in_process: Callable[..., Done]) -> None:
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
    "nowhere": "nowhere/{}2",
    "a folder": "folder",
    "below a file": "schema.json/below",
    "not to be written": "/proc/self/nothing/here",
    "long": "x" * 5000,
}


@pytest.mark.parametrize("kind", PATHS)
def test_paths_that_are_none_end_in_one_line(place: Path, kind: str) -> None:
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
            good |= (name, parameter.name, kind) in {("compile", "output", "nowhere"), ("import", "output", "nowhere")}
            assert done.code in ((0,) if good else (1, 2)), (arguments, done)
            if not good:
                assert len(done.lines) == 1, (arguments, done)
                assert done.lines[0].startswith("error: "), (arguments, done)
                assert len(done.lines[0]) < 4100
