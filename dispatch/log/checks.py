"""Holds the fields of a log's lines against each other: what is promised, what is said twice, what lines add up to.

Everything here is known from the log alone; `replay.py` holds a log against the engines, `spelling.py` against the wire
form. Each check raises ValueError, with the field first.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Iterator
from datetime import datetime

from dispatch.log.encoding import shortly
from dispatch.log.objects import Delta, InstructionRecord, Offer, Record
from dispatch.log.outcomes import check_corrected, check_outcome
from dispatch.log.records import Corrected, DecisionRecord, Ending, Header, Joined, Left, Outcome, Resumed
from dispatch.log.scores import agree, check_ledger, check_scores
from dispatch.log.tally import Tally
from dispatch.wire.form import FORMS
from kernel.errors import did_you_mean
from kernel.opcode import HALT_INSTRUCTION

BY_MODEL = (
    "rule", "legal", "legal_count", "chosen", "margin", "legal_mass", "passes", "tokens_evaluated", "chosen_tokens",
    "forced_tokens", "stop",
)  # fmt: skip
"""What every decision has where the header names the model that chose; text and ids are not empty there."""
REMEMBERED = 64
"""A decision that repeats another one is at most so many behind it."""
DROPPED = ("request", "prompt", "nulls", "rotations")
"""What a redacted log has hashes of instead."""


@functools.cache
def promised(kind: type[Record]) -> tuple[str, ...]:
    """Return the fields that every object of a kind has in a log, although making one needs no value for them."""
    fields = kind.model_fields.items()
    return tuple(
        name for name, f in fields if not f.is_required() and f.get_default(call_default_factory=True) is not None
    )


def check_promised(record: Record, where: str = "") -> None:
    """Raise ValueError where a promised field is missing."""
    for name in promised(type(record)):
        if name not in record.model_fields_set:
            raise ValueError(f"{where}{type(record).model_fields[name].alias or name}: missing")
    for name, each in _inside(record):
        check_promised(each, f"{where}{name}.")


def _inside(record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the objects in a line that have promised fields."""
    if isinstance(record, Header) and record.rule is not None:
        yield "rule", record.rule
    if isinstance(record, DecisionRecord | Offer):
        yield "instruction", record.instruction
    if isinstance(record, DecisionRecord):
        yield from ((f"offered.{at}", offer) for at, offer in enumerate(record.offered or ()))


def check_header(header: Header) -> None:
    """Raise ValueError where a header contradicts itself."""
    check_promised(header)
    _check_time("started", header.started)
    names = [cartridge.name for cartridge in header.cartridges]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"cartridges: {shortly(names)} are not one or more, each once")
    if header.wire is not None and header.wire not in FORMS:
        raise ValueError(f"wire: no form {shortly(header.wire)}{did_you_mean(header.wire[:100], FORMS)}")
    if header.model is not None and header.rule is None:
        raise ValueError("rule: missing beside a model")
    for name, value in (header.rule.parameters if header.rule else {}).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"rule.parameters.{name[:100]}: {value} is not finite")


def _check_time(field: str, text: str) -> None:
    try:
        zone = datetime.fromisoformat(text).utcoffset()
    except ValueError:
        zone = None
    if zone is None:
        raise ValueError(f"{field}: {shortly(text)} is no time of ISO 8601 with its offset")


class Checks:
    """What the lines read so far say, held against the next one."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._names = {cartridge.name for cartridge in header.cartridges}
        self._tally = Tally()
        self._last: DecisionRecord | None = None
        self._stayed = self._repeats = False
        self._done: deque[tuple[InstructionRecord, str]] = deque(maxlen=REMEMBERED)
        self._at_ms = 0.0
        self._prompt = 0
        self._nulls = 0
        self._states: dict[str, str | None] = {c.name: c.state for c in header.cartridges}
        self._options = {c.name: c.options for c in header.cartridges}

    def take(self, record: DecisionRecord | Resumed | Joined | Left | Corrected | Outcome) -> None:
        """Take the next line; raises ValueError where it contradicts itself or the lines above."""
        check_promised(record)
        if self._halted and not isinstance(record, Outcome):
            raise ValueError(f"event: a {record.event} line after the session was halted")
        if isinstance(record, DecisionRecord):
            self._decision(record)
        elif isinstance(record, Resumed):
            _check_time("at", record.at)
        elif isinstance(record, Corrected):
            check_corrected(record, self._last, self._names)
        elif isinstance(record, Joined):
            name, options = record.cartridge.name, record.cartridge.options
            if name in self._names and (not options or options == self._options[name]):
                raise ValueError(f"cartridge.name: {shortly(name)} is there already, and has not changed")
            self._names.add(name)
            self._options[name] = options
            self._states[record.cartridge.name] = record.cartridge.state
        elif isinstance(record, Left):
            if record.cartridge not in self._names or len(self._names) == 1:
                raise ValueError(f"cartridge: {shortly(record.cartridge)} cannot leave {shortly(sorted(self._names))}")
            self._names.remove(record.cartridge)
            del self._states[record.cartridge], self._options[record.cartridge]
        else:
            self._outcome(record)

    @property
    def _halted(self) -> bool:
        last = self._last
        return last is not None and not last.held and last.instruction.instruction() == HALT_INSTRUCTION

    def _decision(self, record: DecisionRecord) -> None:
        instruction = _finite(record.instruction, "instruction")
        for at, offer in enumerate(record.offered or ()):
            _finite(offer.instruction, f"offered.{at}.instruction")
        halts = record.instruction.instruction() == HALT_INSTRUCTION
        if not halts and instruction.cartridge != record.cartridge and record.cartridge in self._names:
            raise ValueError(
                f"instruction.cartridge: {shortly(instruction.cartridge)} in a turn of {record.cartridge!r}"
            )
        if record.failed is not None and (not record.refused or record.result):
            raise ValueError("failed: such an instruction counts as refused and has no result")
        if halts and (record.refused or record.result):
            raise ValueError("result: nothing comes of the instruction that ends the session")
        check_outcome(record, self._states.get(record.cartridge))
        self._check_player(record)
        self._check_redacted(record)
        self._check_prompts(record)
        check_scores(record, self._header.rule)
        check_ledger(record)
        if record.at_ms is not None:
            if record.at_ms < self._at_ms:
                raise ValueError(f"at_ms: {record.at_ms} is before {self._at_ms}")
            self._at_ms = record.at_ms
        self._repeats = self._stayed and self._last is not None and record.instruction == self._last.instruction
        self._stayed = self._states.get(record.cartridge) == record.state
        done = (record.instruction, record.result)
        self._repeats = (self._repeats and self._stayed) or done in self._done
        self._done.append(done)
        self._states[record.cartridge] = record.state
        self._tally.add(record)
        self._last = record

    def _check_player(self, record: DecisionRecord) -> None:
        """Hold what was done against who did it."""
        header = self._header
        if header.player == "planner" and record.offered and record.instruction != record.offered[0].instruction:
            raise ValueError(
                f"instruction: {shortly(record.instruction.instruction())} is not the planner's first option"
            )
        if header.rule is not None and record.rule not in (None, header.rule.name):
            raise ValueError(f"rule: {shortly(record.rule)}, in a session of {shortly(header.rule.name)}")
        if header.model is None:
            return
        if lost := [name for name in BY_MODEL if getattr(record, name) is None]:
            raise ValueError(f"{lost[0]}: missing, although a model chose")
        if lost := [name for name in ("text", "ids") if not getattr(record, name)]:
            raise ValueError(f"{lost[0]}: empty, although a model chose")
        for at, row in enumerate(record.legal or ()):
            if row.logprob is None or row.score is None or row.probability is None:
                raise ValueError(f"legal.{at}: no logprob, score or probability, although a model chose")

    def _check_redacted(self, record: DecisionRecord) -> None:
        if self._header.redacted is None:
            if record.redacted is not None:
                raise ValueError("redacted: hashes in a log that is not redacted")
        elif shown := [name for name in DROPPED if getattr(record, name) is not None]:
            raise ValueError(f"{shown[0]}: in a redacted log")

    def _check_prompts(self, record: DecisionRecord) -> None:
        """Hold the differences of prompts against the lengths of what they differ from."""
        gave_nulls = bool(record.nulls) or any(name.startswith("null ") for name in record.redacted or {})
        if record.nulls_of is not None and (gave_nulls or record.nulls_of != self._nulls or not self._nulls):
            raise ValueError(f"nulls_of: null prompts of decision {record.nulls_of}, which has none")
        self._nulls = record.n if gave_nulls else self._nulls
        if record.prompt is None:
            if record.nulls or record.rotations:
                raise ValueError("prompt: missing beside null prompts or rotations")
            return
        self._prompt = _length("prompt", record.prompt, self._prompt)
        rotations = record.rotations or ()
        lengths = [self._prompt]
        lengths += [_length(f"rotations.{at}", each, self._prompt) for at, each in enumerate(rotations)]
        for at, null in enumerate(record.nulls or ()):
            if (null.of or 0) >= len(lengths):
                raise ValueError(f"nulls.{at}.of: {null.of}; there are {len(rotations)} rotations")
            _length(f"nulls.{at}", null, lengths[null.of or 0])

    def _outcome(self, record: Outcome) -> None:
        for name, logged in (record.totals or {}).items():
            found = self._tally.totals.get(name)
            if found is not None and not agree(logged, found):
                raise ValueError(f"totals.{name}: {logged}, the decisions add up to {found}")
        if record.seconds is not None and record.seconds + 0.001 < self._at_ms / 1000:
            raise ValueError(f"seconds: {record.seconds}, and the last decision was at {self._at_ms} ms")
        if self._halted != (record.ending is Ending.HALT):
            raise ValueError(
                f"ending: {record.ending}, and the last decision {'was' if self._halted else 'was not'} halt"
            )
        if record.ending is Ending.HELD and (self._last is None or not self._last.held):
            raise ValueError("ending: held, and the last decision was not")
        if record.ending is Ending.FAILED and (self._last is None or self._last.failed is None):
            raise ValueError("ending: failed, and the last decision did not")
        if record.ending is Ending.REPEAT and not self._repeats:
            raise ValueError("ending: repeat, and the last decision repeats none on a state that stayed")


def _finite(instruction: InstructionRecord, where: str) -> InstructionRecord:
    """Raise ValueError where an argument is a number that is not finite: no instruction has one."""
    try:
        instruction.instruction()
    except ValueError as error:
        raise ValueError(f"{where}.arguments: {error}") from error
    return instruction


def _length(field: str, delta: Delta, base: int) -> int:
    if delta.keep > base:
        raise ValueError(f"{field}.keep: keeps {delta.keep} ids of {base}")
    length = delta.keep + len(delta.new)
    if delta.lines is not None and (not all(delta.lines) or not 0 < sum(delta.lines) < length):
        raise ValueError(f"{field}.lines: {shortly(delta.lines)} ids and a question in {length} ids")
    return length
