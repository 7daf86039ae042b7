"""Plays a log again without the model and compares every state with the logged one.

The engines start from the header's seed, take the logged instructions one by one, and have to come to the logged state
hashes, results and summary. A log that was rewritten together with its checksums is found where the engine disagrees.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dispatch.log.objects import CartridgeRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Joined, Outcome
from kernel.contract import Cartridge, Engine
from kernel.errors import IllegalInstructionError
from kernel.opcode import HALT_INSTRUCTION

MakeCartridge = Callable[[CartridgeRecord], Cartridge]
"""Gives the cartridge of a record, its engine built with the record's options."""


class Verdict(enum.StrEnum):
    """How far a log holds."""

    VERIFIED = "verified"
    """All of it, outcome included."""
    UNFINISHED = "unfinished"
    """All that is there; the outcome is not. The session was killed, goes on still, or its last lines are gone."""
    STOPPED = "stopped"
    """As far as was asked; more may follow."""
    DAMAGED = "damaged"
    """Up to a line that is damaged."""
    DIFFERENT = "different"
    """Up to a step at which the engine disagrees with the log."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engine and the log part. Step 0 is the start, before any decision.

    >>> print(Difference(step=3, what="state", logged="b2:1", found="b2:2"))
    decision 3: state: the log has 'b2:1', the engine 'b2:2'
    """

    step: int
    what: str
    logged: str
    found: str

    def __str__(self) -> str:
        where = f"decision {self.step}" if self.step else "the start"
        return f"{where}: {self.what}: the log has {self.logged!r}, the engine {self.found!r}"


@dataclass(frozen=True, slots=True)
class Step:
    """One decision, carried out and verified. `engine` is live: copy it to keep the state."""

    record: DecisionRecord
    engine: Engine
    cartridge: Cartridge


class ReplayReport(BaseModel):
    """What a replay found."""

    model_config = ConfigDict(frozen=True)

    path: str
    verdict: Verdict
    sentence: str
    """The verdict in words, with step and reason."""
    decisions: int
    """Whole decisions that verify."""
    cartridges: tuple[CartridgeRecord, ...]
    player: str
    seed: int
    damage: str | None = None
    difference: str | None = None
    outcome: Outcome | None = None
    notes: tuple[str, ...] = ()
    seconds: float
    decisions_per_second: float

    @property
    def good(self) -> bool:
        """Whether the whole log, or all that was asked for, verifies."""
        return self.verdict in (Verdict.VERIFIED, Verdict.STOPPED)


class Replay:
    """Iterates over the verified steps of a log, from the first, and stops where it does not hold any more.

    Args:
        reader: an open log, not yet iterated.
        make_cartridge: builds a cartridge from its record; its errors pass through.
        last: stop after this decision; None for all.

    Attributes:
        cartridges: by name, those that take part now.
        engines: by cartridge name, in the state after the last step.
        n: how many decisions verify so far.
        difference: the first one, once it was reached.
    """

    def __init__(self, reader: LogReader, make_cartridge: MakeCartridge, *, last: int | None = None) -> None:
        self.reader = reader
        self.n = 0
        self.difference: Difference | None = None
        self.notes: list[str] = []
        self.cartridges: dict[str, Cartridge] = {}
        self.engines: dict[str, Engine] = {}
        self._last = last
        self._make = make_cartridge
        self._over = False
        self._started = time.perf_counter()
        for record in reader.header.cartridges:
            self._start(record, make_cartridge(record))

    def __iter__(self) -> Iterator[Step]:
        for record in self.decisions():
            self._carry_out(record)
            if self.difference is None:
                yield Step(record, self.engines[record.cartridge], self.cartridges[record.cartridge])

    def decisions(self) -> Iterator[DecisionRecord]:
        """Iterate over the logged decisions instead, the engines in the state in which each was made.

        A decision is carried out and verified when the next one is asked for.
        """
        if self.difference is not None or self._stopped():
            return
        for record in self.reader:
            self._change()
            if self.difference is None and record.cartridge not in self.engines:
                self.difference = Difference(record.n, "cartridge", record.cartridge, f"only {', '.join(self.engines)}")
            if self.difference is not None:
                return
            yield record
            self._carry_out(record)
            if self.difference is not None or self._stopped():
                return
        self._over = True
        self._change()
        if self.difference is None and self.reader.outcome is not None:
            self.difference = self._compare(self.reader.outcome)

    def report(self) -> ReplayReport:
        """Return the verdict so far; after a whole iteration it is final."""
        header, seconds = self.reader.header, time.perf_counter() - self._started
        verdict, sentence = self._verdict()
        return ReplayReport(
            path=str(self.reader.path),
            verdict=verdict,
            sentence=sentence,
            decisions=self.n,
            cartridges=header.cartridges,
            player=header.player,
            seed=header.seed,
            damage=str(self.reader.damage) if self.reader.damage else None,
            difference=str(self.difference) if self.difference else None,
            outcome=self.reader.outcome,
            notes=(*self.notes, *self.reader.notes),
            seconds=round(seconds, 6),
            decisions_per_second=round(self.n / seconds, 1) if seconds else 0.0,
        )

    def _stopped(self) -> bool:
        return self._last is not None and self.n >= self._last

    def _change(self) -> None:
        """Let the cartridges join and leave that did so before the next decision."""
        while self.reader.changes and self.difference is None:
            change = self.reader.changes.popleft()
            if isinstance(change, Joined):
                self._start(change.cartridge, self._make(change.cartridge))
            elif change.cartridge in self.engines:
                del self.cartridges[change.cartridge], self.engines[change.cartridge]
            else:
                self.difference = Difference(self.n, "left", change.cartridge, f"only {', '.join(self.engines)}")

    def _start(self, record: CartridgeRecord, cartridge: Cartridge) -> None:
        engine = cartridge.engine()
        engine.reset(self.reader.header.seed)
        self.cartridges[record.name], self.engines[record.name] = cartridge, engine
        if cartridge.version != record.version:
            self.notes.append(f"{record.name}: logged with version {record.version}, replayed with {cartridge.version}")
        if record.state is not None and self.difference is None and record.state != engine.state_hash():
            self.difference = Difference(self.n, f"{record.name} state", record.state, engine.state_hash())

    def _carry_out(self, record: DecisionRecord) -> None:
        """Carry out and verify a decision, unless that was done already."""
        if self.n < record.n and self.difference is None:
            self.difference = self._apply(record, self.engines[record.cartridge])
            self.n = self.n if self.difference else record.n

    def _apply(self, record: DecisionRecord, engine: Engine) -> Difference | None:
        """Let an engine take a logged instruction; return where it differs from the log, or None."""
        instruction = record.instruction.instruction()
        if instruction != HALT_INSTRUCTION:
            refused = False
            try:
                result = engine.apply(instruction)
            except IllegalInstructionError as error:
                refused, result = True, str(error)
            except Exception as error:  # an engine may choke on a log that was tampered with; that is a finding too
                return Difference(record.n, "error", repr(instruction), f"{type(error).__name__}: {error}")
            if refused != record.refused:
                return Difference(record.n, "legality", f"{instruction!r}: {record.result}", result)
            if result != record.result:
                return Difference(record.n, "result", record.result, result)
        state = engine.state_hash()
        return None if state == record.state else Difference(record.n, "state", record.state, state)

    def _compare(self, outcome: Outcome) -> Difference | None:
        """Hold the outcome against the engines."""
        for name, logged in outcome.summary.items():
            found = dict(self.engines[name].summary()) if name in self.engines else {}
            if logged != found:
                return Difference(self.n, f"{name} summary", str(logged), str(found))
        reasons = [engine.ended() for engine in self.engines.values()]
        if outcome.ending is Ending.RULES and not any(reasons):
            return Difference(self.n, "ending", outcome.detail or outcome.ending, "the session may go on")
        return None

    def _verdict(self) -> tuple[Verdict, str]:
        damage, outcome = self.reader.damage, self.reader.outcome
        whole = f"{self.n} whole decision{' verifies' if self.n == 1 else 's verify'}"
        if self.difference is not None:
            return Verdict.DIFFERENT, f"different: {self.difference}; before that {whole}"
        if damage is not None:
            return Verdict.DAMAGED, f"damaged: {whole}, then {damage}"
        if outcome is not None:
            detail = f" ({outcome.detail})" if outcome.detail else ""
            return Verdict.VERIFIED, f"verified: {whole} to the end: {outcome.ending}{detail}"
        if not self._over:
            return Verdict.STOPPED, f"stopped as asked: {whole}"
        return Verdict.UNFINISHED, f"unfinished: {whole}, and no outcome follows: killed, or its end was cut off"


def replay(path: str | Path, make_cartridge: MakeCartridge, *, last: int | None = None) -> ReplayReport:
    """Play a whole log again and return what was found.

    Raises LogError when there is no header to start from, and whatever `make_cartridge` raises.
    """
    with LogReader(path) as reader:
        run = Replay(reader, make_cartridge, last=last)
        for _ in run:
            pass
        return run.report()
