"""How a decision ends: something was chosen, or it is held back, and why.

A rule always finds a best opcode, also for a request that asks for nothing of the kind. The scores say more than which
one is best: how much likelier the request has made it, and whether another one is close, or would be better but is not
legal. `Evidence` holds that, a `Judge` decides. To choose only where the evidence suffices is to classify with a reject
option (Chow 1970, IEEE Trans. Inf. Theory 16:41; Geifman & El-Yaniv 2017, arXiv 1705.08500).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Protocol, Self

import numpy as np

from kernel.choose.kinds import Outcome as Outcome
from kernel.choose.rule import Floats
from kernel.errors import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the scores of a decision say of it, in natural logarithms; NaN is not known.

    `top` and `total` are over every opcode that was scored, those that are not legal now included.

    Attributes:
        top: largest log P(opcode | prompt) - mean log P(opcode | null prompt): how much likelier the request has made
            the likeliest opcode. Known where there are null prompts.
        total: logarithm of the sum of all the likelihood ratios whose largest logarithm is `top`.
        share: probability of the best legal opcode under the rule.
        margin: how far its score is ahead of the second; NaN where the rule does not score the second.
        mass: probability that the whole vocabulary gave to the legal ids at the first branch.
        beyond: how far the best opcode that is not legal is ahead of the best legal one; 0 where it is not.
        meant: log-odds that the request asks for one of the opcodes at all, where something was learned.
    """

    top: float = math.nan
    total: float = math.nan
    share: float = math.nan
    margin: float = math.nan
    mass: float = math.nan
    beyond: float = 0.0
    meant: float = math.nan


class Judge(Protocol):
    """Decides by the evidence how a decision ends."""

    def judge(self, evidence: Evidence) -> Outcome:
        """Return how a decision ends that has this evidence."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The evidence that it takes to choose; None is not looked at.

    The defaults are for a model and opcodes of which nothing was learned, and hold back little: a request has to make
    some opcode e times as likely as the null prompts do, and the best one has to be 5 % ahead of the second.

    Args:
        top, total, share, mass, meant: least values; below one of them the outcome is `none`.
        margin: least value; below it the outcome is `unsure`.
        beyond: largest value; above it the outcome is `not legal`.

    Raises:
        UsageError: a value that is no finite number.

    >>> Thresholds().judge(Evidence(top=0.4, margin=2.0))
    <Outcome.NONE: 'none'>
    >>> Thresholds(top=None, margin=0.2).judge(Evidence(top=0.4, margin=0.1))
    <Outcome.UNSURE: 'unsure'>
    """

    top: float | None = 1.0
    total: float | None = None
    share: float | None = None
    mass: float | None = None
    meant: float | None = None
    margin: float | None = 0.05
    beyond: float | None = 0.0

    def __post_init__(self) -> None:
        for name, value in self.as_json().items():
            if isinstance(value, bool) or not isinstance(value, int | float | None) or not math.isfinite(value or 0.0):
                raise UsageError(f"threshold {name}={value!r} is no finite number")

    @classmethod
    def of(cls, values: Mapping[str, float | None]) -> Self:
        """Return thresholds by name, the others at their defaults; raises UsageError for a name that is none."""
        known = [field.name for field in fields(cls)]
        if odd := [name for name in values if name not in known]:
            raise UsageError(f"no threshold {odd[0]!r}{did_you_mean(odd[0], known)}")
        return cls(**values)

    @classmethod
    def only(cls, values: Mapping[str, float]) -> Self:
        """Return thresholds by name that look at nothing else; raises UsageError for a name that is none."""
        return cls.of({**{field.name: None for field in fields(cls)}, **values})

    def as_json(self) -> dict[str, float | None]:
        """Return all values by name."""
        return asdict(self)

    def judge(self, evidence: Evidence) -> Outcome:
        """See Judge. What is not known holds nothing back."""
        least = (
            (evidence.top, self.top),
            (evidence.total, self.total),
            (evidence.share, self.share),
            (evidence.mass, self.mass),
            (evidence.meant, self.meant),
        )
        if any(bound is not None and value < bound for value, bound in least):
            return Outcome.NONE
        if self.beyond is not None and evidence.beyond > self.beyond:
            return Outcome.NOT_LEGAL
        if self.margin is not None and evidence.margin < self.margin:
            return Outcome.UNSURE
        return Outcome.CHOSEN


def gains(raw: Floats, null: Floats | None) -> tuple[float, float]:
    """Return `Evidence.top` and `Evidence.total` of some opcodes; NaN where there are no null prompts.

    Args:
        raw, null: float64, shape (n,): log-probabilities behind the prompt, and mean behind the null prompts. NaN is an
            opcode that was not scored; what the null prompts find impossible counts as it stands behind the prompt.

    >>> [round(x, 3) for x in gains(np.array([-2.0, -3.0]), np.array([-1.0, -4.0]))]
    [1.0, 1.127]
    """
    if null is None:
        return math.nan, math.nan
    gained = raw - np.where(np.isfinite(null), null, 0.0)
    gained = gained[~np.isnan(gained)]
    if not len(gained):
        return math.nan, math.nan
    return float(gained.max()), float(np.logaddexp.reduce(gained))
