"""The numbers of every decision, filtered and sorted with numpy: for logs of any length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dispatch.inspector.columns import KINDS, Columns, Filter


class QuickColumns(Columns):
    """The same as `Columns`, many times as fast; one thread may append while others look."""

    def select(self, by: Filter) -> Sequence[int]:
        """Return the numbers of the decisions that a filter lets through, ascending."""
        count = self.count
        keep = np.ones(count, np.bool_)
        if by.margin_below is not None:
            keep &= self._column("margin", count) < by.margin_below
        if by.ms_above is not None:
            keep &= self._column("ms", count) > by.ms_above
        if by.flags is not None:
            keep &= (self._column("flags", count) & np.uint16(by.flags & 0xFFFF)) != 0
        for name, wanted in zip(("cartridge", "outcome"), self._wanted(by), strict=True):
            if wanted is not None:
                keep &= self._column(name, count) == wanted
        found: list[int] = (np.flatnonzero(keep) + 1).tolist()
        return found

    def least(self, after: int | None) -> tuple[int, float, int] | None:
        """Return (number, margin, rank from 1) of the least confident decision, or of the next one behind `after`."""
        margins = self._column("margin", self.count)
        usable = np.isfinite(margins)
        known = after is not None and 1 <= after <= len(margins) and bool(usable[after - 1])
        order = np.argsort(np.where(usable, margins, np.inf), kind="stable")[: int(usable.sum())]
        rank = int(np.flatnonzero(order == (after or 0) - 1)[0]) + 1 if known else 0
        if rank >= len(order):
            return None
        return int(order[rank]) + 1, float(margins[order[rank]]), rank + 1

    def slow_ms(self) -> float | None:
        """Return the time that one decision in a hundred is above; None where none is known."""
        known = self._column("ms", self.count)
        known = known[~np.isnan(known)]
        return float(np.quantile(known, 0.99)) if len(known) else None

    def counts(self, flags: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Return how many decisions have each flag."""
        found = self._column("flags", self.count)
        return {name: int(((found & np.uint16(flag)) != 0).sum()) for name, flag in flags}

    def _column(self, name: str, count: int) -> NDArray[Any]:
        """Return a column as an array over the same memory."""
        return np.frombuffer(self._arrays[name], np.dtype(KINDS[name]))[:count]
