"""Compares two logs: the first decision at which the sessions part, and why. No engine is run."""

from __future__ import annotations

import math
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Header
from kernel.choose.kinds import TOLERANCE

Why = Literal["header", "state", "legal set", "scores", "rule", "request", "outcome", "player", "length"]


class Parting(BaseModel):
    """Where two sessions part. Decision 0 is the start."""

    model_config = ConfigDict(frozen=True)

    n: int
    why: Why
    detail: str
    a: str
    """What the first session did there."""
    b: str
    """What the second one did."""


class SessionDiff(BaseModel):
    """Two sessions compared."""

    model_config = ConfigDict(frozen=True)

    same: int
    """So many leading decisions took the same instruction to the same state."""
    parting: Parting | None
    """None when both are the same to the end."""
    headers: dict[str, tuple[Any, Any]]
    """Fields of the headers that differ; the time of the start is left out."""
    scores_from: int | None
    """The first decision with the same choice whose log-probabilities differ by more than the tolerance."""
    damages: tuple[str, ...]


def diff(a: str | Path, b: str | Path, *, tolerance: float = TOLERANCE) -> SessionDiff:
    """Compare two logs decision by decision, up to the first that differs; raises LogError without a header.

    Args:
        a: one log.
        b: another.
        tolerance: largest difference of a log-probability that counts as equal.
    """
    with LogReader(a) as first, LogReader(b) as second:
        headers = _headers(first.header, second.header)
        parting = _start(headers)
        same, scores_from = 0, None
        if parting is None:
            for one, other in zip_longest(first, second):
                parting = _compare(one, other, first, second, tolerance)
                if parting is not None:
                    break
                same += 1
                if scores_from is None and _apart(one, other) > tolerance:
                    scores_from = same
        damages = tuple(f"{reader.path}: {reader.damage}" for reader in (first, second) if reader.damage)
    return SessionDiff(same=same, parting=parting, headers=headers, scores_from=scores_from, damages=damages)


def _headers(a: Header, b: Header) -> dict[str, tuple[Any, Any]]:
    one, other = (h.model_dump(mode="json", by_alias=True, exclude={"started"}) for h in (a, b))
    keys = [*one, *(key for key in other if key not in one)]
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def _start(headers: dict[str, tuple[Any, Any]]) -> Parting | None:
    """Return a parting at the start, when the engines begin from different states."""
    for key, (a, b) in headers.items():
        # another version of the same cartridge, from the same state, is no parting
        states = [[(c["name"], c.get("state")) for c in side] for side in (a, b)] if key == "cartridges" else []
        if key == "seed" or (states and states[0] != states[1]):
            return Parting(n=0, why="header", detail=f"{key} differ", a=str(a), b=str(b))
    return None


def _compare(
    a: DecisionRecord | None, b: DecisionRecord | None, first: LogReader, second: LogReader, tolerance: float
) -> Parting | None:
    """Return the parting at this decision, or None when both did the same and came to the same state."""
    if a is None or b is None:
        n = a.n if a is not None else b.n if b is not None else 0
        return Parting(n=n, why="length", detail="one session ends before", a=_end(a, first), b=_end(b, second))
    if a.instruction == b.instruction and a.refused == b.refused and a.held == b.held:
        if a.state == b.state:
            return None
        detail = f"{a.instruction.instruction()!r} leads to different states"
        return Parting(n=a.n, why="state", detail=detail, a=f"{a.state} {a.result!r}", b=f"{b.state} {b.result!r}")
    why, detail = _reason(a, b, first.header, second.header, tolerance)
    return Parting(n=a.n, why=why, detail=detail, a=_did(a), b=_did(b))


def _reason(a: DecisionRecord, b: DecisionRecord, one: Header, other: Header, tolerance: float) -> tuple[Why, str]:
    """Return why two decisions in the same state differ."""
    texts = [{row.text for row in record.legal or ()} for record in (a, b)]
    if texts[0] != texts[1] and all(texts):
        only = [", ".join(map(repr, sorted(left - right)[:5])) or "nothing" for left, right in (texts, texts[::-1])]
        return "legal set", f"only the first may {only[0]}, only the second {only[1]}"
    if a.request != b.request:
        return "request", "a person asked for something else"
    if a.instruction == b.instruction and a.held != b.held:
        return "outcome", "one did it, the other nothing"
    rules = [record.rule or (header.rule.name if header.rule else "") for record, header in ((a, one), (b, other))]
    apart = _apart(a, b)
    if rules[0] != rules[1] or (one.rule != other.rule and apart <= tolerance):
        return "rule", f"{rules[0] or 'none'} against {rules[1] or 'none'}, scores differ by at most {apart:.3f}"
    if all(texts):
        return "scores", f"log-probabilities differ by up to {apart:.3f}"
    return "player", f"{one.player} against {other.player}, and no scores to compare"


def _apart(a: DecisionRecord, b: DecisionRecord) -> float:
    """Return the largest difference between the log-probabilities of the same opcode; 0 where there are none."""
    other = {row.text: row.logprob for row in b.legal or ()}
    return max((_gap(row.logprob, other.get(row.text)) for row in a.legal or ()), default=0.0)


def _gap(a: float | None, b: float | None) -> float:
    if a is None or b is None or a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0
    gap = abs(a - b)
    return math.inf if math.isnan(gap) else gap


def _did(record: DecisionRecord) -> str:
    margin = "" if record.margin is None else f", margin {record.margin:.3f}"
    held = "nothing, best was " if record.held else ""
    return f"{held}{record.instruction.instruction()!r}{margin}"


def _end(record: DecisionRecord | None, reader: LogReader) -> str:
    if record is not None:
        return _did(record)
    return f"ends: {reader.outcome.ending}" if reader.outcome else "ends without an outcome"
