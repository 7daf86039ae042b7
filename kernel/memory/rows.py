"""Reading a row of logits: log-probabilities of a few ids without a copy of the row. Knows no opcode, no model."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernel.errors import LogitsError

Row = NDArray[np.float32]

Watch = Callable[[tuple[int, ...], NDArray[np.int32], Row, float], None]
"""(ids of the opcode before this step, legal ids of the step, row, its normaliser): called for each row behind the
session's prompt in which something is chosen. The row is overwritten by the next pass: copy what is to stay."""


class RowReader:
    """Normalises rows of one vocabulary size; keeps one scratch row so that reading allocates nothing large."""

    def __init__(self, n_vocab: int) -> None:
        self._scratch = np.empty(n_vocab, np.float32)

    def normaliser(self, row: Row) -> float:
        """Return log(sum(exp(row))) over the whole vocabulary; NaN and infinite entries count as impossible.

        Raises:
            LogitsError: the row is constant (the runtime showed a buffer that nobody wrote) or has no finite value,
                or it is wider or narrower than the vocabulary.
        """
        if len(row) != len(self._scratch):
            raise LogitsError(f"a row of {len(row)} logits for a vocabulary of {len(self._scratch)} tokens")
        top = float(row.max())
        if not math.isfinite(top):
            row = np.where(np.isfinite(row), row, np.float32(-np.inf))
            top = float(row.max())
            if not math.isfinite(top):
                raise LogitsError(f"a row of {len(row)} logits has no finite value; the model or its runtime is broken")
        with np.errstate(over="ignore"):  # what is that far below the top is impossible
            np.subtract(row, np.float32(top), out=self._scratch)
        np.exp(self._scratch, out=self._scratch)
        total = float(self._scratch.sum())
        if total >= len(row) and float(row.min()) == top:
            raise LogitsError(
                f"all {len(row)} logits are {top!r}; the runtime shows a row that the model did not write"
            )
        return top + math.log(total)

    def log_probabilities(
        self, row: Row, ids: NDArray[np.int32], path: tuple[int, ...] = (), watch: Watch | None = None
    ) -> NDArray[np.float64]:
        """Return the log-probabilities of `ids` under the whole vocabulary: float64, the shape of `ids`.

        A NaN or +inf logit of a legal id counts as impossible (-inf); ties stay ties.

        Raises:
            LogitsError: as `normaliser`.
        """
        normaliser = self.normaliser(row)
        values = row[ids].astype(np.float64)
        values[~np.isfinite(values)] = -np.inf
        if watch is not None and len(ids) > 1:
            watch(path, ids, row, normaliser)
        out: NDArray[np.float64] = values - normaliser
        return out
