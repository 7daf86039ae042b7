"""What decisions are called by: rules, how decoding stopped, how a decision ended. Needs no numpy.

Logs hold these names. Whoever only reads or writes a log imports them from here, and does without the kernel's arrays.
"""

from __future__ import annotations

import enum

TOLERANCE = 0.5
"""Above the most that scores moved between batch shapes of one model (benchmarks/bench_shift.py: 0 on smollm2, 0.33 on
gemma3-270m); with a smaller margin a choice may flip."""


class RuleName(enum.StrEnum):
    """The rules by name."""

    GREEDY = "greedy"
    EXACT = "exact"
    CALIBRATED = "calibrated"
    SAMPLE = "sample"
    LEARNED = "learned"


class Stop(enum.StrEnum):
    """Why decoding stopped."""

    COMPLETE = "complete"
    """An opcode was chosen to its end."""
    FORCED = "forced"
    """Only one opcode was legal; the model was not asked."""
    CLOSED = "closed"
    """Arguments were written until the budget was used up; what was open then was closed for the model."""


class Outcome(enum.StrEnum):
    """How a decision ended."""

    CHOSEN = "chosen"
    """An opcode was chosen."""
    NONE = "none"
    """Nothing of what there is seems to be meant."""
    UNSURE = "unsure"
    """Two opcodes are too close to choose between them."""
    NOT_LEGAL = "not legal"
    """What seems to be meant is not legal now."""
