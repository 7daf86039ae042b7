"""A cartridge small enough to check by hand, and logs of it."""

# ruff: noqa: D102 - the methods are those of kernel/contract.py

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Self

import pytest
from annotated_types import Ge, Le

from dispatch.log.encoding import START, decode, encode_data, seal, unseal
from dispatch.log.objects import CartridgeRecord, InstructionRecord, LegalRow
from dispatch.log.records import DecisionRecord, Ending, Header, Outcome
from dispatch.log.writer import LogWriter
from kernel.contract import Cartridge, Option
from kernel.errors import CartridgeError, IllegalInstructionError
from kernel.opcode import Instruction, Opcode
from kernel.prompt import Part, Prompt


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


@pytest.fixture
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
