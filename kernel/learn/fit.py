"""Fits what a learned file holds: two multinomial logistic regressions, and thresholds by cross-validation.

The one for commands is fitted with an offset: the calibrated scores, times a factor that is fitted as well, are the
prior, and an L2 penalty pulls everything else towards zero. Where few requests are labelled, commands that have a word
in common share its weights: what tells left from right is learned of all turns at once. A command that no request asks
for stays at its prior. The other one tells requests that ask for something from each kind of those that do not:
nonsense, what is beyond the commands, what is negated, what is vague have little in common. scipy is imported on use
(the extra `[learn]`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.choose.learned import SIGNALS, Learned, asked_for, centred, terms
from kernel.choose.outcome import Thresholds, gains
from kernel.choose.rule import Floats
from kernel.errors import UsageError
from kernel.learn.features import Features

FOLDS = 5
LEAST = 2
"""A word or pair of words counts that stands in so many labelled requests."""
HELD_BACK = 0.04
"""Share of the requests answered rightly that thresholds may hold back where they are chosen."""
UNSURE = 0.01
"""Of them, those that may be held back because two are close."""


@dataclass(frozen=True)
class Settings:
    """How strongly to learn.

    The defaults are for FEW labelled requests a command and more; else FOR_FEW is better.

    Args:
        penalty: L2 on the weights of the multinomial regression, on a state of mean square 1.
        shared: how much the weights of a word count that several commands have, beside a command's own.
        cost: of an error in the one for what is meant, against the same penalty.
        state, words: how much these count there, beside signals of variance 1.
    """

    penalty: float = 0.03
    shared: float = 0.0
    cost: float = 1.0
    state: float = 5.0
    words: float = 1.5


FEW = 20
FOR_FEW = Settings(penalty=0.1, shared=2.0)
"""How to learn from fewer than FEW requests a command; chosen by cross-validation."""


@dataclass(frozen=True)
class Crossed:
    """What cross-validation says, a row each request, each by a fit that has not seen it.

    Attributes:
        scores: float64, shape (rows, n).
        meant: float64, shape (rows,); NaN where no request asks for nothing.
    """

    scores: Floats
    meant: Floats


class Fit:
    """The regressions of some labelled requests.

    Args:
        found: their features.
        labels: the column of each one's answer, -1 where nothing should answer it.
        kinds: why nothing should answer a request, "" where nobody said; requests of a kind are told from what asks for
            something by themselves.
        of_guide: so many of the last are the guide's own requests. They are the null prompts as well, which takes their
            likelihood off the null's mean, so they teach what is meant but not whether anything is.

    Raises:
        UsageError: scipy is not installed, or there is no request with an answer.
    """

    def __init__(
        self,
        found: Features,
        labels: NDArray[np.intp],
        settings: Settings | None = None,
        of_guide: int = 0,
        kinds: Sequence[str] = (),
    ) -> None:
        self.asked = np.arange(len(labels)) < len(labels) - of_guide
        few = ((labels >= 0) & self.asked).sum() < FEW * len(found.bodies)
        self.found, self.labels, self.settings = found, labels, settings or (FOR_FEW if few else Settings())
        self.kinds = kinds or [""] * len(labels)
        if not (labels >= 0).any():
            raise UsageError("there is no labelled request with an answer to learn from")
        self.states = centred(found.states)
        self.calibrated = found.raw - found.null

    def learned(self, thresholds: Thresholds | None = None, about: dict[str, Any] | None = None) -> Learned:
        """Fit all of it."""
        rows = np.arange(len(self.labels))
        prior, bias, weights = self._choice(rows)
        found = self.found
        words, parts = self._meaning(rows)
        return Learned(
            found.keys, found.head, found.tail, found.seen, weights, bias, found.null, prior, *parts, *words,
            thresholds=thresholds or Thresholds(), about=about or {},
        )  # fmt: skip

    def crossed(self) -> Crossed:
        """Return what fits say of requests that they have not seen."""
        meant = np.full(len(self.labels), np.nan)
        for inside, outside in self._folds() if (self.labels < 0).any() else ():
            words, (state, signals, bias) = self._meaning(inside)
            for row in outside.tolist():
                against = self.states[row] @ state + self._signals(self.scores[row : row + 1], row)[0] @ signals + bias
                against = against + words[1][np.isin(words[0], terms(self.found.requests[row]))].sum(axis=0)
                meant[row] = asked_for(against)
        return Crossed(self.scores, meant)

    @cached_property
    def scores(self) -> Floats:
        """Scores of every request by a fit that has not seen it, float64, shape (rows, n)."""
        out = np.zeros_like(self.calibrated)
        for inside, outside in self._folds():
            prior, bias, weights = self._choice(inside)
            out[outside] = prior * self.calibrated[outside] + self.states[outside] @ weights + bias
        return out

    def thresholds(self, crossed: Crossed) -> Thresholds:
        """Return the thresholds that hold back HELD_BACK of what cross-validation answers rightly."""
        right = self.asked & (self.labels >= 0) & (crossed.scores.argmax(axis=1) == self.labels)
        if not right.any():
            return Thresholds()
        best = np.sort(crossed.scores, axis=1)
        margin = float(np.quantile((best[:, -1] - best[:, -2])[right], UNSURE)) if best.shape[1] > 1 else None
        meant = None
        if np.isfinite(crossed.meant[right]).all():
            meant = round(float(np.quantile(crossed.meant[right], HELD_BACK - UNSURE)), 4)
        return Thresholds(
            top=None if meant is not None else Thresholds().top, meant=meant, margin=round(margin or 0.0, 4)
        )

    def _folds(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return (inside, outside) rows of each fold, the requests of each answer spread over all."""
        number, counts = np.zeros(len(self.labels), np.intp), dict[int, int]()
        for at in np.random.default_rng(0).permutation(len(self.labels)).tolist():
            label = int(self.labels[at])
            number[at] = counts.setdefault(label, len(counts)) % FOLDS
            counts[label] += 1
        answered = self.labels >= 0
        return [
            (np.flatnonzero(number != fold), np.flatnonzero(number == fold))
            for fold in range(FOLDS)
            if (answered & (number != fold)).any() and (number == fold).any()
        ]

    def _choice(self, rows: NDArray[np.intp]) -> tuple[float, Floats, Floats]:
        """Fit the multinomial regression; return the factor of the calibrated scores, the bias, and the weights."""
        rows = rows[self.labels[rows] >= 0]
        n, mean = self.calibrated.shape[1], self.states[rows].mean(axis=0)
        basis, scale = _basis(self.states[rows] - mean)
        x = (self.states[rows] - mean) @ basis / scale
        factor, bias, own = multinomial(
            x, np.eye(n)[self.labels[rows]], self.settings.penalty, self.calibrated[rows], self._parts
        )
        weights = basis / scale @ own
        return factor, bias - mean @ weights, weights

    @cached_property
    def _parts(self) -> Floats:
        """Which weights a command adds up: its own, and those of its words that others have; shape (n, parts)."""
        said = [set(body.split()) for body in self.found.bodies]
        words = sorted(word for word in set().union(*said) if 1 < sum(word in each for each in said) < len(said))
        has = np.array([[word in each for word in words] for each in said], float).reshape(len(said), -1)
        return np.hstack([np.eye(len(said)), self.settings.shared * has])

    def _signals(self, scores: Floats, rows: Any) -> Floats:
        """Return top, total and share of some requests, shape (rows, SIGNALS)."""
        raw = np.atleast_2d(self.found.raw[rows])
        below = np.exp(scores - scores.max(axis=1, keepdims=True))
        pairs = [gains(each, self.found.null) for each in raw]
        return np.column_stack([np.array(pairs), 1 / below.sum(axis=1)])

    def _meaning(
        self, rows: NDArray[np.intp]
    ) -> tuple[tuple[NDArray[np.int64], Floats], tuple[Floats, Floats, Floats]]:
        """Fit whether anything is meant; return (words, their weights) and (weights of state and signals, bias)."""
        rows = rows[self.asked[rows]]
        kinds = [None if self.labels[row] >= 0 else self.kinds[row] for row in rows.tolist()]
        names = sorted({kind for kind in kinds if kind is not None})
        if not names:
            width = self.states.shape[1]
            return (np.zeros(0, np.int64), np.zeros((0, 1))), (
                np.zeros((width, 1)),
                np.zeros((SIGNALS, 1)),
                np.zeros(1),
            )
        words = self._words(rows)
        bag = np.array([np.isin(words, terms(self.found.requests[row])) for row in rows.tolist()], float)
        signals = self._signals(self.scores[rows], rows)
        mean, spread = signals.mean(axis=0), signals.std(axis=0) + 1e-9
        middle = self.states[rows].mean(axis=0)
        basis, scale = _basis(self.states[rows] - middle)
        how = self.settings
        x = np.hstack(
            [how.state / scale * (self.states[rows] - middle) @ basis, (signals - mean) / spread, how.words * bag]
        )
        target = np.array([[kind == name for name in (None, *names)] for kind in kinds], float)
        _, bias, weights = multinomial(x, target, 1 / how.cost)
        weights, k = weights[:, :1] - weights[:, 1:], basis.shape[1]  # for being asked, against each kind
        state = basis @ weights[:k] * (how.state / scale)
        of_signals = weights[k : k + SIGNALS] / spread[:, None]
        own = bias[0] - bias[1:] - middle @ state - mean @ of_signals
        return (words, how.words * weights[k + SIGNALS :]), (state, of_signals, own)

    def _words(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the ids and pairs that stand in LEAST of the requests, in increasing order of their numbers."""
        every = [np.unique(terms(self.found.requests[row])) for row in rows.tolist()]
        ids, counts = np.unique(np.concatenate(every), return_counts=True)
        return ids[counts >= LEAST]


def _basis(states: Floats, most: int = 200) -> tuple[Floats, float]:
    """Return the directions in which states differ most, shape (k, at most `most`), and their root mean square."""
    _, _, directions = np.linalg.svd(states, full_matrices=False)
    basis: Floats = directions[:most].T
    return basis, float(np.sqrt((states**2).sum(axis=1).mean())) or 1.0


def multinomial(
    x: Floats, target: Floats, penalty: float, offset: Floats | None = None, parts: Floats | None = None
) -> tuple[float, Floats, Floats]:
    """Fit a multinomial logistic regression; return the factor of the offset, the bias and the weights.

    Classes of which there is no row keep a bias and weights of 0.

    Args:
        x: float64, shape (rows, k).
        target: float64, shape (rows, n): 1 at the class of a row.
        penalty: L2 on weights and bias.
        offset: float64, shape (rows, n): scores to begin with, times a factor that is fitted too.
        parts: float64, shape (n, m): the weights of a class are the sum of those of m parts, each times so much; what
            is penalised are the parts'. Each class is one by itself where this is None.
    """
    optimize = _optimize()
    (rows, k), n = x.shape, target.shape[1]
    made_of = (np.eye(n) if parts is None else parts) * np.asarray(target.any(axis=0))[:, None]
    begin, m = np.zeros((rows, n)) if offset is None else offset, made_of.shape[1]

    def loss(p: Floats) -> tuple[float, Floats]:
        factor, bias, weights = p[0], p[1 : 1 + m], p[1 + m :].reshape(k, m)
        scores = factor * begin + (x @ weights + bias) @ made_of.T
        total = np.logaddexp.reduce(scores, axis=1)
        wrong = np.exp(scores - total[:, None]) - target
        value = (total - (scores * target).sum(axis=1)).sum() + penalty / 2 * (p[1:] ** 2).sum()
        by_part = wrong @ made_of
        steps = np.concatenate([by_part.sum(axis=0), (x.T @ by_part).ravel()]) + penalty * p[1:]
        return float(value), np.concatenate([[(wrong * begin).sum()], steps])

    start = np.zeros(1 + m + k * m)
    start[0] = 1.0
    p = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x
    return float(p[0]), made_of @ p[1 : 1 + m], p[1 + m :].reshape(k, m) @ made_of.T


def _optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise _missing(error) from error
    return optimize


def _missing(error: ImportError) -> UsageError:
    return UsageError(f"to learn takes scipy ({error}): install cartridge-kernel[learn]")


def accuracy(scores: Floats, labels: Sequence[int] | NDArray[np.intp]) -> float:
    """Return the share of requests with an answer whose best score is that of the answer."""
    labels = np.asarray(labels)
    answered = labels >= 0
    return float((scores[answered].argmax(axis=1) == labels[answered]).mean())
