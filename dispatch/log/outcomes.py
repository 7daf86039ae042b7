"""Holds what a log says of how a decision ended against the rest of its line: nothing was done, settled, agreed to."""

from __future__ import annotations

import math
from collections.abc import Collection

from dispatch.log.encoding import shortly
from dispatch.log.records import Corrected, DecisionRecord, Unchosen

NONE = "none"
"""The answer of a correction that says that nothing was to be done."""


def check_outcome(record: DecisionRecord, state: str | None) -> None:
    """Raise ValueError where the outcome of a decision contradicts its other fields.

    Args:
        state: hash of the cartridge's engine before the decision, where it is known.
    """
    outcome = record.outcome
    if record.held:
        if record.refused or record.result:
            raise ValueError("result: nothing comes of what was not done")
        if state not in (None, record.state):
            raise ValueError(f"state: {shortly(record.state)}, and nothing was done at {shortly(state)}")
    if (record.close is not None) != (outcome is Unchosen.UNSURE):
        raise ValueError(f"close: goes with the outcome {Unchosen.UNSURE.value!r}")
    if record.settled is not None and outcome is not Unchosen.UNSURE:
        raise ValueError(f"settled: goes with the outcome {Unchosen.UNSURE.value!r}")
    if record.confirmed is not None and outcome is not None and not record.settled:
        raise ValueError(f"confirmed: nobody is asked to agree after {outcome.value!r}")
    if outcome is Unchosen.NOT_LEGAL and record.preferred is None:
        raise ValueError("preferred: missing, and it was not legal")
    if record.close is not None:
        _check_close(record, record.close)


def check_corrected(record: Corrected, last: DecisionRecord | None, names: Collection[str]) -> None:
    """Raise ValueError where a correction is of no decision above, or its answer contradicts its instruction.

    Args:
        names: of the cartridges that take part.
    """
    if last is None or record.decision > last.n:
        raise ValueError(f"decision: {record.decision}, and {0 if last is None else last.n} stand above")
    if (record.instruction is not None) != (record.answer not in (None, NONE)):
        raise ValueError(f"instruction: goes with an answer that is a command, not with {shortly(record.answer)}")
    if record.instruction is not None and record.instruction.cartridge not in ("", *names):
        raise ValueError(f"instruction.cartridge: {shortly(record.instruction.cartridge)} does not take part")


def _check_close(record: DecisionRecord, close: tuple[str, ...]) -> None:
    """Hold the two between which it was unsure against the scores, and what was taken against the two."""
    scores = {row.text: row.score for row in record.legal or ()}
    known = sorted((s for s in scores.values() if s is not None and not math.isnan(s)), reverse=True)[:2]
    if known and [scores.get(text) for text in close] != known:
        raise ValueError(f"close: {shortly(close)} are not the two best")
    taken = record.taken
    if taken is not None and taken.text not in (close if record.settled else close[:1]):
        raise ValueError(f"chosen: {shortly(taken.text)} is none of {shortly(close)}")
