"""What a decision asks of the runtime, as immutable steps: copies and drops of sequences, and batches of tokens.

A *step* is one call of the runtime. The planners (`attention`, `recurrent`) write steps without a runtime at hand, and
`Memory.carry_out` runs them; so a plan can be printed, compared and tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.memory.tree import ScoreTree

MAIN = 0
"""The sequence of the session's prompt."""

Ids = tuple[int, ...]

ReadRow = Callable[[int, int, NDArray[np.float32]], None]
"""(stem, point, row): called once for each row that was asked for, before the next pass overwrites it."""


class Room(NamedTuple):
    """What the runtime holds at most: cells of memory, tokens of one pass, sequences."""

    n_ctx: int
    n_batch: int
    n_seq: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What was asked of the model: calls of `llama_decode`, tokens in them, and removals that the memory refused."""

    passes: int = 0
    tokens: int = 0
    refused_removals: int = 0

    def __add__(self, other: Cost) -> Cost:
        refused = self.refused_removals + other.refused_removals
        return Cost(self.passes + other.passes, self.tokens + other.tokens, refused)

    def __sub__(self, earlier: Cost) -> Cost:
        return Cost(
            self.passes - earlier.passes,
            self.tokens - earlier.tokens,
            self.refused_removals - earlier.refused_removals,
        )


class Token(NamedTuple):
    """One token of a batch; `output` is the (stem, point) as which its row is read, or None where it is not."""

    id: int
    position: int
    sequences: tuple[int, ...]
    output: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens to evaluate together; in several passes where they are more than the runtime takes at once."""

    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Let the empty sequence `target` begin with the first `length` positions of `source`."""

    source: int
    target: int
    length: int


@dataclass(frozen=True, slots=True)
class Drop:
    """Free a sequence."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Clear:
    """Free all sequences."""


Step = Batch | Copy | Drop | Clear


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a decision, and what the memory holds after them on the main sequence and on those that stay."""

    steps: tuple[Step, ...]
    held: Ids
    kept: tuple[Ids, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """Prompts, and the token tree that is evaluated behind each of them.

    Attributes:
        prompts: token ids; the first is the session's prompt.
        keep: so many of the first prompts stay in memory, where it can hold them: the next decision finds what they
            begin with.
    """

    prompts: tuple[Ids, ...]
    tree: ScoreTree
    keep: int = 1


@dataclass(frozen=True, slots=True)
class Stem:
    """One prompt, the tree's forced prefix behind it, on the sequence of its number.

    Attributes:
        cached: ids before it are in memory already.
        shared: ids before it are evaluated together with the `source`, the stem that begins with them too.
        own: what is cached stands on the stem's own sequence, from the decision before.
    """

    number: int
    ids: Ids
    cached: int = 0
    shared: int = 0
    source: int | None = None
    own: bool = False

    @property
    def new(self) -> int:
        """How many ids are still to be evaluated for this stem alone."""
        return len(self.ids) - max(self.cached, self.shared)


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


def fed(sequence: int, ids: Ids, span: range, room: Room) -> list[Batch]:
    """Return full batches of the ids at the positions of `span`, on one sequence, of which no row is read."""
    return [
        Batch(tuple(Token(ids[position], position, (sequence,)) for position in span[begin : begin + room.n_batch]))
        for begin in range(0, len(span), room.n_batch)
    ]
