"""The rules by which log-probabilities become a decision, and their parameters.

What the rules mean, for an opcode o behind a prompt p and null prompts n:

- exact: log P(o | p), the sum over its tokens, never the mean.
- calibrated: log P(o | p) - c * mean over n of log P(o | n). The null prompts ask for nothing, so what they prefer is
  surface: length, frequency, position (contextual calibration, Zhao et al. 2021, arXiv 2102.09690; the subtraction is
  the domain-conditional PMI of Holtzman et al. 2021, arXiv 2104.08315).
- sample: drawn with the probabilities of `exact` at a temperature, over whole opcodes, not token by token.
- greedy: the most probable legal token at each branch; the baseline that everybody else ships.
- learned: what labelled requests have taught is added to the calibrated score; see `learned.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.choose.kinds import RuleName as RuleName
from kernel.errors import LogitsError, UsageError, did_you_mean

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and its parameters.

    Args:
        name: `greedy`, `exact`, `calibrated`, `sample` or `learned`.
        calibration: 0 (exact) to 1; how much of the null's log-probability is subtracted.
        temperature: of `sample`; above 0.
        seed: of `sample`; decision n of a session draws from (seed, n), so one decision repeats alone.
        planner_weight: how much of the planner's own score is added; 0 lets the model decide.
    """

    name: RuleName = RuleName.CALIBRATED
    calibration: float = 1.0
    temperature: float = 1.0
    seed: int = 0
    planner_weight: float = 0.0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "name", RuleName(self.name))
        except ValueError:
            raise UsageError(f"no rule {self.name!r}{did_you_mean(str(self.name), map(str, RuleName))}") from None
        if not 0 <= self.calibration <= 1:
            raise UsageError(f"calibration={self.calibration!r} is outside 0..1")
        if not 0 < self.temperature < math.inf:
            raise UsageError(
                f"temperature={self.temperature!r} is not a number above 0; `exact` takes the most probable"
            )
        if self.name is RuleName.SAMPLE and (not isinstance(self.seed, int) or self.seed < 0):
            raise UsageError(f"seed={self.seed!r} is no whole number from 0 on")
        if not math.isfinite(self.planner_weight):
            raise UsageError(f"planner_weight={self.planner_weight!r} is not a finite number")

    def compare(self, raw: Floats, null: Floats | None, prior: Floats | None = None) -> Floats:
        """Return the score of each opcode, of which the highest wins.

        An opcode that is impossible (-inf) behind the prompt stays so, whatever the null says; one that only the null
        finds impossible is compared as if the null had nothing against it. The planner's scores are centred and scaled
        to its best and worst being 1 apart, so that a weight means log-probability; options it does not know get its
        worst.

        Args:
            raw, null: float64, shape (n,): log-probabilities behind the prompt, and behind the null prompts.
            prior: float64, shape (n,): the planner's scores, NaN where it has none.

        >>> Rule().compare(np.array([-2.0, -3.0]), np.array([-1.0, -4.0])).tolist()
        [-1.0, 1.0]
        """
        scores = raw.copy()
        if null is not None:
            finite = np.isfinite(null)
            scores[finite] -= self.calibration * null[finite]
        if prior is not None and self.planner_weight:
            known = prior[np.isfinite(prior)]
            if len(known):
                span = float(known.max() - known.min()) or 1.0
                filled = np.where(np.isfinite(prior), prior, known.min())
                scores = scores + self.planner_weight * (filled - known.max()) / span
        return scores

    def shares(self, scores: Floats) -> Floats:
        """Return the probability of each opcode under the rule; they add up to 1.

        Raises LogitsError where no score is finite.

        >>> Rule().shares(np.log([1.0, 3.0])).round(2).tolist()
        [0.25, 0.75]
        """
        below = scores - finite(float(np.max(scores, initial=-np.inf)), len(scores))
        if self.name is RuleName.SAMPLE:
            with np.errstate(over="ignore"):  # at a temperature near 0 all but the best become impossible
                below = below / self.temperature
        weights = np.exp(below)
        out: Floats = weights / weights.sum()
        return out

    def pick(self, scores: Floats, order: NDArray[np.integer], number: int = 0) -> int:
        """Return the position of the winner; of equal scores the one that comes first in an order.

        Args:
            order: shape (n,): the place of each opcode in the order of ids.
            number: of the decision, from which `sample` draws.
        """
        if self.name is RuleName.SAMPLE:
            generator = np.random.default_rng([self.seed, number])
            return int(generator.choice(len(scores), p=self.shares(scores)))
        best = np.flatnonzero(scores == scores.max())
        return int(best[np.argmin(order[best])])


def finite(top: float, count: int) -> float:
    """Return the highest score of so many; raises LogitsError where it is not finite."""
    if not math.isfinite(top):
        raise LogitsError(f"none of {count} legal opcodes has a finite log-probability")
    return top
