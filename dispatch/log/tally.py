"""Sums over decisions as a log holds them: of one session while it is played, or of many logs afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from dispatch.log.records import DecisionRecord
from kernel.choose.kinds import Outcome, Stop

SUMMED = (
    "passes", "tokens_evaluated", "line_hits", "line_misses", "tokens_saved", "chosen_tokens", "forced_tokens",
    "refused_removals", "model_ms", "planner_ms",
)  # fmt: skip
"""Fields of a decision that are added up."""
TOLD = ("agreed", "agreed_first", "with_offer", "held", "passes", "tokens_evaluated")
"""Sums that stand in the last line of a log."""


@dataclass
class Tally:
    """Sums that grow decision by decision. A session that goes on after a break counts its logged decisions first."""

    decisions: int = 0
    agreed: int = 0
    """Decisions that took one of the planner's options that the prompt showed."""
    agreed_first: int = 0
    """Decisions that took the best of them."""
    with_offer: int = 0
    """Decisions whose prompt showed any."""
    passes: int = 0
    tokens_evaluated: int = 0
    line_hits: int = 0
    line_misses: int = 0
    tokens_saved: int = 0
    chosen_tokens: int = 0
    forced_tokens: int = 0
    legal_mass: float = 0.0
    smallest_legal_mass: float = 1.0
    refused: int = 0
    """Instructions that the engine did not take, the failed ones included."""
    failed: int = 0
    """Instructions that were tried and failed outside the engine."""
    held: int = 0
    """Decisions after which nothing was done, as nothing was chosen or nobody agreed."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """How many decisions ended in which way."""
    confirmed: Counter[str] = field(default_factory=Counter)
    """What became of the instructions that somebody has to agree to."""
    closed: int = 0
    """Instructions that were ended because their token budget ran out."""
    refused_removals: int = 0
    model_ms: float = 0.0
    planner_ms: float = 0.0
    by_cartridge: Counter[str] = field(default_factory=Counter)
    """Decisions of each cartridge."""

    def add(self, record: DecisionRecord) -> None:
        """Count one decision."""
        self.decisions += 1
        self.by_cartridge[record.cartridge] += 1
        self.refused += record.refused
        self.failed += record.failed is not None
        self.held += record.held
        self.outcomes[record.outcome or Outcome.CHOSEN] += 1
        if record.confirmed is not None:
            self.confirmed[record.confirmed] += 1
        self.closed += record.stop == Stop.CLOSED
        if record.offered:
            first, any_ = agreement(record)
            self.with_offer, self.agreed = self.with_offer + 1, self.agreed + any_
            self.agreed_first += first
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + (getattr(record, name) or 0))
        if record.legal_mass is not None:
            self.legal_mass += record.legal_mass
            self.smallest_legal_mass = min(self.smallest_legal_mass, record.legal_mass)

    @property
    def totals(self) -> dict[str, int | float]:
        """The sums of `TOLD`."""
        return {name: getattr(self, name) for name in TOLD}


def agreement(record: DecisionRecord) -> tuple[bool, bool]:
    """Return whether the choice is the planner's best option, and whether it is one that it offered."""
    offered = [offer.instruction for offer in record.offered or ()]
    return bool(offered) and record.instruction == offered[0], record.instruction in offered
