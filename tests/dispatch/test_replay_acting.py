"""Engines that act outside: sessions are the only ones that act; whatever reads a log takes the answers from it."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Self

import pytest
from annotated_types import Ge, Le

from dispatch.log.cursor import Cursor
from dispatch.log.reader import LogReader
from dispatch.log.records import Header
from dispatch.log.replay import replay
from dispatch.log.report import Verdict
from dispatch.log.resume import resume
from dispatch.log.writer import LogWriter
from dispatch.session.decide import changes, decide_again
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import Player, RandomPlayer
from dispatch.session.session import Session
from dispatch.wire.wire import Wire
from kernel.choose.rule import Rule
from kernel.contract import Cartridge
from kernel.errors import ActionFailedError, IllegalInstructionError
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Part, Prompt
from tests.dispatch.test_replay_decide import kernel
from tests.fuzz.log_cases import lines_of, sealed

DONE: list[str] = []
"""What was done outside."""


class Ping(Opcode):
    """Ask a device."""

    port: Annotated[int, Ge(1), Le(3)]


class Device:
    """Answers with something new each time; port 3 is broken. The state is a hash of what was asked and answered."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        self.said: list[str] = []

    def legal(self) -> Sequence[Instruction]:
        return [Instruction.of("device", "ping", port=port) for port in (1, 2, 3)]

    def apply(self, instruction: Instruction) -> str:
        DONE.append(repr(instruction))
        if instruction.args["port"] == 3:
            raise ActionFailedError("port 3 is off")
        result = f"pong {len(DONE)}"
        self.recall(instruction, result)
        return result

    def recall(self, instruction: Instruction, result: str) -> None:
        if instruction not in self.legal():
            raise IllegalInstructionError(f"device: no {instruction!r}")
        self.said.append(f"{instruction!r}: {result}")

    def copy(self) -> Self:
        twin = type(self)()
        twin.said = list(self.said)
        return twin

    def state_hash(self) -> str:
        return blake2b(json.dumps(self.said).encode(), digest_size=8).hexdigest()

    def ended(self) -> str | None:
        return None

    def summary(self) -> Mapping[str, int | float | str]:
        return {"asked": len(self.said)}


class View:
    """Shows nothing."""

    def prompt(self, *_: object) -> Prompt:
        return Prompt((Part("ping "),), ((Part("? "),),))

    def render(self, engine: Device) -> Any:
        return "device"


DEVICE = Cartridge("device", "1", "Asks.", (Ping,), Device, View(), acts_outside=True)


class Ports:
    """Asks the ports of a list one after the other."""

    name = "planner"

    def __init__(self, ports: Sequence[int]) -> None:
        self.ports = list(ports)

    def choose(self, situation: Any) -> Any:
        from dispatch.session.players import Choice

        return Choice(Instruction.of("device", "ping", port=self.ports.pop(0)))

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """Nothing to do."""


def played(path: Path, player: Player, decisions: int) -> Path:
    DONE.clear()
    session = Session([DEVICE], player, seed=1, limits={"decisions": decisions})
    with LogWriter(path, Header(cartridges=session.records, seed=1, player=player.name)) as log:
        session.write_to(log)
        list(session.turns())
        session.end_log()
    return path


def test_nothing_but_a_session_acts(tmp_path: Path) -> None:
    """Two actions after run, replay, the cursor and deciding again; three after one more decision of a resumed log.

    The answers differ each time, and the log verifies all the same.
    """
    path = played(tmp_path / "log", Ports([1, 2]), 2)
    assert len(DONE) == 2
    assert replay(path, lambda _: DEVICE).verdict is Verdict.VERIFIED
    with Cursor(path, lambda _: DEVICE) as cursor:
        for n in (2, 1, 2):
            assert cursor.go(n) is not None
    assert len(DONE) == 2
    made = kernel()
    player = ModelPlayer(made, Wire([DEVICE]), [DEVICE], Rule("exact"))  # type: ignore[arg-type]
    with LogReader(path) as reader:
        changed = changes(reader.header, made, "now", Rule("exact"), {})  # type: ignore[arg-type]
    assert decide_again(path, lambda _: DEVICE, player, changed).decisions == 2
    assert len(DONE) == 2
    found = resume(path, lambda _: DEVICE)
    session = Session.resume(found, Ports([1]), limits={"decisions": 3})
    with found.writer:
        list(session.turns())
        session.end_log()
    assert len(DONE) == 3
    assert replay(path, lambda _: DEVICE).decisions == 3
    assert len(DONE) == 3


def test_an_edited_answer_is_found_by_the_state(tmp_path: Path) -> None:
    """The checksums are right; the hash of calls and answers is not."""
    path = played(tmp_path / "log", Ports([1, 2]), 2)
    lines = lines_of(path)
    lines[1]["result"] = "all is well"
    path.write_bytes(sealed(lines))
    report = replay(path, lambda _: DEVICE)
    assert (report.verdict, report.line) == (Verdict.DIFFERENT, 2)
    assert "decision 1: state: " in report.sentence


def test_a_failed_action_is_repeated_as_nothing(tmp_path: Path) -> None:
    """The state stays; a log that claims another failure, or none, is found."""
    path = played(tmp_path / "log", Ports([1, 3, 2]), 3)
    good = path.read_bytes()
    report = replay(path, lambda _: DEVICE)
    assert (report.verdict, report.decisions, len(DONE)) == (Verdict.VERIFIED, 3, 3)
    for fields in ({"failed": None}, {"refused": False}, {"result": "pong"}):
        path.write_bytes(good)
        lines = lines_of(path)
        lines[2] = {k: v for k, v in (lines[2] | fields).items() if v is not None}
        path.write_bytes(sealed(lines))
        assert replay(path, lambda _: DEVICE).line == 3
    path.write_bytes(good)
    lines = lines_of(path)
    lines[1] |= {"failed": "no", "refused": True, "result": ""}
    path.write_bytes(sealed(lines))
    assert replay(path, lambda _: DEVICE).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize("port", [0, 4, "1", 1.0, None])
def test_an_argument_that_does_not_fit_is_found_without_acting(tmp_path: Path, port: object) -> None:
    """Illegal values and values of another type."""
    path = played(tmp_path / "log", RandomPlayer(), 3)
    done = len(DONE)
    lines = lines_of(path)
    lines[3]["instruction"]["arguments"] = {"port": port}
    path.write_bytes(sealed(lines))
    report = replay(path, lambda _: DEVICE)
    assert report.line == 4
    assert not report.good
    assert len(DONE) == done
