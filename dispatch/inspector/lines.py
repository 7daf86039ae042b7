"""What the strip shows of a decision, found in its line without parsing it.

A line is some thousand bytes, most of them prompt ids and legal rows; to parse a hundred thousand of them takes many
seconds. In JSON a quote inside a text is escaped, so `,"margin":` never stands in a text, and the writer's order of the
fields is known. A field of the same name in an instruction's arguments could be taken for the decision's: therefore
whoever checks the log afterwards puts the values of the parsed record in place of these (`Columns.correct`).
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import NamedTuple

from dispatch.log.records import DecisionRecord
from kernel.choose.kinds import TOLERANCE, Stop

REFUSED, FAILED, FORCED, CLOSED, TOP, WISH, LOW, LEDGER, REQUEST = (1 << bit for bit in range(9))
"""Flags of a decision, as docs/inspector.md has them."""
NOTHING_KEPT = 0xFFFFFFFF
"""Stands for a decision without a logged prompt."""

TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
EVENT = re.compile(rb'\{"event":"(\w{1,40})"')
HEAD = re.compile(rb'\{"event":"decision","n":(\d{1,18}),"cartridge":(' + TEXT + rb")", re.DOTALL)
MIDDLE = re.compile(
    rb',"refused":(true|false)(,"failed":' + TEXT + rb')?(,"request":' + TEXT + rb")?"
    rb'(?:,"prompt":\{"keep":(\d{1,10}))?',
    re.DOTALL,
)
FIELD = re.compile(rb',"(margin|preferred_by|stop|model_ms|planner_ms|at_ms)":("[^"\\]{0,100}"|[-+.\deE]{1,40}|null)')
OUTCOME = re.compile(rb',"outcome":("[^"\\]{0,100}")')
ILLEGAL_TOP = re.compile(
    rb'"rows":\[\{"id":\d+,"(?:text|hex)":' + TEXT + rb',"logprob":[^,]{1,40},"legal":false', re.DOTALL
)


class Glance(NamedTuple):
    """What the strip and the filters need of a decision; NaN is not known."""

    n: int
    cartridge: str
    margin: float
    ms: float
    at_ms: float
    flags: int
    outcome: str | None
    keep: int


def glance(line: bytes) -> Glance | None:
    """Return what a decision's line says at a glance; None where it does not begin as one."""
    head = HEAD.match(line)
    if head is None:
        return None
    flags, keep = 0, NOTHING_KEPT
    middle = MIDDLE.search(line, head.end())
    if middle is not None:
        flags |= REFUSED * (middle[1] == b"true") | FAILED * (middle[2] is not None)
        flags |= REQUEST * (middle[3] is not None)
        keep = NOTHING_KEPT if middle[4] is None else min(int(middle[4]), NOTHING_KEPT)
    start = line.rfind(b',"margin":')
    start = line.rfind(b',"planner_ms":') if start < 0 else start
    start = head.end() if start < 0 else start
    ledger = line.find(b',"ledger":[', start)
    found = dict(FIELD.findall(line, start, len(line) if ledger < 0 else ledger))
    if ledger >= 0:
        flags |= LEDGER | TOP * (ILLEGAL_TOP.search(line, ledger) is not None)
    margin = _number(found.get(b"margin"))
    if found.get(b"margin") == b"null":
        margin = math.inf if b'"/margin":"inf"' in line[-4096:] else math.nan
    preferred_by = _number(found.get(b"preferred_by"))
    at = line.rfind(b',"outcome":"')
    outcome = None if at < head.end() else OUTCOME.match(line, at)
    ms = [_number(found[name]) for name in (b"model_ms", b"planner_ms") if name in found]
    flags |= _told(margin, preferred_by, found.get(b"stop", b"").strip(b'"').decode("ascii", "replace"))
    return Glance(
        n=int(head[1]),
        cartridge=_text(head[2]),
        margin=margin,
        ms=sum(ms) if ms else math.nan,
        at_ms=_number(found.get(b"at_ms")),
        flags=flags,
        outcome=None if outcome is None else _text(outcome[1]),
        keep=keep,
    )


def of_record(record: DecisionRecord) -> Glance:
    """Return the same of a parsed record."""
    margin = math.nan if record.margin is None else record.margin
    flags = REFUSED * record.refused | FAILED * (record.failed is not None) | REQUEST * (record.request is not None)
    if record.ledger:
        flags |= LEDGER | TOP * any(step.rows and not step.rows[0].legal for step in record.ledger)
    flags |= _told(margin, math.nan if record.preferred_by is None else record.preferred_by, record.stop or "")
    ms = [each for each in (record.model_ms, record.planner_ms) if each is not None]
    return Glance(
        n=record.n,
        cartridge=record.cartridge,
        margin=margin,
        ms=sum(ms) if ms else math.nan,
        at_ms=math.nan if record.at_ms is None else record.at_ms,
        flags=flags,
        outcome=outcome_of(record),
        keep=NOTHING_KEPT if record.prompt is None else min(record.prompt.keep, NOTHING_KEPT),
    )


def outcome_of(record: DecisionRecord) -> str | None:
    """Return how the decision ended where the log says so."""
    return None if record.outcome is None else str(record.outcome)


def _told(margin: float, preferred_by: float, stop: str) -> int:
    return (
        FORCED * (stop == Stop.FORCED)
        | CLOSED * (stop == Stop.CLOSED)
        | WISH * (preferred_by >= TOLERANCE)
        | LOW * (margin < TOLERANCE)
    )


def _number(text: bytes | None) -> float:
    try:
        return math.nan if text is None else float(text)
    except ValueError:
        return math.nan


@lru_cache(256)
def _text(quoted: bytes) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted.decode("utf-8", "replace")
