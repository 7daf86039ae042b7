"""Fits what a learned file holds: two multinomial logistic regressions, and thresholds by cross-validation.

The one for commands is fitted with an offset: the calibrated scores, times a factor that is fitted as well, are the
prior, and an L2 penalty pulls everything else towards zero: weights on the model's state, on the calibrated scores of
all commands, and on the ids of the request. Commands that have a word in common share weights: what tells left from
right is learned of all turns at once. A command that no request asks for stays at its prior. The other one tells
requests that ask for something from each kind of those that do not: nonsense, what is beyond the commands, what is
negated, what is vague have little in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel.choose.known import centred, gained, single, terms
from kernel.choose.learned import SIGNALS, Learned, asked_for
from kernel.choose.outcome import Thresholds, gains
from kernel.choose.rule import Floats
from kernel.errors import UsageError
from kernel.learn.features import Features
from kernel.learn.multinomial import multinomial

FOLDS = 5
TURNS = 3
"""Thresholds are chosen over so many cross-validations: few requests decide where they lie."""
LEAST = 2
"""A word or pair of words counts that stands in so many labelled requests."""
HELD_BACK = 0.04
"""Share of the requests answered rightly that thresholds may hold back where they are chosen."""
UNSURE = 0.02
"""Of them, those that may be held back because two are close."""


@dataclass(frozen=True)
class Settings:
    """How strongly to learn; the defaults were chosen by cross-validation.

    Args:
        penalty: L2 on the weights of the regression for commands, on a state and calibrated scores of mean square 1.
        said: how much an id of the request counts there.
        shared: how much the weights of a word count that several commands have, beside a command's own.
        cost: of an error in the one for what is meant, against the same penalty.
        state, words: how much these count there, beside signals of variance 1.
    """

    penalty: float = 0.06
    said: float = 0.2
    shared: float = 2.0
    cost: float = 1.0
    state: float = 5.0
    words: float = 1.5


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
        self.found, self.labels, self.settings = found, labels, settings or Settings()
        self.kinds = kinds or [""] * len(labels)
        if not (labels >= 0).any():
            raise UsageError("there is no labelled request with an answer to learn from")
        self.states = centred(found.states)
        self.calibrated = found.raw - found.null
        self.gained = gained(found.raw, found.null)

    def learned(self, thresholds: Thresholds | None = None, about: dict[str, Any] | None = None) -> Learned:
        """Fit all of it."""
        rows = np.arange(len(self.labels))
        found, words = self.found, self._words(rows)
        prior, bias, weights = self._choice(rows, words)
        meant, parts = self._meaning(rows, words)
        return Learned(
            found.keys, found.head, found.tail, found.seen, weights, bias, found.null, prior, *parts, words, meant,
            thresholds=thresholds or Thresholds(), about=about or {},
        )  # fmt: skip

    def crossed(self, turn: int = 0) -> Crossed:
        """Return what fits say of requests that they have not seen; another turn has other folds."""
        if turn not in self._crossed:
            scores = self._scores(turn) if turn else self.scores
            meant = np.full(len(self.labels), np.nan)
            for inside, outside in self._folds(turn) if (self.labels < 0).any() else ():
                words = self._words(inside)
                of_words, (state, signals, bias) = self._meaning(inside, words)
                against = self.states[outside] @ state + self._signals(scores[outside], outside) @ signals + bias
                against = against + self._said(outside, words) @ of_words
                meant[outside] = [asked_for(each) for each in against]
            self._crossed[turn] = Crossed(scores, meant)
        return self._crossed[turn]

    @cached_property
    def _crossed(self) -> dict[int, Crossed]:
        return {}

    @cached_property
    def scores(self) -> Floats:
        """Scores of every request by a fit that has not seen it, float64, shape (rows, n)."""
        return self._scores(0)

    def _scores(self, turn: int) -> Floats:
        out = np.zeros_like(self.calibrated)
        for inside, outside in self._folds(turn):
            words = self._words(inside)
            prior, bias, weights = self._choice(inside, words)
            said = self._said(outside, single(words))
            known = np.hstack([self.states[outside], self.gained[outside], said])
            out[outside] = prior * self.calibrated[outside] + known @ weights + bias
        return out

    def thresholds(self) -> Thresholds:
        """Return the thresholds that hold back HELD_BACK of what cross-validation answers rightly."""
        margins, meant = [], []
        for crossed in map(self.crossed, range(TURNS)):
            right = self.asked & (self.labels >= 0) & (crossed.scores.argmax(axis=1) == self.labels)
            best = np.sort(crossed.scores[right], axis=1)
            margins.append(best[:, -1] - best[:, -2] if best.shape[1] > 1 else np.zeros(len(best)))
            meant.append(crossed.meant[right])
        if not sum(map(len, margins)):
            return Thresholds()
        margin, least = round(float(np.quantile(np.concatenate(margins), UNSURE)), 4), None
        if np.isfinite(np.concatenate(meant)).all():
            least = round(float(np.quantile(np.concatenate(meant), HELD_BACK - UNSURE)), 4)
        return Thresholds(top=None if least is not None else Thresholds().top, meant=least, margin=margin)

    def _folds(self, turn: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Return (inside, outside) rows of each fold, the requests of each answer spread over all."""
        number, counts = np.zeros(len(self.labels), np.intp), dict[int, int]()
        for at in np.random.default_rng(turn).permutation(len(self.labels)).tolist():
            label = int(self.labels[at])
            number[at] = counts.setdefault(label, len(counts)) % FOLDS
            counts[label] += 1
        answered = self.labels >= 0
        return [
            (np.flatnonzero(number != fold), np.flatnonzero(number == fold))
            for fold in range(FOLDS)
            if (answered & (number != fold)).any() and (number == fold).any()
        ]

    def _choice(self, rows: NDArray[np.intp], words: NDArray[np.int64]) -> tuple[float, Floats, Floats]:
        """Fit the regression for commands; return the factor of the calibrated scores, the bias, and the weights."""
        rows = rows[self.labels[rows] >= 0]
        n, x, back = self.calibrated.shape[1], [], []
        for values in (self.states[rows], self.gained[rows]):
            mean = values.mean(axis=0)
            basis, scale = _basis(values - mean)
            x.append((values - mean) @ basis / scale)
            back.append((mean, basis / scale))
        x.append(self.settings.said * self._said(rows, single(words)))
        factor, bias, own = multinomial(
            np.hstack(x), np.eye(n)[self.labels[rows]], self.settings.penalty, self.calibrated[rows], self._parts
        )
        *parts, of_words = np.split(own, np.cumsum([each.shape[1] for each in x[:-1]]))
        weights = [basis @ part for (_, basis), part in zip(back, parts, strict=True)]
        for (mean, _), each in zip(back, weights, strict=True):
            bias = bias - mean @ each
        return factor, bias, np.vstack([*weights, self.settings.said * of_words])

    def _said(self, rows: NDArray[np.intp], words: NDArray[np.int64]) -> Floats:
        """Return which of some words stand in requests, 1.0 or 0.0, shape (rows, words)."""
        found = [np.isin(words, terms(self.found.requests[row])) for row in rows.tolist()]
        return np.array(found, float).reshape(len(rows), len(words))

    @cached_property
    def _parts(self) -> Floats:
        """Which weights a command adds up: its own, and those of its words that others have; shape (n, parts)."""
        said = [set(body.split()) for body in self.found.bodies]
        words = sorted(word for word in set().union(*said) if 1 < sum(word in each for each in said) < len(said))
        has = np.array([[word in each for word in words] for each in said], float).reshape(len(said), -1)
        return np.hstack([np.eye(len(said)), self.settings.shared * has])

    def _signals(self, scores: Floats, rows: NDArray[np.intp]) -> Floats:
        """Return top, total and share of some requests, shape (rows, SIGNALS)."""
        below = np.exp(scores - scores.max(axis=1, keepdims=True))
        pairs = [gains(each, self.found.null) for each in self.found.raw[rows]]
        return np.column_stack([np.array(pairs), 1 / below.sum(axis=1)])

    def _meaning(
        self, rows: NDArray[np.intp], words: NDArray[np.int64]
    ) -> tuple[Floats, tuple[Floats, Floats, Floats]]:
        """Fit whether anything is meant; return the weights of the words, and (those of state and signals, bias)."""
        rows = rows[self.asked[rows]]
        kinds = [None if self.labels[row] >= 0 else self.kinds[row] for row in rows.tolist()]
        names = sorted({kind for kind in kinds if kind is not None})
        if not names:
            width = self.states.shape[1]
            return np.zeros((len(words), 1)), (np.zeros((width, 1)), np.zeros((SIGNALS, 1)), np.zeros(1))
        bag = self._said(rows, words)
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
        return how.words * weights[k + SIGNALS :], (state, of_signals, own)

    def _words(self, rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the ids and pairs that stand in LEAST of the requests, in increasing order of their numbers."""
        every = [np.unique(terms(self.found.requests[row])) for row in rows[self.asked[rows]].tolist()]
        ids, counts = np.unique(np.concatenate(every), return_counts=True)
        return ids[counts >= LEAST]


def _basis(states: Floats, most: int = 200) -> tuple[Floats, float]:
    """Return the directions in which states differ most, shape (k, at most `most`), and their root mean square."""
    _, _, directions = np.linalg.svd(states, full_matrices=False)
    basis: Floats = directions[:most].T
    return basis, float(np.sqrt((states**2).sum(axis=1).mean())) or 1.0


def accuracy(scores: Floats, labels: Sequence[int] | NDArray[np.intp]) -> float:
    """Return the share of requests with an answer whose best score is that of the answer."""
    labels = np.asarray(labels)
    answered = labels >= 0
    return float((scores[answered].argmax(axis=1) == labels[answered]).mean())
