"""What the log keeps of a decision that the kernel has made: its arrays as legal rows, its counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from dispatch.log.objects import LegalRow
from dispatch.log.scores import MOST
from kernel.choose.decision import Decision
from kernel.choose.kinds import Outcome

LINES = ("line_hits", "line_misses", "tokens_saved")
"""What a decision among lines without an order knows of the line store."""
DIGITS = 6
"""Decimals of a log-probability: far below what two batch shapes differ by."""


def chosen_fields(decision: Decision, *, most: int = MOST) -> dict[str, Any]:
    """Return the fields of a DecisionRecord that the kernel's decision knows.

    Args:
        decision: what the rule chose.
        most: largest number of legal rows; the choice is always among them.
    """
    order = np.arange(len(decision.leaves))
    if len(order) > most:
        best = np.argsort(-np.nan_to_num(decision.scores, nan=-np.inf), kind="stable")[:most]
        if decision.position not in best:
            best[-1] = decision.position
        order = np.sort(best)
    columns = {"logprob": decision.raw, "null": decision.null, "score": decision.scores, "probability": decision.shares}
    numbers = {name: np.round(values[order], DIGITS).tolist() for name, values in columns.items() if values is not None}
    labels = decision.opcodes.labels
    rows = tuple(
        LegalRow(text=labels[leaf], **{name: values[at] for name, values in numbers.items()})
        for at, leaf in enumerate(decision.leaves[order].tolist())
    )
    return {
        "text": decision.text,
        "ids": decision.ids,
        "rule": decision.rule,
        "legal": rows,
        "legal_count": len(decision.leaves),
        "chosen": int(np.flatnonzero(order == decision.position)[0]),
        "margin": round(decision.margin, DIGITS),
        "legal_mass": round(decision.legal_mass, DIGITS),
        "passes": decision.passes,
        "tokens_evaluated": decision.tokens_evaluated,
        **({name: getattr(decision, name) for name in LINES} if decision.line_hits or decision.line_misses else {}),
        "chosen_tokens": decision.chosen_tokens,
        "forced_tokens": decision.forced_tokens,
        "outcome": None if decision.outcome is Outcome.CHOSEN else decision.outcome,
        "close": decision.close or None,
        "preferred": decision.preferred_text,
        "preferred_by": None if decision.preferred is None else round(decision.preferred_by, DIGITS),
        "refused_removals": decision.refused_removals or None,
        "stop": decision.stop.value,
    }
