"""Fits what a learned file holds: a multinomial and a binary logistic regression, and thresholds by cross-validation.

The multinomial one is fitted with an offset: the calibrated scores, times a factor that is fitted as well, are the
prior, and an L2 penalty pulls everything else towards zero. A command that no request asks for stays at its prior.
scikit-learn (extra `[learn]`) is imported on use; deciding needs numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.choose.learned import Learned, centred
from kernel.choose.outcome import Thresholds, gains
from kernel.choose.rule import Floats
from kernel.errors import UsageError
from kernel.learn.features import Features

FOLDS = 5
LEAST = 2
"""A word counts that stands in so many labelled requests."""
HELD_BACK = 0.04
"""Share of the requests answered rightly that thresholds may hold back where they are chosen."""
UNSURE = 0.01
"""Of them, those that may be held back because two are close."""


@dataclass(frozen=True)
class Settings:
    """How strongly to learn.

    Args:
        penalty: L2 on the weights of the multinomial regression, on a state of mean square 1.
        cost: of an error in the binary one, against the same penalty.
        state, words: how much these count there, beside signals of variance 1.
    """

    penalty: float = 0.1
    cost: float = 1.0
    state: float = 3.0
    words: float = 2.0


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
        of_guide: so many of the last are the guide's own requests. They are the null prompts as well, which takes their
            likelihood off the null's mean, so they teach what is meant but not whether anything is.

    Raises:
        UsageError: scikit-learn is not installed, or there is no request with an answer.
    """

    def __init__(
        self, found: Features, labels: NDArray[np.intp], settings: Settings | None = None, of_guide: int = 0
    ) -> None:
        self.found, self.labels, self.settings = found, labels, settings or Settings()
        self.asked = np.arange(len(labels)) < len(labels) - of_guide
        if not (labels >= 0).any():
            raise UsageError("there is no labelled request with an answer to learn from")
        self.states = centred(found.states)
        self.calibrated = found.raw - found.null

    def learned(self, thresholds: Thresholds | None = None, about: dict[str, Any] | None = None) -> Learned:
        """Fit all of it."""
        rows = np.arange(len(self.labels))
        prior, bias, weights = self._choice(rows)
        scores = prior * self.calibrated + self.states @ weights + bias
        found = self.found
        words, parts = self._meaning(rows, self._out_of_fold(rows, scores))
        return Learned(
            found.keys, found.head, found.tail, found.seen, weights, bias, found.null, prior, *parts, *words,
            thresholds=thresholds or Thresholds(), about=about or {},
        )  # fmt: skip

    def crossed(self, folds: int = FOLDS, seed: int = 0) -> Crossed:
        """Return what fits say of requests that they have not seen."""
        scores, meant = np.zeros_like(self.calibrated), np.full(len(self.labels), np.nan)
        for inside, outside in self._folds(np.arange(len(self.labels)), folds, seed):
            prior, bias, weights = self._choice(inside)
            scores[outside] = prior * self.calibrated[outside] + self.states[outside] @ weights + bias
            if (self.labels[inside] < 0).any():
                inner = self._out_of_fold(inside, prior * self.calibrated + self.states @ weights + bias)
                words, (state, signals, bias_of) = self._meaning(inside, inner)
                for row in outside.tolist():
                    meant[row] = (
                        self.states[row] @ state
                        + (self._signals(scores[row : row + 1], row) @ signals)[0]
                        + words[1][np.isin(words[0], self.found.requests[row])].sum()
                        + bias_of
                    )
        return Crossed(scores, meant)

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

    def _folds(self, rows: NDArray[np.intp], folds: int, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return (inside, outside) rows of each fold, the requests of each answer spread over all."""
        number, counts = np.zeros(len(rows), np.intp), dict[int, int]()
        for at in np.random.default_rng(seed).permutation(len(rows)).tolist():
            label = int(self.labels[rows[at]])
            number[at] = counts.setdefault(label, len(counts)) % folds
            counts[label] += 1
        return [(rows[number != fold], rows[number == fold]) for fold in range(folds) if (number == fold).any()]

    def _out_of_fold(self, rows: NDArray[np.intp], scores: Floats) -> Floats:
        """Return scores, those of requests with an answer by fits that have not seen them."""
        out = scores.copy()
        answered = rows[self.labels[rows] >= 0]
        for inside, outside in self._folds(answered, 3, 1):
            if len(inside):
                prior, bias, weights = self._choice(inside)
                out[outside] = prior * self.calibrated[outside] + self.states[outside] @ weights + bias
        return out

    def _choice(self, rows: NDArray[np.intp]) -> tuple[float, Floats, Floats]:
        """Fit the multinomial regression; return the factor of the calibrated scores, the bias, and the weights."""
        rows = rows[self.labels[rows] >= 0]
        n, mean = self.calibrated.shape[1], self.states[rows].mean(axis=0)
        basis, scale = _basis(self.states[rows] - mean)
        x, offset = (self.states[rows] - mean) @ basis / scale, self.calibrated[rows]
        target = np.eye(n)[self.labels[rows]]
        penalty = self.settings.penalty
        asked = target.any(axis=0)

        def loss(p: Floats) -> tuple[float, Floats]:
            factor, bias, weights = p[0], p[1 : 1 + n] * asked, p[1 + n :].reshape(-1, n) * asked
            scores = factor * offset + x @ weights + bias
            total = np.logaddexp.reduce(scores, axis=1)
            wrong = np.exp(scores - total[:, None]) - target
            value = (total - (scores * target).sum(axis=1)).sum()
            value += penalty / 2 * ((weights**2).sum() + (bias**2).sum())
            steps = [(wrong.sum(axis=0) + penalty * bias) * asked, ((x.T @ wrong + penalty * weights) * asked).ravel()]
            return float(value), np.concatenate([[(wrong * offset).sum()], *steps])

        start = np.zeros(1 + n + x.shape[1] * n)
        start[0] = 1.0
        p = _optimize().minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
        weights = basis / scale @ (p[1 + n :].reshape(-1, n) * asked)
        return float(p[0]), p[1 : 1 + n] * asked - mean @ weights, weights

    def _signals(self, scores: Floats, rows: Any) -> Floats:
        """Return top, total and share of some requests, shape (rows, SIGNALS)."""
        raw = np.atleast_2d(self.found.raw[rows])
        below = np.exp(scores - scores.max(axis=1, keepdims=True))
        pairs = [gains(each, self.found.null) for each in raw]
        return np.column_stack([np.array(pairs), 1 / below.sum(axis=1)])

    def _meaning(
        self, rows: NDArray[np.intp], scores: Floats
    ) -> tuple[tuple[NDArray[np.int32], Floats], tuple[Floats, Floats, float]]:
        """Fit whether anything is meant; return (words, their weights) and (weights of state and signals, bias)."""
        rows = rows[self.asked[rows]]
        nothing = self.labels[rows] < 0
        if not nothing.any():
            empty = np.zeros(0)
            return (np.zeros(0, np.int32), empty), (np.zeros(self.states.shape[1]), np.zeros(3), 0.0)
        words = self._words(rows)
        bag = np.array([np.isin(words, self.found.requests[row]) for row in rows.tolist()], float)
        signals = self._signals(scores[rows], rows)
        mean, spread = signals.mean(axis=0), signals.std(axis=0) + 1e-9
        middle = self.states[rows].mean(axis=0)
        basis, scale = _basis(self.states[rows] - middle)
        how = self.settings
        x = (self.states[rows] - middle) @ basis / scale
        fitted = _linear_model().LogisticRegression(C=how.cost, max_iter=1000)
        fitted.fit(np.hstack([how.state * x, (signals - mean) / spread, how.words * bag]), ~nothing)
        weights, k = fitted.coef_[0], x.shape[1]
        state = basis @ weights[:k] * (how.state / scale)
        of_signals = weights[k : k + 3] / spread
        bias = float(fitted.intercept_[0] - middle @ state - mean @ of_signals)
        return (words, how.words * weights[k + 3 :]), (state, of_signals, bias)

    def _words(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the ids that stand in LEAST of the requests, in increasing order."""
        every = [np.unique(np.asarray(self.found.requests[row], np.int32)) for row in rows.tolist()]
        ids, counts = np.unique(np.concatenate(every), return_counts=True)
        return ids[counts >= LEAST]


def _basis(states: Floats, most: int = 200) -> tuple[Floats, float]:
    """Return the directions in which states differ most, shape (k, at most `most`), and their root mean square."""
    _, _, directions = np.linalg.svd(states, full_matrices=False)
    basis: Floats = directions[:most].T
    return basis, float(np.sqrt((states**2).sum(axis=1).mean())) or 1.0


def _optimize() -> Any:
    try:
        from scipy import optimize
    except ImportError as error:
        raise _missing(error) from error
    return optimize


def _linear_model() -> Any:
    try:
        from sklearn import linear_model
    except ImportError as error:
        raise _missing(error) from error
    return linear_model


def _missing(error: ImportError) -> UsageError:
    return UsageError(f"to learn takes scikit-learn ({error}): install cartridge-kernel[learn]")


def accuracy(scores: Floats, labels: Sequence[int] | NDArray[np.intp]) -> float:
    """Return the share of requests with an answer whose best score is that of the answer."""
    labels = np.asarray(labels)
    answered = labels >= 0
    return float((scores[answered].argmax(axis=1) == labels[answered]).mean())
