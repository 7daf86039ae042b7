"""Counts the texts of a shape, and lists them in the order of their declaration."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Alt, Both, Chars, Except, Ref, Repeat, Scalar, Seq, Shape, Text, inside_out, parts_of

LISTED = 1 << 17
"""Values of one argument up to which they are listed, and so become a trie; beyond it a grammar holds them."""
TOO_MANY = 1 << 62
"""The count that stands for more texts than anyone can list, and for endlessly many."""


VOLUME = 1 << 24
"""Characters of all the texts of a shape up to which they are listed."""
REPEATED = 61
"""Repetitions up to which the texts are listed."""


class Counter:
    """How many texts a shape has, counted once for each way to write it; TOO_MANY when that is too many to list."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, int, int]] = {}
        """By id: the shape, kept so that its id stays its own; how many texts, and the characters of all of them."""

    def __call__(self, shape: Shape) -> int:
        """Return the count, at most TOO_MANY."""
        if id(shape) not in self._known:
            for part in inside_out(shape):
                if id(part) not in self._known:
                    count, volume = self._count(part)
                    if volume > VOLUME:
                        count = volume = TOO_MANY
                    self._known[id(part)] = (part, min(TOO_MANY, count), volume)
        return self._known[id(shape)][1]

    def _count(self, shape: Shape) -> tuple[int, int]:
        # a shape that leads back to itself is not known yet, and is endless
        each = [self._known.get(id(part), (part, TOO_MANY, TOO_MANY))[1:] for part in parts_of(shape)]
        match shape:
            case Text(text):
                return 1, len(text)
            case Chars(ranges):
                return (size := sum(high - low + 1 for low, high in ranges)), size
            case Scalar(_, listed) if listed:
                return len(listed), sum(map(len, listed))
            case Seq():
                return functools.reduce(_joined, each, (1, 0))
            case Alt():
                return sum(count for count, _ in each), sum(volume for _, volume in each)
            case Repeat(_, low, high):
                return _repeated(each[0], low, high)
        return min(each, default=(TOO_MANY, TOO_MANY))


def _joined(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(TOO_MANY, a[0] * b[0]), min(TOO_MANY, a[0] * b[1] + a[1] * b[0])


def _repeated(each: tuple[int, int], low: int, high: int | None) -> tuple[int, int]:
    if not each[0]:
        return int(low == 0), 0
    if high is None or high > REPEATED:
        return TOO_MANY, TOO_MANY
    sizes = list(itertools.accumulate([each] * high, _joined, initial=(1, 0)))[low:]
    return sum(count for count, _ in sizes), sum(volume for _, volume in sizes)


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
            yield from map("".join, itertools.product(*map(texts, parts)))
        case Alt(parts):
            for part in parts:
                yield from texts(part)
        case Scalar(part, all_of_them):
            yield from all_of_them or texts(part)
        case Repeat(part, low, high):
            for count in itertools.count(low) if high is None else range(low, high + 1):
                yield from map("".join, itertools.product(texts(part), repeat=count))
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
