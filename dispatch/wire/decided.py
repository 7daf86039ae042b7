"""A decision as one JSON document, the same for the command line and for programs that ask over HTTP."""

from __future__ import annotations

import math
from typing import Any

from kernel.choose.decision import Decision


def order(decision: Decision) -> list[int]:
    """Return positions in the arrays, the chosen one first, then the most probable; unknown ones last."""
    shares = [-1.0 if math.isnan(s) else s for s in decision.shares.tolist()]
    chosen = decision.position
    return sorted(range(len(shares)), key=lambda i: (i != chosen, -shares[i], int(decision.leaves[i])))


def document(decision: Decision) -> dict[str, Any]:
    """Return what was chosen and why, the options in the order of `order`; a number that is not finite is null."""
    nulls = [None] * len(decision.texts) if decision.null is None else decision.null.tolist()
    rows = zip(
        decision.texts,
        decision.leaves.tolist(),
        decision.shares.tolist(),
        decision.raw.tolist(),
        nulls,
        decision.scores.tolist(),
        strict=True,
    )
    names = ("text", "index", "probability", "logprob", "null_logprob", "score")
    options = [dict(zip(names, map(_finite, row), strict=True)) for row in rows]
    alike = ("text", "index", "rule", "probability", "margin", "legal_mass")
    counts = ("passes", "tokens_evaluated", "chosen_tokens", "forced_tokens")
    return {
        **{name: _finite(getattr(decision, name)) for name in alike},
        "stop": str(decision.stop),
        **{name: getattr(decision, name) for name in counts},
        "options": [options[i] for i in order(decision)],
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
