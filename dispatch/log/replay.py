"""Plays a log again without the model and compares every state with the logged one.

The engines start from the header's seed, take the logged instructions one by one, and have to come to the logged state
hashes, results and summary. What the text and the legal rows of a decision say has to agree as well (`spelling.py`). An
engine that acts outside is told the logged results and does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatch.log.key import Key
from dispatch.log.objects import CartridgeRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Joined, Left, Outcome
from dispatch.log.report import Difference, ReplayReport, Verdict, ended, same
from dispatch.log.spelling import Speller
from kernel.contract import Cartridge, Engine
from kernel.errors import IllegalInstructionError, OpcodeError
from kernel.opcode import HALT_INSTRUCTION, Instruction

MakeCartridge = Callable[[CartridgeRecord], Cartridge]
"""Gives the cartridge of a record, its engine built with the record's options."""
NOTES = 20
"""So many notes are kept."""


@dataclass(frozen=True, slots=True)
class Step:
    """One decision, carried out and verified. `engine` is live: copy it to keep the state."""

    record: DecisionRecord
    engine: Engine
    cartridge: Cartridge


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
        self._speller = Speller(reader.header)
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
                self.differs(record.n, "cartridge", record.cartridge, f"only {', '.join(self.engines)}")
            if self.difference is not None:
                return
            yield record
            self._carry_out(record)
            if self.difference is not None or self._stopped():
                return
        self._over = True
        self._change()
        if self.difference is None and self.reader.outcome is not None:
            self._compare(self.reader.outcome)

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
            line=found.line if (found := self.difference or self.reader.damage) else None,
            keyed=self.reader.about_key,
            by_key=self.reader.by_key,
            key_given=self.reader.key_given,
            outcome=self.reader.outcome,
            notes=(*self.notes, *self.reader.notes),
            seconds=round(seconds, 6),
            decisions_per_second=round(self.n / seconds, 1) if seconds else 0.0,
        )

    def _stopped(self) -> bool:
        return self._last is not None and self.n >= self._last

    def differs(self, step: int, what: str, logged: str, found: str) -> None:
        """Note a difference; the first one counts."""
        if self.difference is None:
            self.difference = Difference(step, what, logged, found, self.reader.line)

    def _change(self) -> None:
        """Let the cartridges join and leave that did so before the next decision."""
        while self.reader.changes and self.difference is None:
            change = self.reader.changes.pop(0)
            if isinstance(change, Joined):
                self._start(change.cartridge, self._make(change.cartridge))
            elif isinstance(change, Left):
                del self.cartridges[change.cartridge], self.engines[change.cartridge]
                self._speller.use(self.cartridges)

    def _start(self, record: CartridgeRecord, cartridge: Cartridge) -> None:
        engine = cartridge.engine()
        try:
            engine.reset(self.reader.header.seed)
        except Exception as error:  # a seed of a log that was tampered with
            self.differs(
                self.n, f"{record.name} seed", str(self.reader.header.seed), f"{type(error).__name__}: {error}"
            )
        self.cartridges[record.name], self.engines[record.name] = cartridge, engine
        self._speller.use(self.cartridges)
        note = f"{record.name}: logged with version {record.version}, replayed with {cartridge.version}"
        if cartridge.version != record.version and note not in self.notes and len(self.notes) < NOTES:
            self.notes.append(note)
        if record.state is not None and self.difference is None and record.state != engine.state_hash():
            self.differs(self.n, f"{record.name} state", record.state, engine.state_hash())

    def _carry_out(self, record: DecisionRecord) -> None:
        """Carry out and verify a decision, unless that was done already."""
        if self.n < record.n and self.difference is None:
            instruction = record.instruction.instruction()
            try:
                wrong = next(self._speller.contradictions(record, self.engines), None)
                self._apply(record, instruction)
            except Exception as error:  # an engine may choke on a log that was tampered with; that is a finding too
                self.differs(record.n, "error", repr(instruction), f"{type(error).__name__}: {error}")
            else:
                if wrong is not None:
                    self.differs(record.n, *wrong)
            self.n = self.n if self.difference else record.n

    def _apply(self, record: DecisionRecord, instruction: Instruction) -> None:
        """Let an engine take a logged instruction, and note where it differs from the log.

        An engine that acts outside is told the logged result and does nothing; where it failed then, nothing happened.
        """
        engine, cartridge = self.engines[record.cartridge], self.cartridges[record.cartridge]
        if record.held:
            pass  # nothing was done
        elif instruction != HALT_INSTRUCTION:
            refused, result = False, record.result
            try:
                if record.failed is not None:
                    if not cartridge.acts_outside:
                        self.differs(record.n, "failed", record.failed, "nothing that acts outside")
                    else:
                        engine.copy().recall(instruction, record.result)  # type: ignore[attr-defined]
                    refused = True
                elif cartridge.acts_outside:
                    engine.recall(instruction, record.result)  # type: ignore[attr-defined]
                else:
                    result = engine.apply(instruction)
            except IllegalInstructionError as error:
                refused, result = True, str(error)
            if refused != record.refused:
                self.differs(record.n, "legality", f"{instruction!r}: {record.result}", result)
            if result != record.result:
                self.differs(record.n, "result", record.result, result)
            if cartridge.acts_outside and not refused and (why := _misfit(instruction, cartridge)):
                self.differs(record.n, "arguments", repr(instruction), why)
        elif record.cartridge != next(iter(self.cartridges)):
            self.differs(record.n, "cartridge", record.cartridge, next(iter(self.cartridges)))
        if (state := engine.state_hash()) != record.state:
            self.differs(record.n, "state", record.state, state)

    def _compare(self, outcome: Outcome) -> None:
        """Hold the outcome against the engines."""
        for name, engine in self.engines.items():
            logged, found = outcome.summary.get(name), dict(engine.summary())
            if logged is None or logged.keys() != found.keys() or not all(same(logged[k], found[k]) for k in found):
                self.differs(self.n, f"{name} summary", "none" if logged is None else str(logged), str(found))
        if odd := [name for name in outcome.summary if name not in self.engines]:
            self.differs(self.n, "summary", odd[0], f"only {', '.join(self.engines)}")
        if outcome.ending is Ending.RULES:
            told = ended(self.engines)
            if told != outcome.detail:
                self.differs(self.n, "ending", outcome.detail or outcome.ending, told or "the session may go on")

    def _verdict(self) -> tuple[Verdict, str]:
        damage, outcome, key = self.reader.damage, self.reader.outcome, self.reader.about_key
        key = key and f"; {key}"
        whole = f"{self.n} whole decision{' verifies' if self.n == 1 else 's verify'}"
        if self.difference is not None:
            return Verdict.DIFFERENT, f"different: {self.difference} (line {self.difference.line}); before that {whole}"
        if damage is not None:
            return Verdict.DAMAGED, f"damaged: {whole}, then {damage}"
        if outcome is not None:
            detail = f" ({outcome.detail})" if outcome.detail else ""
            return Verdict.VERIFIED, f"verified: {whole} to the end: {outcome.ending}{detail}{key}"
        if not self._over:
            return Verdict.STOPPED, f"stopped as asked: {whole}{key}"
        return Verdict.UNFINISHED, f"unfinished: {whole}, and no outcome follows: killed, or its end was cut off{key}"


def _misfit(instruction: Instruction, cartridge: Cartridge) -> str:
    """Return why the arguments of an instruction do not fit its opcode; "" where they do."""
    opcode = next((each for each in cartridge.opcodes if each.method == instruction.method), None)
    if opcode is None:
        return f"no opcode {instruction.method!r}"
    try:
        made = opcode.from_arguments(instruction.arguments).instruction(cartridge.name)
    except OpcodeError as error:
        return str(error)
    return "" if made == instruction else repr(made)


def replay(
    path: str | Path, make_cartridge: MakeCartridge, *, last: int | None = None, key: Key | None = None
) -> ReplayReport:
    """Play a whole log again and return what was found; with the key of a keyed log, hold every line against it.

    Raises LogError when there is no header to start from, and whatever `make_cartridge` raises.
    """
    with LogReader(path, key) as reader:
        run = Replay(reader, make_cartridge, last=last)
        for _ in run:
            pass
        return run.report()
