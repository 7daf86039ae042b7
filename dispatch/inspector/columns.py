"""The numbers of every decision that the strip and the filters need, as growing arrays: some 40 bytes a decision.

Plain Python, which does for the sessions of a browser's tab; `quick.py` has the same for logs of any length.
"""

from __future__ import annotations

import math
import struct
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dispatch.inspector.jsonable import Json, number
from dispatch.inspector.lines import Glance

KINDS = {
    "margin": "f",
    "ms": "f",
    "at_ms": "f",
    "flags": "H",
    "cartridge": "B",
    "outcome": "B",
    "offset": "Q",
    "length": "I",
    "keep": "I",
}
"""Columns and their types, as the standard library's `array` names them: 4, 2, 1, 8 and 4 bytes."""
SHOWN = ("margin", "ms", "at_ms", "flags", "cartridge", "outcome")
"""The columns of the strip, in this order."""
MAGIC = 0x5254534B
"""`KSTR`, as the first number of a strip."""
BEYOND = 255
"""Stands for a name behind the first 255."""


@dataclass(frozen=True)
class Filter:
    """What decisions of a list have to have; None asks for nothing."""

    margin_below: float | None = None
    ms_above: float | None = None
    cartridge: str | None = None
    outcome: str | None = None
    flags: int | None = None


class Columns:
    """The numbers of the decisions read so far, decision n at place n - 1. One thread appends, others read.

    Attributes:
        count: how many decisions there are; it grows after their values are in place.
        cartridges, outcomes: names by their number in the columns.
    """

    def __init__(self) -> None:
        self.count = 0
        self.cartridges: list[str] = []
        self.outcomes: list[str] = []
        self._arrays = _empty(1024)

    def __getitem__(self, name: str) -> memoryview[Any]:
        """Return a column, as long as `count`, without copying it."""
        return memoryview(self._arrays[name])[: self.count]

    def extend(self, glances: Sequence[Glance], places: Sequence[tuple[int, int]]) -> None:
        """Append decisions and where their lines stand: (offset, length), in bytes."""
        start, end = self.count, self.count + len(glances)
        size = len(self._arrays["margin"])
        if end > size:
            size = max(end, 2 * size)
            grown = _empty(size)  # an array that others look at is never made longer in place
            for name, column in self._arrays.items():
                grown[name][:start] = column[:start]
            self._arrays = grown
        for name, values in self._values(glances).items():
            self._put(name, start, values)
        self._put("offset", start, [offset for offset, _ in places])
        self._put("length", start, [length for _, length in places])
        self.count = end

    def correct(self, glances: Sequence[Glance]) -> None:
        """Put values that are known for certain in place of those at a glance; of decisions that follow each other."""
        if glances and glances[-1].n <= self.count:
            start = glances[0].n - 1
            for name, values in self._values(glances).items():
                self._put(name, start, values)

    def _put(self, name: str, start: int, values: list[Any]) -> None:
        self._arrays[name][start : start + len(values)] = array(KINDS[name], values)

    def _values(self, glances: Sequence[Glance]) -> dict[str, list[Any]]:
        found = {name: [getattr(each, name) for each in glances] for name in ("margin", "ms", "at_ms", "flags", "keep")}
        found["cartridge"] = [_number_of(each.cartridge, self.cartridges) for each in glances]
        found["outcome"] = [0 if e.outcome is None else _number_of(e.outcome, self.outcomes) + 1 for e in glances]
        return {**found, "outcome": [min(each, BEYOND) for each in found["outcome"]]}

    def strip(self, generation: int, start: int, *, complete: bool, most: int | None = None) -> bytes:
        """Return the strip from decision `start` on, of at most so many decisions; docs/inspector.md has its form."""
        count = self.count if most is None else min(most, self.count)
        start = min(max(start, 1), count + 1)
        head = struct.pack("<8I", MAGIC, 1, generation, start, count + 1 - start, count, complete, 0)
        columns = [self._arrays[name][start - 1 : count] for name in SHOWN]
        if sys.byteorder == "big":
            for column in columns:
                column.byteswap()
        return head + b"".join(column.tobytes() for column in columns)

    def told(self, start: int, most: int) -> Json:
        """Return the same as JSON, of at most so many decisions from `start` on."""
        end = min(self.count, start - 1 + most)
        columns: dict[str, list[Any]] = {name: self._arrays[name][start - 1 : end].tolist() for name in SHOWN}
        for name in ("margin", "ms", "at_ms"):
            columns[name] = [number(round(value, 6)) for value in columns[name]]
        return {"from": start, "count": max(0, end + 1 - start), "decisions": self.count, **columns}

    def names(self) -> Json:
        """Return the names that the columns number."""
        return {"cartridges": list(self.cartridges), "outcomes": list(self.outcomes)}

    def select(self, by: Filter) -> Sequence[int]:
        """Return the numbers of the decisions that a filter lets through, ascending."""
        cartridge, outcome = self._wanted(by)
        flags = None if by.flags is None else by.flags & 0xFFFF
        rows = zip(*(self[name] for name in ("margin", "ms", "flags", "cartridge", "outcome")), strict=False)
        return [
            n
            for n, (margin, ms, flag, of, end) in enumerate(rows, 1)
            if (by.margin_below is None or margin < by.margin_below)
            and (by.ms_above is None or ms > by.ms_above)
            and (flags is None or flag & flags)
            and cartridge in (None, of)
            and outcome in (None, end)
        ]

    def _wanted(self, by: Filter) -> tuple[int | None, int | None]:
        """Return the numbers of the cartridge and of the outcome that a filter names; BEYOND is nobody's."""
        named = ((by.cartridge, self.cartridges, 0), (by.outcome, self.outcomes, 1))
        cartridge, outcome = (
            None if wanted is None else known.index(wanted) + first if wanted in known else BEYOND
            for wanted, known, first in named
        )
        return cartridge, outcome

    def least(self, after: int | None) -> tuple[int, float, int] | None:
        """Return (number, margin, rank from 1) of the least confident decision, or of the next one behind `after`.

        Decisions without a margin or without a rival are in no order. Ties go by number.
        """
        margins = self["margin"]
        order = sorted((margin, n) for n, margin in enumerate(margins, 1) if math.isfinite(margin))
        known = after is not None and 1 <= after <= len(margins) and math.isfinite(margins[after - 1])
        rank = bisect_right(order, (margins[after - 1], after)) if known and after is not None else 0
        if rank >= len(order):
            return None
        margin, n = order[rank]
        return n, margin, rank + 1

    def slow_ms(self) -> float | None:
        """Return the time that one decision in a hundred is above; None where none is known."""
        known = sorted(ms for ms in self["ms"] if not math.isnan(ms))
        if not known:
            return None
        place = 0.99 * (len(known) - 1)
        low, high = float(known[int(place)]), float(known[math.ceil(place)])
        return low + (high - low) * (place - int(place))

    def counts(self, flags: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Return how many decisions have each flag."""
        found = Counter(self["flags"])
        return {name: sum(many for each, many in found.items() if each & flag) for name, flag in flags}


def _empty(size: int) -> dict[str, array[Any]]:
    return {name: array(kind, bytes(size * array(kind).itemsize)) for name, kind in KINDS.items()}


def _number_of(name: str, known: list[str]) -> int:
    """Return the number of a name, a new one for a new name; BEYOND where there are too many."""
    try:
        return known.index(name)
    except ValueError:
        if len(known) < BEYOND:
            known.append(name)
        return min(len(known) - 1, BEYOND) if name in known else BEYOND
