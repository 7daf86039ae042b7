"""Collects logit rows during a search and keeps those on the chosen path for the log's ledger.

The ledger of one choosing step holds the token taken, its strongest rivals, and the strongest tokens that the mask
removed. Only when the search is over is it known which of its rows stand on the path to the chosen opcode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dispatch.log.objects import EACH, LedgerStep, TokenRow
from kernel.memory.rows import Row, Watch

ROWS = 11
"""Rows of a step: the token taken and ten others."""
LARGEST = 1 << 26
"""Bytes of logit rows that are kept of one decision; a decision that reads more has no ledger."""


class LedgerBuilder:
    """Copies the logit rows that a decision reads, then makes the ledger of those on the path that was chosen.

    The next pass of the model overwrites its rows, so they are copied; the next decision reuses the memory of
    the copies.

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
        """Forget the last decision and return the function that is called with every row of the next one."""
        self._kept, self._whole = [], True
        return self._keep

    def ledger(self, ids: Sequence[int]) -> tuple[LedgerStep, ...]:
        """Return the choosing steps on the path to an opcode, or nothing when there were too many rows to keep.

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


def ledger_step(
    at: int,
    row: NDArray[np.float32],
    normaliser: float,
    legal: NDArray[np.integer],
    taken: int,
    piece: Callable[[int], bytes],
) -> LedgerStep:
    """Return the ledger of a step.

    Args:
        at: place of the token in the decision's ids.
        row: float32, shape (n_vocab,); raw scores. What is not finite counts as impossible.
        normaliser: log(sum(exp(row))), so that log-probabilities are those of the full vocabulary.
        legal: ids that the mask let through, in any order.
        taken: the id that was chosen; one of `legal`, unless nothing held the model.
        piece: exact bytes of an id.
    Returns:
        The step, its rows by log-probability, ties by id: the token taken, the two strongest others that were legal,
        the two strongest that were removed, and the strongest of the rest.
    """
    allowed = np.zeros(len(row), np.bool_)
    allowed[legal] = True
    legal = np.sort(legal)
    strongest = _top(row, 2 * ROWS)
    removed = [i for i in strongest if not allowed[i] and i != taken]
    if len(removed) < EACH:  # the strongest are all legal: look below them
        masked = row.copy()
        masked[allowed] = -np.inf
        removed = [i for i in _top(masked, EACH + 1) if not allowed[i] and i != taken]
    rivals = [int(legal[i]) for i in _top(row[legal], EACH + 1)]
    ids = [taken, *[i for i in rivals if i != taken][:EACH], *removed[:EACH]]
    ids += [i for i in strongest if i not in ids][: ROWS - len(ids)]
    values = dict(zip(ids, (_finite(row[ids]).astype(np.float64) - normaliser).tolist(), strict=True))
    ids.sort(key=lambda i: (-values[i], i))
    ranks = {i: rank for rank, i in enumerate(strongest, 1)}
    ranks |= {i: _rank(row, i) for i in ids if i not in ranks}
    mass = float(np.exp(_finite(row[legal]).astype(np.float64) - normaliser).sum())
    return LedgerStep(
        at=at,
        legal=int(allowed.sum()),
        mass=round(mass, 6),
        rows=tuple(TokenRow.of(i, piece(i), round(values[i], 6), legal=bool(allowed[i]), rank=ranks[i]) for i in ids),
    )


def _rank(row: NDArray[np.float32], i: int) -> int:
    """Return the place of an id among all by value, largest first, from 1, ties by id."""
    row = _finite(row)
    return 1 + int((row > row[i]).sum()) + int((row[:i] == row[i]).sum())


def _top(row: NDArray[np.float32], count: int) -> list[int]:
    """Return the places of the `count` largest values, largest first, ties by place; fewer when the row is shorter."""
    row = _finite(row)
    count = min(count, len(row))
    if count == 0:
        return []
    bound = np.partition(row, len(row) - count)[len(row) - count]
    above, equal = np.flatnonzero(row > bound), np.flatnonzero(row == bound)
    found = np.concatenate([above, equal[: count - len(above)]])
    order = np.lexsort((found, -row[found].astype(np.float64)))
    return [int(i) for i in found[order]]


def _finite(row: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the row with what is not finite at minus infinity; the row itself when all is finite."""
    return row if np.isfinite(row).all() else np.where(np.isfinite(row), row, np.float32(-np.inf))
