"""A prompt with lines without an order, as token ids: the lead, the lines that all stand behind it, the question.

sequence        0      1      2            attended by the question, which stands behind the longest line
position 0      L      L      L            the lead: one token on all sequences
position 1      a1     b1     c1           three lines, each on a sequence of its own, at the same positions:
position 2      a2     b2                  none of them sees another
position 3      Q                          the question, on a sequence that all lines are attached to
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from kernel.errors import UsageError

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A prompt that shows a set.

    The lines are put into the order of their ids, each once, before anything is planned: two lists of the same lines
    are the same prompt, so their scores are the same to the last bit.

    Attributes:
        lead: what every line stands behind; empty only where there is no line.
        lines: each alone behind the lead; without any it is a prompt like another.
        question: what stands behind all lines; not empty.
    """

    lead: Ids
    lines: tuple[Ids, ...]
    question: Ids

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(sorted({tuple(line) for line in self.lines if line})))
        if self.lines and not self.lead:
            raise UsageError(f"{len(self.lines)} lines without an order stand behind nothing; they need a lead")

    @property
    def begin(self) -> int:
        """Position at which the question begins: behind the longest line."""
        return len(self.lead) + max(map(len, self.lines), default=0)

    @property
    def end(self) -> int:
        """Position behind the question."""
        return self.begin + len(self.question)

    @property
    def flat(self) -> Ids:
        """All ids, the lines in their order."""
        return (*self.lead, *(token for line in self.lines for token in line), *self.question)

    @property
    def lengths(self) -> Ids:
        """Ids of the lead and of each line: where `flat` is cut; the rest is the question."""
        return (len(self.lead), *map(len, self.lines))

    @classmethod
    def cut(cls, ids: Sequence[int], lengths: Iterable[int]) -> Self:
        """Return what has these `flat` ids and `lengths`.

        >>> Listed.cut([1, 2, 3, 4, 5], [1, 2, 1])
        Listed(lead=(1,), lines=((2, 3), (4,)), question=(5,))
        """
        pieces, at = [], 0
        for length in lengths:
            pieces.append(tuple(ids[at : at + length]))
            at += length
        return cls(pieces[0], tuple(pieces[1:]), tuple(ids[at:]))

    def orders(self) -> tuple[Ids, ...]:
        """Return the lines as a list from each of them on: for a memory in which they cannot stand side by side."""
        turned = [self.lines[n:] + self.lines[:n] for n in range(len(self.lines))] or [()]
        return tuple((*self.lead, *(token for line in lines for token in line), *self.question) for lines in turned)


Prompted = Ids | Listed
"""What is read before a decision: a run of ids, or one with lines without an order."""


def end_of(prompt: Prompted) -> int:
    """Return the position behind a prompt."""
    return prompt.end if isinstance(prompt, Listed) else len(prompt)


def cells_of(prompt: Prompted) -> int:
    """Return how many ids a prompt has, which is how many cells of memory it takes."""
    return sum(prompt.lengths) + len(prompt.question) if isinstance(prompt, Listed) else len(prompt)


def flat_of(prompt: Prompted) -> Ids:
    """Return all ids of a prompt."""
    return prompt.flat if isinstance(prompt, Listed) else prompt


def joined(prompt: Prompted, ids: Sequence[int]) -> Prompted:
    """Return a prompt with ids behind it."""
    if isinstance(prompt, Listed):
        return replace(prompt, question=(*prompt.question, *ids))
    return (*prompt, *ids)


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
