"""A cartridge small enough to check by hand, and logs of it."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import contextlib
import importlib
import io
import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, NoReturn, Self

import numpy as np
import pytest
from annotated_types import Ge, Le
from numpy.typing import NDArray

import dispatch.cli
import kernel.backends.llama_cpp
from dispatch.checker import Report, Status
from dispatch.checker.report import Finding
from dispatch.cli import call, check, choose, decide, evaluate, learn, opening, serve
from dispatch.cli import write as writing_command
from dispatch.loading.registry import Registry
from dispatch.log.encoding import START, decode, encode_data, seal, unseal
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LegalRow
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.schema import json_schema
from dispatch.log.writer import LogWriter
from dispatch.session.learned import keys_of
from dispatch.session.learning import Lesson
from dispatch.tab import zipped
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.choose.learned import Learned
from kernel.contract import Cartridge, Option
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.models import catalogue
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import NORMAL, Vocabulary


class Add(Opcode):
    """Add a number."""

    by: Annotated[int, Ge(1), Le(3)]


class CounterEngine:
    """Counts from the seed up to 1000; `add` by 1, 2 or 3."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.value, self.steps = seed, 0

    def legal(self) -> Sequence[Instruction]:
        return [Instruction.of("counter", "add", by=by) for by in (1, 2, 3) if self.value + by <= 1000]

    def apply(self, instruction: Instruction) -> str:
        if instruction not in self.legal():
            raise IllegalInstructionError(f"counter: {instruction!r} at {self.value}")
        self.value, self.steps = self.value + instruction.args["by"], self.steps + 1
        return f"now {self.value}"

    def copy(self) -> Self:
        twin = type(self)()
        twin.value, twin.steps = self.value, self.steps
        return twin

    def state_hash(self) -> str:
        return f"s{self.value}.{self.steps}"

    def ended(self) -> str | None:
        return "a thousand" if self.value == 1000 else None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"value": self.value, "steps": self.steps}


class CounterView:
    """Shows the number."""

    def prompt(self, engine: CounterEngine, options: Sequence[Option], request: str = "") -> Prompt:
        def parts(value: object) -> tuple[Part, ...]:
            return Part("value ", trusted=True), Part(f"{value} {request}"), Part("\n", trusted=True)

        return Prompt(parts(engine.value), (parts("?"),))

    def render(self, engine: CounterEngine) -> Any:
        return f"value {engine.value}"


class CounterPlanner:
    """Prefers large steps."""

    def rank(self, engine: CounterEngine) -> Sequence[Option]:
        return [Option(i, score=float(i.args["by"])) for i in reversed(engine.legal())]


COUNTER = Cartridge(
    "counter", "1", "Counts.", (Add,), CounterEngine, CounterView(), CounterPlanner(), offered=2, takes_requests=True
)


def make_cartridge(record: CartridgeRecord) -> Cartridge:
    """Give the counter, or refuse."""
    if record.name != "counter":
        raise CartridgeError(f"no cartridge {record.name!r}")
    return COUNTER


def header(seed: int = 7) -> Header:
    """A header whose every byte is known."""
    start = CartridgeRecord(name="counter", version="1", state=f"s{seed}.0")
    return Header(started="2026-01-02T03:04:05+00:00", cartridges=(start,), seed=seed, player="random")


def said(by: int) -> str:
    """Return an addition in the compact wire form."""
    return f" add {by}\n@counter\n"


def decision(n: int, engine: CounterEngine, by: int) -> DecisionRecord:
    """Carry out one addition and record it."""
    instruction = Instruction.of("counter", "add", by=by)
    legal = tuple(LegalRow(text=said(i.args["by"]), logprob=-0.5 * i.args["by"]) for i in engine.legal())
    result = engine.apply(instruction)
    return DecisionRecord(
        n=n,
        cartridge="counter",
        instruction=InstructionRecord.of(instruction),
        text=said(by),
        ids=(100 + by,),
        legal=legal,
        result=result,
        state=engine.state_hash(),
    )


def write(path: Path, decisions: int = 10, seed: int = 7, end: bool = True) -> Path:
    """Write a log of a random game and return its path."""
    engine, rng = CounterEngine(), random.Random(seed)
    engine.reset(seed)
    with LogWriter(path, header(seed)) as log:
        for n in range(1, decisions + 1):
            log.decision(decision(n, engine, rng.choice(engine.legal()).args["by"]), prompt=range(n % 5, 20 + n))
        if end:
            summary = {"counter": dict(engine.summary())}
            log.outcome(Outcome(decisions=decisions, ending=Ending.LIMIT, detail="decisions", summary=summary))
    return path


def forge(path: Path, line: int, **fields: object) -> None:
    """Change fields of one line (from 1) and compute every checksum again, as a forger would."""
    lines, chain = [], START
    for at, old in enumerate(path.read_bytes().splitlines(), 1):
        parts = unseal(old)
        assert parts is not None
        data = decode(parts[0]) | (fields if at == line else {})
        new, chain = seal(encode_data({k: v for k, v in data.items() if v is not None}), chain)
        lines.append(new)
    path.write_bytes(b"".join(lines))


@pytest.fixture(scope="session")
def counter() -> SimpleNamespace:
    """The counter cartridge and what writes logs of it."""
    return SimpleNamespace(
        make=make_cartridge,
        cartridge=COUNTER,
        engine=CounterEngine,
        header=header,
        decision=decision,
        write=write,
        forge=forge,
        add=lambda by: Instruction.of("counter", "add", by=by),
        said=said,
        summary=lambda engine: {"counter": dict(engine.summary())},
    )


# -- the command line in a fork ---------------------------------------------------------------------------------------


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


def learned_at_once(kernel: Kernel, cartridges: Sequence[Cartridge], *_: object) -> Lesson:
    """What `learn` would learn from nothing; tests of learning itself stand elsewhere."""
    none, zero, one = np.zeros(0, np.int32), np.zeros(2), np.zeros(1)
    words = none.astype(np.int64)
    made = Learned(
        keys_of(kernel, cartridges), (1,), (2,), none, np.zeros((2, 2)), zero, zero, 1.0,
        np.zeros((0, 1)), np.zeros((3, 1)), one, words, np.zeros((0, 1)),
    )  # fmt: skip
    return Lesson(made, 1, 1, 0.0, 1.0, 0.0, 1.0)


def without_models() -> None:
    """Put scripted models in the place of real ones, in a process that ends soon."""
    for module in (call, choose, decide, evaluate, learn, opening, serve, writing_command):
        module.load_kernel = scripted  # type: ignore[attr-defined]
    catalogue.resolve = lambda name, pull=True, progress=None: Path(name)
    pull = catalogue.pull
    catalogue.pull = lambda name, progress=None: Path(name) if name == "smollm2" else pull(name, progress)
    kernel.backends.llama_cpp.read_vocabulary = lambda path: vocabulary()
    found = (Finding("It is there", Status.PASSED, "seen"),)
    check.check_cartridge = lambda made, **_: Report(made.name, made.version, found)
    learn.lesson = learned_at_once
    cases = evaluate._cases
    evaluate._cases = lambda name: cases(name)[:6]


@dataclass
class Around:
    """What is around a command. A stream is "pipe", "closed", "full" (a device without space) or "gone" (no reader)."""

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


def run_forked(
    arguments: Sequence[object],
    *,
    typed: bytes = b"",
    meanwhile: Callable[[int], None] | None = None,
    before: Callable[[], None] = lambda: None,
    **around: Any,
) -> Done:
    """Run the command line in a fork.

    Args:
        typed: what stands on stdin.
        meanwhile: gets the process id, while it runs.
        before: called in the fork before the command.
        around: fields of Around.
    """
    reading, writing = {}, {}
    for number in (1, 2):
        reading[number], writing[number] = os.pipe()
    inward = os.memfd_create("stdin")
    os.write(inward, typed)
    os.lseek(inward, 0, os.SEEK_SET)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks beside threads, of which nothing is used here
        process = os.fork()
    if process == 0:
        _child(list(map(str, arguments)), Around(**around), inward, writing, before)
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


def _child(
    arguments: list[str], around: Around, inward: int, writing: dict[int, int], before: Callable[[], None]
) -> NoReturn:
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
        before()
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


@pytest.fixture(scope="session")
def loaded() -> None:
    """Import and work out once what commands would in each fork anew: cartridges, boards, a server, a tab's modules."""
    modules = [source.target.partition(":")[0] for source in Registry().sources]
    for name in (*modules, "rich.live", "dispatch.mcp.server"):
        importlib.import_module(name)
    zipped.reached(zipped.DOOR, "cartridges.tetris")
    json_schema()


@pytest.fixture
def forked(loaded: None) -> Callable[..., Done]:
    """Give what runs the command line in a fork; see `run_forked`."""
    if not hasattr(os, "memfd_create"):
        pytest.skip("needs Linux")
    return run_forked


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that commands read."""
    folder = tmp_path_factory.mktemp("template")
    (folder / "requests.txt").write_text("I am cold\n")
    (folder / "options.txt").write_text("shut\nopener\n")
    (folder / "cases.jsonl").write_text(
        '{"request":"Brr","answer":"heater warmer"}\n{"request":"Hm","answer":"none"}\n'
    )
    (folder / "schema.json").write_text('{"properties":{"a":{"type":"boolean"}},"required":["a"]}')
    (folder / "tools.json").write_text('[{"name":"ping","description":"Pings."}]')
    before = Path.cwd()
    os.chdir(folder)
    try:
        made = run_forked(
            ["run", "home", "--player", "random", "--decisions", "3", "--log", "game.jsonl", "--headless"]
        )
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
