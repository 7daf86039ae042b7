"""What a decision asks of the runtime, as immutable steps: copies and drops of sequences, and batches of tokens.

A *step* is one call of the runtime. The planners (`attention`, `recurrent`) write steps without a runtime at hand, and
`Memory.carry_out` runs them; so a plan can be printed, compared and tested by itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.memory.listed import Ids as Ids
from kernel.memory.listed import Prompted
from kernel.memory.listed import common_prefix as common_prefix
from kernel.memory.store import Stored
from kernel.memory.tree import ScoreTree

MAIN = 0
"""The sequence of the session's prompt."""

ReadRow = Callable[[int, int, NDArray[np.float32]], None]
"""(stem, point, row): called once for each row that was asked for, before the next pass overwrites it."""


class Room(NamedTuple):
    """What the runtime holds at most: cells of memory, tokens of one pass, sequences."""

    n_ctx: int
    n_batch: int
    n_seq: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What was asked of the model, and what the line store spared it.

    Attributes:
        passes, tokens: calls of `llama_decode`, and tokens in them.
        refused_removals: removals that the memory refused.
        line_hits, line_misses: lines of prompts that were stored, and that had to be evaluated.
        tokens_saved: tokens of the lines and leads that were stored.
    """

    passes: int = 0
    tokens: int = 0
    refused_removals: int = 0
    line_hits: int = 0
    line_misses: int = 0
    tokens_saved: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, astuple(self), astuple(other)))

    def __sub__(self, earlier: Cost) -> Cost:
        return Cost(*map(operator.sub, astuple(self), astuple(earlier)))


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
    """Let `target`, which begins like `source` up to `begin`, hold the positions from there to `length` as well."""

    source: int
    target: int
    length: int
    begin: int = 0


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
    """The steps of a decision, and what the memory holds after them.

    Attributes:
        held, kept: ids on the main sequence, and on those that stay beside it.
        stored: the lines that are stored; None where the plan leaves them as they are.
        found: hits, misses and tokens saved.
    """

    steps: tuple[Step, ...]
    held: Ids
    kept: tuple[Ids, ...] = ()
    stored: Stored | None = None
    found: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Work:
    """Prompts, and the token tree that is evaluated behind each of them.

    Attributes:
        prompts: the first is the session's prompt.
        keep: so many of the first prompts stay in memory, where it can hold them: the next decision finds what they
            begin with.
        seen: ids whose logits right behind each prompt are kept, int32; None keeps none.
    """

    prompts: tuple[Prompted, ...]
    tree: ScoreTree
    keep: int = 1
    seen: NDArray[np.int32] | None = None


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


def fed(sequence: int, ids: Ids, span: range, room: Room) -> list[Batch]:
    """Return full batches of the ids at the positions of `span`, on one sequence, of which no row is read."""
    return [
        Batch(tuple(Token(ids[position], position, (sequence,)) for position in span[begin : begin + room.n_batch]))
        for begin in range(0, len(span), room.n_batch)
    ]
