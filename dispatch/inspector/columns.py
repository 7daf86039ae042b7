"""The numbers of every decision that the strip and the filters need, as growing arrays: some 40 bytes a decision."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dispatch.inspector.jsonable import Json, number
from dispatch.inspector.lines import Glance

KINDS: dict[str, Any] = {
    "margin": np.float32,
    "ms": np.float32,
    "at_ms": np.float32,
    "flags": np.uint16,
    "cartridge": np.uint8,
    "outcome": np.uint8,
    "offset": np.uint64,
    "length": np.uint32,
    "keep": np.uint32,
}
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
        self._arrays = {name: np.empty(1024, kind) for name, kind in KINDS.items()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column, as long as `count`."""
        return self._arrays[name][: self.count]

    def extend(self, glances: Sequence[Glance], places: Sequence[tuple[int, int]]) -> None:
        """Append decisions and where their lines stand: (offset, length), in bytes."""
        start, end = self.count, self.count + len(glances)
        size = len(self._arrays["margin"])
        if end > size:
            size = max(end, 2 * size)
            grown = {name: np.empty(size, kind) for name, kind in KINDS.items()}
            for name, array in self._arrays.items():
                grown[name][:start] = array[:start]
            self._arrays = grown
        for name, values in self._values(glances).items():
            self._arrays[name][start:end] = values
        self._arrays["offset"][start:end] = [offset for offset, _ in places]
        self._arrays["length"][start:end] = [length for _, length in places]
        self.count = end

    def correct(self, glances: Sequence[Glance]) -> None:
        """Put values that are known for certain in place of those at a glance; of decisions that follow each other."""
        if glances and glances[-1].n <= self.count:
            start = glances[0].n - 1
            for name, values in self._values(glances).items():
                self._arrays[name][start : start + len(glances)] = values

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
        columns = (self._arrays[name][start - 1 : count] for name in SHOWN)
        return head + b"".join(column.astype(column.dtype.newbyteorder("<")).tobytes() for column in columns)

    def told(self, start: int, most: int) -> Json:
        """Return the same as JSON, of at most so many decisions from `start` on."""
        end = min(self.count, start - 1 + most)
        columns = {name: self._arrays[name][start - 1 : end].tolist() for name in SHOWN}
        for name in ("margin", "ms", "at_ms"):
            columns[name] = [number(round(value, 6)) for value in columns[name]]
        return {"from": start, "count": max(0, end + 1 - start), "decisions": self.count, **columns}

    def names(self) -> Json:
        """Return the names that the columns number."""
        return {"cartridges": list(self.cartridges), "outcomes": list(self.outcomes)}

    def select(self, by: Filter) -> NDArray[np.intp]:
        """Return the numbers of the decisions that a filter lets through, ascending."""
        keep = np.ones(self.count, np.bool_)
        if by.margin_below is not None:
            keep &= self["margin"] < by.margin_below
        if by.ms_above is not None:
            keep &= self["ms"] > by.ms_above
        if by.flags is not None:
            keep &= (self["flags"] & np.uint16(by.flags & 0xFFFF)) != 0
        for name, wanted, known, first in (
            ("cartridge", by.cartridge, self.cartridges, 0),
            ("outcome", by.outcome, self.outcomes, 1),
        ):
            if wanted is not None:
                keep &= self[name] == (known.index(wanted) + first if wanted in known else BEYOND)
        return np.flatnonzero(keep) + 1

    def least(self, after: int | None) -> tuple[int, float, int] | None:
        """Return (number, margin, rank from 1) of the least confident decision, or of the next one behind `after`.

        Decisions without a margin or without a rival are in no order. Ties go by number.
        """
        margins = self["margin"]
        usable = np.isfinite(margins)
        known = after is not None and 1 <= after <= len(margins) and bool(usable[after - 1])
        order = np.argsort(np.where(usable, margins, np.inf), kind="stable")[: int(usable.sum())]
        rank = int(np.flatnonzero(order == (after or 0) - 1)[0]) + 1 if known else 0
        if rank >= len(order):
            return None
        return int(order[rank]) + 1, float(margins[order[rank]]), rank + 1

    def slow_ms(self) -> float | None:
        """Return the time that one decision in a hundred is above; None where none is known."""
        known = self["ms"][~np.isnan(self["ms"])]
        return float(np.quantile(known, 0.99)) if len(known) else None

    def counts(self, flags: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Return how many decisions have each flag."""
        return {name: int(((self["flags"] & np.uint16(flag)) != 0).sum()) for name, flag in flags}


def _number_of(name: str, known: list[str]) -> int:
    """Return the number of a name, a new one for a new name; BEYOND where there are too many."""
    try:
        return known.index(name)
    except ValueError:
        if len(known) < BEYOND:
            known.append(name)
        return min(len(known) - 1, BEYOND) if name in known else BEYOND
