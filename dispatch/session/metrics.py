"""Measures of decisions that may be held back: what is right of what was acted on, and how well confidence orders them.

The risk of some decisions is the share of wrong ones among those that were acted on, their coverage the share of all
that were. Acting on the most confident ones first gives the risk-coverage curve. The area under it (AURC) is the mean
risk over all coverages (Geifman & El-Yaniv 2017, arXiv 1705.08500; Geifman, Uziel & El-Yaniv 2019, arXiv 1805.08206).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

Z95 = 1.959963984540054
BINS = 10
"""Of the calibration error, each as wide as the others."""


class Share(BaseModel):
    """So many of so many, with the 95 % interval of the share (Wilson); all numbers are 0 to 1."""

    model_config = ConfigDict(frozen=True)

    of: int
    count: int
    share: float | None
    low: float
    high: float

    @classmethod
    def made(cls, flags: Iterable[bool]) -> Share:
        """Return the share of what is true."""
        found = list(flags)
        low, high = wilson(sum(found), len(found))
        share = sum(found) / len(found) if found else None
        return cls(of=len(found), count=sum(found), share=share, low=low, high=high)


class Confusion(BaseModel):
    """How often one answer was right and another thing was said or done."""

    model_config = ConfigDict(frozen=True)

    right: str
    """The right answer; `none` where nothing was to be done."""
    said: str
    """What was chosen, or the outcome of a decision that was held back."""
    times: int


def wilson(correct: int, cases: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927, JASA 22:209).

    >>> [round(x, 3) for x in wilson(8, 10)]
    [0.49, 0.943]
    """
    if not cases:
        return 0.0, 1.0
    share, z2 = correct / cases, Z95**2
    centre = share + z2 / (2 * cases)
    spread = Z95 * math.sqrt(share * (1 - share) / cases + z2 / (4 * cases**2))
    scale = 1 + z2 / cases
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def risk_coverage(confidence: Sequence[float], right: Sequence[bool]) -> list[tuple[float, float]]:
    """Return coverage and risk when the most confident decisions are acted on, for 1, 2, ... of them.

    Decisions of one confidence are acted on together, so they share a risk: the last one's.

    >>> risk_coverage([0.9, 0.8, 0.8, 0.1], [True, True, False, False])
    [(0.25, 0.0), (0.5, 0.3333333333333333), (0.75, 0.3333333333333333), (1.0, 0.5)]
    """
    order = np.argsort(-np.asarray(confidence, np.float64), kind="stable")
    sorted_by = np.asarray(confidence, np.float64)[order]
    wrong = np.cumsum(~np.asarray(right, np.bool_)[order])
    last = np.searchsorted(-sorted_by, -sorted_by, side="right") - 1  # of those with the same confidence
    risks = wrong[last] / (last + 1)
    return [((at + 1) / len(order), float(risk)) for at, risk in enumerate(risks.tolist())]


def aurc(curve: Sequence[tuple[float, float]]) -> float | None:
    """Return the area under a risk-coverage curve, the mean of its risks; 0 is best. None without decisions.

    >>> round(aurc([(0.25, 0.0), (0.5, 1 / 3), (0.75, 1 / 3), (1.0, 0.5)]), 6)
    0.291667
    """
    return sum(risk for _, risk in curve) / len(curve) if curve else None


def calibration_error(probability: Sequence[float], right: Sequence[bool]) -> float | None:
    """Return the expected calibration error: how far probabilities are from the shares of right answers, on average.

    Decisions fall into BINS by their probability; the differences are weighted by how many fall into each (Naeini et
    al. 2015, AAAI 29; Guo et al. 2017, arXiv 1706.04599). None without decisions.

    >>> round(calibration_error([0.95, 0.95, 0.55, 0.55], [True, True, True, False]), 6)
    0.05
    """
    if not len(probability):
        return None
    said = np.asarray(probability, np.float64)
    bins = np.minimum((said * BINS).astype(np.intp), BINS - 1)
    hit = np.asarray(right, np.float64)
    gaps = [abs(_sum(said, bins == b) - _sum(hit, bins == b)) for b in range(BINS)]
    return sum(gaps) / len(said)


def _sum(values: NDArray[np.float64], where: NDArray[np.bool_]) -> float:
    return float(values[where].sum())


def separation(meant: Sequence[float], nothing: Sequence[float]) -> float | None:
    """Return how often a request that means something scores above one that does not, ties half (Mann & Whitney 1947).

    That is the area under the ROC curve. None where one of the two is empty; what is not a number scores below all.

    >>> separation([3.0, 2.0], [1.0, 2.0])
    0.875
    """
    if not len(meant) or not len(nothing):
        return None
    high, low = (np.nan_to_num(np.asarray(each, np.float64), nan=-np.inf) for each in (meant, nothing))
    above = (high[:, None] > low[None, :]).sum() + 0.5 * (high[:, None] == low[None, :]).sum()
    return float(above) / (len(high) * len(low))


def confusion(pairs: Iterable[tuple[str, str]]) -> tuple[Confusion, ...]:
    """Return how often what was right and what was said come together, by what is right, the most frequent first."""
    counts = Counter(pairs)
    ordered = sorted(counts.items(), key=lambda each: (each[0][0], -each[1], each[0][1]))
    return tuple(Confusion(right=right, said=said, times=times) for (right, said), times in ordered)
