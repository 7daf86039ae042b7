"""Counts the texts of a shape, and lists them in the order of their declaration."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Scalar, Seq, Shape, Text

LISTED = 1 << 17
"""Values of one argument up to which they are listed, and so become a trie; beyond it a grammar holds them."""
TOO_MANY = 1 << 62
"""The count that stands for more texts than anyone can list, and for endlessly many."""


class Counter:
    """How many texts a shape has, counted once for each way to write it; TOO_MANY when that is too many to list."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, int]] = {}

    def __call__(self, shape: Shape) -> int:
        """Return the count, at most TOO_MANY."""
        known = self._known.get(id(shape))
        if known is not None:
            return known[1]
        # a shape that leads back to itself meets this entry; the shape is kept so that its id stays its own
        self._known[id(shape)] = (shape, TOO_MANY)
        count = min(TOO_MANY, self._count(shape))
        self._known[id(shape)] = (shape, count)
        return count

    def _count(self, shape: Shape) -> int:
        match shape:
            case Text():
                return 1
            case Chars(ranges):
                return sum(high - low + 1 for low, high in ranges)
            case Seq(parts):
                product = 1
                for part in parts:
                    product = min(TOO_MANY, product * self(part))
                return product
            case Alt(parts):
                return sum(map(self, parts))
            case Scalar(part, texts):
                return len(texts) or self(part)
            case Repeat(part, low, high):
                return self._repeated(self(part), low, high)
            case Both(parts):
                return min(map(self, parts))
            case Except(part):
                return self(part)
            case Ref():
                return self(shape.target)
        raise TypeError(f"{shape!r} is not a shape")

    @staticmethod
    def _repeated(each: int, low: int, high: int | None) -> int:
        if high is None or (each > 1 and high > 61):
            return TOO_MANY
        if each <= 1:
            return (high - low + 1) if each else int(low == 0)
        total: int = sum(each**k for k in range(low, high + 1))
        return min(TOO_MANY, total)


def texts(shape: Shape) -> Iterator[str]:
    """Yield every text of a shape, in declaration order; a text that can be written two ways comes twice.

    Ask a Counter first: this does not end for a shape without end.
    """
    match shape:
        case Text(text):
            yield text
        case Chars(ranges):
            for low, high in ranges:
                yield from map(chr, range(low, high + 1))
        case Seq(parts):
            yield from _joined(parts, 0)
        case Alt(parts):
            for part in parts:
                yield from texts(part)
        case Scalar(part, all_of_them):
            yield from all_of_them or texts(part)
        case Repeat(part, low, high):
            for count in itertools.count(low) if high is None else range(low, high + 1):
                yield from _joined((part,) * count, 0)
        case Both(parts):
            few = min(parts, key=Counter())
            readers = [Recogniser(part) for part in parts if part is not few]
            yield from (text for text in texts(few) if all(reader.accepts(text) for reader in readers))
        case Except(part, without):
            yield from (text for text in texts(part) if text not in without)
        case Ref():
            yield from texts(shape.target)
        case _:
            raise TypeError(f"{shape!r} is not a shape")


def _joined(parts: tuple[Shape, ...], at: int) -> Iterator[str]:
    if at == len(parts):
        yield ""
        return
    for head in texts(parts[at]):
        for tail in _joined(parts, at + 1):
            yield head + tail
