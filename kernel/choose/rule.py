"""The rules by which log-probabilities become a decision, and their parameters. Knows no model.

What the rules mean, for an opcode o behind a prompt p and null prompts n:

- exact: log P(o | p), the sum over its tokens, never the mean.
- calibrated: log P(o | p) - c * mean over n of log P(o | n). The null prompts ask for nothing, so what they prefer is
  surface: length, frequency, position (contextual calibration, Zhao et al. 2021, arXiv 2102.09690; the subtraction is
  the domain-conditional PMI of Holtzman et al. 2021, arXiv 2104.08315).
- sample: drawn with the probabilities of `exact` at a temperature, over whole opcodes, not token by token.
- greedy: the most probable legal token at each branch; the baseline that everybody else ships.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from kernel.errors import UsageError, did_you_mean


class RuleName(enum.StrEnum):
    """The rules by name."""

    GREEDY = "greedy"
    EXACT = "exact"
    CALIBRATED = "calibrated"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule and its parameters.

    Args:
        name: `greedy`, `exact`, `calibrated` or `sample`.
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
