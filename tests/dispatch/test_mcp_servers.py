"""Servers that others wrote, started as a user would: a clock out of PyPI, files and everything else out of npm."""

# ruff: noqa: D102 - the methods are those of Player

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cartridges.kit.mcp import Command, serving
from dispatch.log.reader import LogReader
from dispatch.log.replay import replay
from dispatch.log.report import Verdict
from dispatch.log.writer import LogWriter
from dispatch.session.header import By, header
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Choice
from dispatch.session.recorded import make_cartridge
from dispatch.session.session import Session
from dispatch.session.situation import Situation
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import ActionFailedError
from kernel.opcode import Instruction
from kernel.tools.caller import PRIOR

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".cache" / "mcp" / "node_modules"


def of_npm(server: str) -> tuple[str, ...]:
    """Return the command of a server that `make setup-mcp` has installed."""
    program = PLACE / "@modelcontextprotocol" / server / "dist" / "index.js"
    node = shutil.which("node")
    if node is None or not program.is_file():
        said = f"{server} of npm is not here: make setup-mcp"
        if os.environ.get("KERNEL_NEEDS_MCP"):
            pytest.fail(said)
        pytest.skip(said)
    return node, str(program)


def do(cartridge: Cartridge, method: str, **arguments: object) -> str:
    return cartridge.engine().apply(Instruction.of(cartridge.name, method, **arguments))


class Does:
    """Takes these instructions, one after the other."""

    name = "scripted"

    def __init__(self, *instructions: Instruction) -> None:
        self._left = iter(instructions)

    def choose(self, situation: Situation) -> Choice:
        return Choice(next(self._left))

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        pass


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The folder that a server of files may use, with one file in it; beside it a file that it may not."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "milk.txt").write_text("two bottles")
    (tmp_path / "secret.txt").write_text("swordfish")
    return folder


@pytest.fixture
def files(notes: Path) -> Iterator[Cartridge]:
    cartridge = serving(Command("files", (*of_npm("server-filesystem"), str(notes))))
    assert cartridge.live is not None
    yield cartridge
    cartridge.live.close()


def call(method: str, **arguments: object) -> Instruction:
    return Instruction.of("files", method, **arguments)


def played(session: Session, path: Path, count: int) -> list[str]:
    """Play so many turns into a log; return what came of each."""
    with LogWriter(path, header(session, None)) as writer:
        session.write_to(writer)
        turns = [session.turn() for _ in range(count)]
        session.end_log()
    return [turn.failed or turn.result for turn in turns]


def test_a_clock_out_of_pypi_tells_the_time_and_what_it_does_not_know() -> None:
    """Its schemas are held, its hints are read, its failures are failures."""
    clock = serving(Command("", (sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC")))
    assert clock.live is not None
    try:
        assert (clock.name, [o.method for o in clock.opcodes]) == (
            "mcp-time", ["get_current_time", "convert_time", "halt"],
        )  # fmt: skip
        assert not any(opcode.confirm for opcode in clock.opcodes)
        found = json.loads(do(clock, "get_current_time", timezone="Asia/Tokyo"))
        assert found["datetime"].endswith("+09:00")
        with pytest.raises(ActionFailedError, match="Mars"):
            do(clock, "get_current_time", timezone="Mars")
    finally:
        clock.live.close()


def test_requests_read_list_and_write_files_in_the_folder_and_nothing_outside(
    files: Cartridge, notes: Path, tmp_path: Path
) -> None:
    """What is outside is refused by the server; the log replays without it."""
    session = Session(
        [files],
        Does(
            call("list_directory", path=str(notes)),
            call("write_file", path=str(notes / "eggs.txt"), content="a dozen\n"),
            call("read_text_file", path=str(notes / "eggs.txt")),
            call("search_files", path=str(notes), pattern="*.txt"),
            call("read_text_file", path=str(notes.parent / "secret.txt")),
        ),
    )
    session.yes = True
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    results = played(session, notes / ".." / "log", 5)
    assert results[0] == "[FILE] milk.txt"
    assert results[2] == "a dozen\n"
    assert sorted(results[3].split()) == [str(notes / "eggs.txt"), str(notes / "milk.txt")]
    assert "Access denied" in results[4]
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "log"}
    assert after == before | {notes / "eggs.txt": b"a dozen\n"}
    report = replay(tmp_path / "log", make_cartridge)
    assert (report.verdict, report.decisions) == (Verdict.VERIFIED, 5)


@pytest.mark.model
@pytest.mark.slow
def test_a_small_model_lists_reads_and_writes_files_as_it_is_asked(
    smollm2_path: Path, files: Cartridge, notes: Path, tmp_path: Path
) -> None:
    """Five requests in plain words come true in the folder, nothing changes beside it, and the log replays."""
    kernel = Kernel.load(str(smollm2_path), n_ctx=4096, threads=1)
    rule = Rule(RuleName.CALIBRATED, planner_weight=PRIOR)
    player = ModelPlayer(kernel, Wire([files], form("compact")), [files], rule)
    session = Session([files], player)
    session.yes = True
    with LogWriter(tmp_path / "log", header(session, By(kernel, "smollm2", rule, "compact", 256))) as writer:
        session.write_to(writer)
        asked = (
            f"list the directory {notes}",
            f"read the text file {notes}/milk.txt",
            f"create the directory {notes}/shopping",
            f'write "a dozen" to the file {notes}/eggs.txt',
            f"move the file {notes}/milk.txt to {notes}/cream.txt",
        )
        turns = [session.turn(request) for request in asked]
        session.end_log()
    assert not [turn.failed for turn in turns if turn.failed]
    assert ("milk.txt" in turns[0].result, turns[1].result) == (True, "two bottles")
    found = {path.name: path.read_text() for path in notes.rglob("*") if path.is_file()}
    assert found == {"eggs.txt": "a dozen", "cream.txt": "two bottles"}
    assert (notes / "shopping").is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"notes", "secret.txt", "log"}
    assert (tmp_path / "secret.txt").read_text() == "swordfish"
    assert replay(tmp_path / "log", make_cartridge).verdict is Verdict.VERIFIED


def test_writing_is_asked_about_and_reading_is_not(files: Cartridge) -> None:
    """As the server's own hints say."""
    asked = {opcode.method for opcode in files.opcodes if opcode.confirm}
    assert {"write_file", "edit_file", "move_file"} <= asked
    assert not {"read_text_file", "list_directory", "directory_tree"} & asked


def test_killing_the_server_in_a_call_loses_no_line(files: Cartridge, notes: Path, tmp_path: Path) -> None:
    """It is stopped, so that the call waits, and killed while it does: a failed decision, and all lines before it."""
    said = subprocess.run(
        ["ps", "-wwo", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    ).stdout
    (process,) = [int(line.split()[0]) for line in said.splitlines() if str(notes) in line]
    read = call("read_text_file", path=str(notes / "milk.txt"))
    session = Session([files], Does(read, read, read))
    with LogWriter(tmp_path / "log", header(session, None)) as writer:
        session.write_to(writer)
        assert session.turn().result == "two bottles"
        os.kill(process, signal.SIGSTOP)
        killer = threading.Timer(0.3, os.kill, (process, signal.SIGKILL))
        killer.start()
        begun = time.monotonic()
        turn = session.turn()
        assert turn.failed is not None
        assert turn.failed.startswith("files.read_text_file: the server has ended")
        assert 0.2 < time.monotonic() - begun < 5
    with LogReader(tmp_path / "log") as reader:
        assert [(record.n, record.result, record.failed) for record in reader] == [
            (1, "two bottles", None), (2, "", turn.failed),
        ]  # fmt: skip
        assert reader.damage is None
    assert replay(tmp_path / "log", make_cartridge).verdict is Verdict.UNFINISHED


def test_the_server_that_does_everything_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are told, not shown; what takes too long is given up; our environment is our own."""
    monkeypatch.setenv("SECRET", "swordfish")
    everything = serving(Command("all", (*of_npm("server-everything"), "stdio")), call_seconds=1.5)
    assert everything.live is not None
    try:
        methods = {opcode.method for opcode in everything.opcodes}
        assert {"echo", "get-sum", "get-env", "get-tiny-image", "trigger-long-running-operation"} <= methods
        assert do(everything, "echo", message="hello") == "Echo: hello"
        assert do(everything, "get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
        assert "[image image/png]" in do(everything, "get-tiny-image")
        assert "swordfish" not in do(everything, "get-env")
        with pytest.raises(ActionFailedError, match=r"no answer in 1\.5 s"):
            do(everything, "trigger-long-running-operation", duration=30, steps=3)
        assert do(everything, "echo", message="still here") == "Echo: still here"
    finally:
        everything.live.close()
