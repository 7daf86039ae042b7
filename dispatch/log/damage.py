"""The kinds of damage that a log can have, and the diagnosis of a line whose checksum does not fit.

The checksum only shows that a line is not the one that belongs there. The decision's number in the line then tells a
changed line from one before which lines are missing, from a repeated one and from a moved one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dispatch.log.encoding import decode, link, unseal

MAX_LINE = 1 << 24
"""Longer lines (16 MiB) are neither written nor read: a file without newlines must not fill the memory."""


class Fault(enum.StrEnum):
    """A way in which a log is damaged."""

    CUT = "cut"
    """The file ends in the middle of a line."""
    CHANGED = "changed"
    """A line is not what was written."""
    MISSING = "missing"
    """Lines are gone."""
    REPEATED = "repeated"
    """A line stands there again."""
    MOVED = "moved"
    """Lines stand in another order."""
    NULS = "nuls"
    """A block of NUL bytes, as a power cut leaves it."""
    TRAILING = "trailing"
    """Something follows the outcome."""
    INVALID = "invalid"
    """The line is as it was written, but it is no record of this format, or its fields contradict each other."""
    FORGED = "forged"
    """The checksums fit and the key does not: somebody without the key wrote the line."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a log stops being good: the line of the file, the decision that belongs there, and what is wrong.

    >>> print(Damage(line=59, step=58, fault=Fault.CUT, detail="the file ends inside the line"))
    line 59 (decision 58): cut: the file ends inside the line
    """

    line: int
    step: int
    fault: Fault
    detail: str

    def __str__(self) -> str:
        return f"line {self.line} (decision {self.step}): {self.fault}: {self.detail}"


def diagnose(line: bytes, before: bytes, due: int, chain: str, rest: Iterable[tuple[int, bytes]]) -> tuple[Fault, str]:
    """Return what is wrong with a line, and a few words on it.

    Args:
        line: as it stands in the file, newline included where there is one.
        before: the good line before it, without newline.
        due: number of the decision that belongs there.
        chain: chain value of the line before.
        rest: number and bytes of the lines that follow; looked at only when a later decision stands here.
    """
    bare = line.rstrip(b"\r\n")
    parts = unseal(bare)
    slot = _slot(parts[0]) if parts else None
    if nuls := line.count(0):
        return Fault.NULS, f"{nuls} NUL bytes"
    if not line.endswith(b"\n") and slot is None:
        long = len(line) >= MAX_LINE
        return Fault.CUT, f"no end within {MAX_LINE} bytes" if long else "the file ends inside it"
    if bare == before:
        return Fault.REPEATED, "the line before stands there again"
    if slot is None:
        return Fault.CHANGED, "it cannot be read any more" if parts else "it is no line of a log"
    if slot < due:
        return Fault.REPEATED, f"decision {slot} stands there again"
    if slot == due:
        return Fault.CHANGED, "its checksum does not fit"
    for at, other in rest:
        moved = unseal(other.rstrip(b"\r\n"))
        if moved and link(chain, moved[0]) == moved[1]:
            return Fault.MOVED, f"decision {slot} stands there; {due} is on line {at}"
    gone = f"decision {due} is" if slot == due + 1 else f"decisions {due} to {slot - 1} are"
    return Fault.MISSING, f"{gone} gone"


def _slot(body: bytes) -> int | None:
    """Return the number of the decision in whose place the line belongs; the outcome comes after the last one."""
    try:
        data: dict[str, Any] = decode(body)
    except ValueError:
        return None
    above = data.get("decisions", data.get("n") if data.get("event") == "resumed" else None)
    n = above + 1 if isinstance(above, int) else data.get("n", 0)
    return n if isinstance(n, int) else None
