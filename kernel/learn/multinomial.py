"""Multinomial logistic regression with an offset and shared weights. scipy is imported on use (the extra `[learn]`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernel.choose.rule import Floats
from kernel.errors import UsageError


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
