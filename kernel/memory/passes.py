"""What a pass is made of: prompts on sequences, tokens in a batch, what it cost. Knows no opcode, no runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MAIN = 0
"""The sequence of the session's prompt."""

ReadRow = Callable[[int, int, NDArray[np.float32]], None]
"""(stem, point, row): called once for each row that was asked for, before the next pass overwrites it."""


@dataclass
class Cost:
    """What a decision asked of the model."""

    passes: int = 0
    tokens: int = 0
    refused_removals: int = 0

    def __sub__(self, earlier: Cost) -> Cost:
        return Cost(
            self.passes - earlier.passes,
            self.tokens - earlier.tokens,
            self.refused_removals - earlier.refused_removals,
        )


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading ids are equal.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


@dataclass
class Batch:
    """Tokens of one pass and which rows are wanted."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sequences: list[list[int]] = field(default_factory=list)
    outputs: list[tuple[int, int, int]] = field(default_factory=list)  # (index in the batch, stem, point)

    def add(self, token: int, position: int, sequences: list[int]) -> int:
        """Append a token; return its index."""
        self.tokens.append(token)
        self.positions.append(position)
        self.sequences.append(sequences)
        return len(self.tokens) - 1


@dataclass
class Stem:
    """One prompt on its own sequence. Ids before `cached` are in memory; ids before `shared` come with another stem.

    Attributes:
        source: the stem that it shares its beginning with; None for the main one, and for one that shares with none.
        own: whether what is cached is on its own sequence already, from the decision before.
    """

    number: int
    ids: list[int]
    cached: int = 0
    shared: int = 0
    source: Stem | None = None
    own: bool = False

    @property
    def new(self) -> int:
        """How many ids are still to be evaluated for this stem alone."""
        return len(self.ids) - max(self.cached, self.shared)
