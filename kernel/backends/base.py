"""What the kernel asks of a runtime: decode a batch, copy and drop sequences, show a row. Knows no opcode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernel.text.vocabulary import Vocabulary


class Backend(Protocol):
    """One model with one memory of `n_seq` sequences of together at most `n_ctx` cells."""

    name: str
    vocabulary: Vocabulary
    n_ctx: int
    n_batch: int
    n_seq: int
    shares_tokens: bool
    """Whether one token of a batch can stand on several sequences (attention: yes; recurrent and hybrid: no)."""

    @property
    def fingerprint(self) -> str:
        """Name the weights: equal ones decide alike."""

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        outputs: Sequence[int],
    ) -> None:
        """Evaluate at most `n_batch` tokens in one pass.

        Args:
            tokens, positions: one each a token.
            sequences: the sequence ids that each token stands on.
            outputs: indices into `tokens` whose rows are wanted.
        Raises:
            BackendError: the runtime refused; the memory's content is then undefined.
        """

    def logits(self, index: int) -> NDArray[np.float32]:
        """Return the row after token `index` of the last pass: float32, shape (n_vocab,), valid until the next."""

    def remove(self, sequence: int, start: int) -> bool:
        """Drop the positions from `start` on; False when the memory cannot (then nothing has changed)."""

    def copy(self, source: int, target: int, end: int, begin: int = 0) -> None:
        """Make `target`, which is empty, begin with the first `end` positions of `source`.

        From a `begin` on: let `target`, which begins like `source` up to there, hold these positions as well, beside
        what others are attached to it there. What stands behind them all begins behind the longest.
        """

    def clear(self) -> None:
        """Forget everything."""

    def close(self) -> None:
        """Free what the runtime holds."""
