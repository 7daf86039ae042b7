"""Which candidate each field gets, when all of them are decided together: one place of the request serves one field."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from kernel.choose.rule import Floats
from kernel.tools.candidates import Candidate
from kernel.tools.spans import Source

SHARED = 5.0
"""Nats that it costs when two fields take what stands at one place of the request."""

TURNED = 0.7
"""Nats that it costs when a number of an earlier field stands behind that of a later one: `a=1, b=-3`."""

BEST = 8
"""Candidates of a field that come into question."""

MOST = 5_000
"""Combinations that are compared; of more fields, the surest are settled first."""


def assign(candidates: Sequence[Sequence[Candidate | None]], scores: Sequence[Floats]) -> list[int]:
    """Return the place of the candidate that each field gets.

    Args:
        candidates: of each field; None leaves the field out.
        scores: of each field, float64, shape (n,): log-probabilities.

    >>> ten, five = Candidate("10", Source.NUMBER, 0, 2), Candidate("5", Source.NUMBER, 9, 10)
    >>> assign([[ten, five], [ten, five]], [np.array([-0.1, -2.0]), np.array([-0.5, -0.9])])
    [0, 1]
    """
    ranked = [np.argsort(-each, kind="stable")[:BEST].tolist() for each in scores]
    order = sorted(range(len(scores)), key=lambda n: -_lead(scores[n]))
    settled: dict[int, int] = {}
    while order:
        part: list[int] = []
        size = 1
        while order and size * len(ranked[order[0]]) <= MOST:
            part.append(order.pop(0))
            size *= len(ranked[part[-1]])
        best: tuple[float, tuple[int, ...]] = (-np.inf, ())
        for chosen in itertools.product(*(ranked[n] for n in part)):
            taken = [*settled.items(), *zip(part, chosen, strict=True)]
            total = sum(float(scores[n][at]) for n, at in zip(part, chosen, strict=True))
            placed = {n: each for n, at in taken if (each := candidates[n][at]) is not None and each.begin >= 0}
            total -= SHARED * _clashes(placed) + TURNED * _turned(placed)
            best = max(best, (total, chosen), key=lambda each: each[0])
        settled |= zip(part, best[1], strict=True)
    return [settled[n] for n in range(len(scores))]


def _lead(scores: Floats) -> float:
    two = np.sort(scores)[-2:]
    return float(two[-1] - two[0]) if len(two) > 1 else np.inf


def _clashes(placed: Mapping[int, Candidate]) -> int:
    """Return how many pairs stand at one place of the request."""
    pairs = itertools.combinations(placed.values(), 2)
    return sum(a.begin < b.end and b.begin < a.end for a, b in pairs)


def _turned(placed: Mapping[int, Candidate]) -> int:
    """Return how many pairs of numbers stand in another order than their fields."""
    numbers = [each.begin for _, each in sorted(placed.items()) if each.source is Source.NUMBER]
    return sum(a > b for a, b in itertools.combinations(numbers, 2))
