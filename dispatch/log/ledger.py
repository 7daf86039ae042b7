"""The ledger of one choosing step: the token taken, its strongest rivals, and what the mask removed. Knows no model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dispatch.log.objects import LedgerStep, TokenRow

ROWS = 11
"""The token taken and ten others."""
EACH = 2
"""At least so many others are legal, and so many removed, where there are that many."""


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
        taken: the id that was chosen; one of `legal`.
        piece: exact bytes of an id.
    Returns:
        The step, its rows by log-probability, ties by id: the token taken, the two strongest others that were legal,
        the two strongest that were removed, and the strongest of the rest.
    """
    allowed = np.zeros(len(row), np.bool_)
    allowed[legal] = True
    legal = np.sort(legal)
    strongest = _top(row, 2 * ROWS)
    removed = [i for i in strongest if not allowed[i]]
    if len(removed) < EACH:  # the strongest are all legal: look below them
        masked = row.copy()
        masked[allowed] = -np.inf
        removed = [i for i in _top(masked, EACH) if not allowed[i]]
    rivals = [int(legal[i]) for i in _top(row[legal], EACH + 1)]
    ids = [taken, *[i for i in rivals if i != taken][:EACH], *removed[:EACH]]
    ids += [i for i in strongest if i not in ids][: ROWS - len(ids)]
    values = dict(zip(ids, (_finite(row[ids]).astype(np.float64) - normaliser).tolist(), strict=True))
    ids.sort(key=lambda i: (-values[i], i))
    mass = float(np.exp(_finite(row[legal]).astype(np.float64) - normaliser).sum())
    return LedgerStep(
        at=at,
        legal=int(allowed.sum()),
        mass=round(mass, 6),
        rows=tuple(TokenRow.of(i, piece(i), round(values[i], 6), legal=bool(allowed[i])) for i in ids),
    )


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
