"""Keeps the rows of a decision's choosing steps until it is known which were on the way. Knows no model and no file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dispatch.log.ledger import ledger_step
from dispatch.log.objects import LedgerStep
from kernel.memory.rows import Row, Watch

LARGEST = 1 << 26
"""Bytes of rows that are kept; a decision that reads more has no ledger."""


class RowKeeper:
    """Keeps copies of rows, since the next pass overwrites them; its memory is used again by the next decision.

    Args:
        pieces: exact bytes of every id.
        largest: bytes that the rows of one decision may take.
    """

    def __init__(self, pieces: Sequence[bytes], largest: int = LARGEST) -> None:
        self._pieces = pieces
        self._most = largest // (4 * max(len(pieces), 1))
        self._rows: list[Row] = []
        self._kept: list[tuple[tuple[int, ...], NDArray[np.int32], float]] = []
        self._whole = True

    def start(self) -> Watch:
        """Forget the last decision and return what watches the next one."""
        self._kept, self._whole = [], True
        return self._keep

    def ledger(self, ids: Sequence[int]) -> tuple[LedgerStep, ...]:
        """Return the choosing steps on the way to an opcode, or nothing when there were too many rows to keep.

        Args:
            ids: of the opcode that was chosen.
        """
        if not self._whole:
            return ()
        ids = tuple(ids)
        found: dict[int, LedgerStep] = {}
        for (path, legal, normaliser), row in zip(self._kept, self._rows, strict=False):
            at = len(path)
            if at < len(ids) and path == ids[:at] and at not in found:
                found[at] = ledger_step(at, row, normaliser, legal, ids[at], self._pieces.__getitem__)
        return tuple(found[at] for at in sorted(found))

    def _keep(self, path: tuple[int, ...], legal: NDArray[np.int32], row: Row, normaliser: float) -> None:
        count = len(self._kept)
        self._whole = self._whole and count < self._most
        if not self._whole:
            return
        if count == len(self._rows):
            self._rows.append(np.empty_like(row))
        self._rows[count][:] = row
        self._kept.append((path, legal, normaliser))
