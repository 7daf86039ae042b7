"""The arguments of a call as they were found, and how each value came about."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from kernel.memory.passes import Cost
from kernel.tools.fields import Field


@dataclass(frozen=True)
class Chosen:
    """What a field got.

    Attributes:
        text: the value as JSON; None where the field is left out.
        shares: probability of each value that came into question, the most probable first; None leaves it out.
    """

    field: Field
    text: str | None
    shares: tuple[tuple[str | None, float], ...] = ()


@dataclass(frozen=True)
class Filled:
    """The arguments of a call.

    Attributes:
        arguments: they fit the schema.
        fields: what each field got.
        chosen: how many values were a choice between at least two.
        closed: ids that were put at the end of a value because its budget ran out.
        margin: smallest lead of a value over the next, in natural logarithms.
        cost: passes and tokens.
    """

    arguments: dict[str, Any]
    fields: tuple[Chosen, ...] = ()
    chosen: int = 0
    closed: int = 0
    margin: float = math.inf
    cost: Cost = field(default_factory=Cost)
