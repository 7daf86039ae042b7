"""What is known of a request as numbers that weights are learned for: its ids, calibrated scores, the state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernel.choose.rule import Floats
from kernel.memory.passes import Ids

FOLLOWED = 20
"""Bits of an id in the number of a pair; vocabularies are smaller."""


def terms(request: Ids) -> NDArray[np.int64]:
    """Return the ids of a request, and behind them the numbers of its pairs; its two ends have pairs as well.

    Pairs tell "no need to stop" from "stop, no need to go on". The number of a pair is larger than any id.

    >>> [int(n) if n < 1 << FOLLOWED else divmod(int(n), 1 << FOLLOWED) for n in terms((7, 9))]
    [7, 9, (1, 9), (9, 11), (11, 0)]
    """
    ids = np.asarray(request, np.int64)
    numbered = np.concatenate([[1], ids + 2, [0]])  # 1 begins, 0 ends
    return np.concatenate([ids, numbered[:-1] << FOLLOWED | numbered[1:]])


def single(words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of some numbers of `terms` that are ids, without the pairs."""
    return words[words < 1 << FOLLOWED]


def gained(raw: Floats, null: Floats) -> Floats:
    """Return calibrated scores less their mean, along the last axis; 0 where one is impossible.

    >>> gained(np.array([-1.0, -4.0, -np.inf]), np.array([-2.0, -3.0, -3.0])).tolist()
    [1.0, -1.0, 0.0]
    """
    scores = raw - null
    scores = np.where(np.isfinite(scores), scores, np.nan)
    out: Floats = np.nan_to_num(scores - np.nanmean(scores, axis=-1, keepdims=True))
    return out


def centred(logits: NDArray[np.float32]) -> Floats:
    """Return logits less their mean, which no softmax depends on: float64, the same shape.

    >>> centred(np.array([[1, 2, 3]], np.float32)).tolist()
    [[-1.0, 0.0, 1.0]]
    """
    wide = logits.astype(np.float64)
    out: Floats = wide - wide.mean(axis=-1, keepdims=True)
    return out
