"""From log-probabilities to a winner: what each rule compares, and what the comparison says of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.choose.question import Floats, Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import LogitsError
from kernel.trie.opcodes import OpcodeSet


@dataclass(frozen=True)
class Comparison:
    """The scores of the legal opcodes and which of them won.

    Attributes:
        leaves: opcode indices; the arrays have one entry each, in this order.
        scores: what the rule compared; NaN where a search proved that the opcode cannot win.
        raw, null: log-probabilities behind the prompt and (mean) behind the null prompts.
        shares: probability of each opcode under the rule.
        position: of the winner in the arrays.
        margin: the winner's score minus that of the second.
        mass: probability that the full vocabulary gave to the legal ids at the first branch.
    """

    leaves: NDArray[np.int32]
    scores: Floats
    raw: Floats
    null: Floats | None
    shares: Floats
    position: int
    margin: float
    mass: float

    @property
    def index(self) -> int:
        """Opcode index of the winner."""
        return int(self.leaves[self.position])


def compared(question: Question, leaves: NDArray[np.int32], raw: Floats, null: Floats | None) -> Floats:
    """Return the scores of opcodes that were all evaluated; see `combined`."""
    prior = None if question.prior is None else question.prior[leaves]
    return combined(raw, null, question.by, prior)


def combined(raw: Floats, null: Floats | None, rule: Rule, prior: Floats | None = None) -> Floats:
    """Return what the rule compares.

    An opcode that is impossible (-inf) behind the prompt stays so, whatever the null says; one that only the null
    finds impossible is compared as if the null had nothing against it. The planner's scores are centred and scaled
    to its best and worst being 1 apart, so that a weight means log-probability; options it does not know get its worst.

    Args:
        raw, null: float64, shape (n,): log-probabilities behind the prompt, and behind the null prompts.
        prior: float64, shape (n,): the planner's scores, NaN where it has none.
    """
    scores = raw.copy()
    if null is not None:
        finite = np.isfinite(null)
        scores[finite] -= rule.calibration * null[finite]
    if prior is not None and rule.planner_weight:
        known = prior[np.isfinite(prior)]
        if len(known):
            span = float(known.max() - known.min()) or 1.0
            filled = np.where(np.isfinite(prior), prior, known.min())
            scores = scores + rule.planner_weight * (filled - known.max()) / span
    return scores


def picked(question: Question, scores: Floats, leaves: NDArray[np.int32]) -> tuple[int, Floats]:
    """Return the position of the winner and the probability of each opcode under the rule.

    Of equal scores the one wins that comes first in the order of ids.
    """
    rule = question.by
    if rule.name is RuleName.SAMPLE:
        shares = softmax(scores / rule.temperature)
        return int(np.random.default_rng([rule.seed, question.number]).choice(len(shares), p=shares)), shares
    return first_best(scores, question.opcodes, leaves), softmax(scores)


def softmax(scores: Floats) -> Floats:
    """Return probabilities; raises LogitsError where no score is finite.

    >>> softmax(np.log([1.0, 3.0])).round(2).tolist()
    [0.25, 0.75]
    """
    weights = np.exp(scores - finite_top(scores, float(np.max(scores, initial=-np.inf))))
    out: Floats = weights / weights.sum()
    return out


def finite_top(scores: Floats, top: float) -> float:
    """Return the highest score; raises LogitsError where it is not finite."""
    if not np.isfinite(top):
        raise LogitsError(f"none of {len(scores)} legal opcodes has a finite log-probability")
    return top


def first_best(scores: Floats, opcodes: OpcodeSet, leaves: NDArray[np.int32]) -> int:
    """Return the position of the highest score; of equal ones that which comes first in the order of ids."""
    best = np.flatnonzero(scores == scores.max())
    if len(best) == 1:
        return int(best[0])
    return int(min(best.tolist(), key=lambda n: int(opcodes.trie.rank_of[leaves[n]])))


def margin_of(scores: Floats, position: int) -> float:
    """Return how far the winner is ahead of the second; infinite where nothing else was scored."""
    others = np.delete(scores, position)
    others = others[~np.isnan(others)]
    return float(scores[position] - others.max()) if len(others) else float("inf")
