"""Reads what people corrected out of session logs: a request, what was chosen, and what would have been right."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from dispatch.log.outcomes import NONE
from dispatch.log.reader import LogReader
from dispatch.log.records import Corrected
from kernel.opcode import Instruction


@dataclass(frozen=True)
class Correction:
    """A request that was answered wrongly.

    Attributes:
        path, n: the log and the number of the decision.
        request: what a person asked for.
        chosen: what was best of what was legal; carried out, unless the decision was held back.
        held: whether nothing was done.
        answer: what would have been right, in words; "" where nothing was to be done, None where that was not said.
        instruction: the same as an instruction, where it is one.
    """

    path: str
    n: int
    request: str
    chosen: Instruction
    held: bool
    answer: str | None = None
    instruction: Instruction | None = None


def corrections(path: str | Path) -> list[Correction]:
    """Return the corrections of a log up to its damage, in the order of the decisions; the last of each decision.

    Decisions without a request, and those whose request was redacted, are left out. Raises LogError without a header.
    """
    asked: dict[int, Correction] = {}
    found: dict[int, Corrected] = {}
    with LogReader(path) as reader:
        for record in reader:
            found |= _said(reader)
            if record.request is not None:
                chosen = record.instruction.instruction()
                asked[record.n] = Correction(str(path), record.n, record.request, chosen, record.held)
        found |= _said(reader)
    return [_answered(asked[n], found[n]) for n in sorted(found) if n in asked]


def _said(reader: LogReader) -> dict[int, Corrected]:
    return {each.decision: each for each in reader.changes if isinstance(each, Corrected)}


def _answered(asked: Correction, said: Corrected) -> Correction:
    instruction = None if said.instruction is None else said.instruction.instruction()
    return replace(asked, answer="" if said.answer == NONE else said.answer, instruction=instruction)
