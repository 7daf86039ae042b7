"""A call: which tool a request asks for, with which arguments. A value; nothing is carried out by making one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.choose.outcome import Outcome


@dataclass(frozen=True)
class Call:
    """What a request asks for.

    Attributes:
        name: the tool, as its server or its author calls it; "" where nothing was chosen.
        arguments: by name, each a value that the schema of the tool allows.
        outcome: `chosen`, or why nothing was: `none` where no tool fits, `unsure` between two.
        probability: of the tool under the rule; 1 where there is only one.
        probabilities: of every tool, by name, the most probable first.
        close: the names of the two tools where the outcome is `unsure`.
        passes, tokens: cost in calls of `llama_decode` and in tokens that were evaluated.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome = Outcome.CHOSEN
    probability: float = 1.0
    probabilities: Mapping[str, float] = field(default_factory=dict)
    close: tuple[str, ...] = ()
    passes: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        """Whether a tool was chosen."""
        return self.outcome is Outcome.CHOSEN
