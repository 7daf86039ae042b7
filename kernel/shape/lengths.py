"""Upper bounds, in bytes, of the texts of a shape and of what ends a text that was begun.

With such a bound a budget that is still large needs no search for the shortest ending.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Alt, Both, Chars, Except, Repeat, Scalar, Seq, Shape, Text

UTF8 = 4
"""Bytes of the longest character."""


def longest_rest(recogniser: Recogniser, shape: Shape) -> int | None:
    """Return how many bytes at most end a text of the shape from anywhere in it; None where no bound is known."""

    def least(part: Shape) -> int:
        text = recogniser.minimal(part)
        return 0 if text is None else len(text.encode())

    def most(parts: Sequence[int | None]) -> int | None:
        known = [part for part in parts if part is not None]
        return max(known, default=0) if len(known) == len(parts) else None

    memo: dict[int, int | None] = {}

    def of(part: Shape) -> int | None:
        if id(part) not in memo:
            memo[id(part)] = measure(part)
        return memo[id(part)]

    def measure(part: Shape) -> int | None:
        match part:
            case Text(text):
                return len(text.encode())
            case Chars():
                return UTF8
            case Seq(parts):
                after = 0
                ends: list[int | None] = []
                for each in reversed(parts):
                    end = of(each)
                    ends.append(None if end is None else end + after)
                    after += least(each)
                return most(ends)
            case Alt(parts):
                return most([of(each) for each in parts])
            case Scalar(inner):
                return of(inner)
            case Repeat(inner, low, _):
                end = of(inner)
                return None if end is None else end + max(0, low - 1) * least(inner)
            case Both() | Except():
                return longest(part)
        return None

    return of(shape)


def longest(shape: Shape) -> int | None:
    """Return the bytes of the longest text of a shape, or more than that; None when there is no longest text."""
    match shape:
        case Text(text):
            return len(text.encode())
        case Chars(ranges):
            return len(chr(ranges[-1][1]).encode()) if ranges else 0
        case Seq(parts):
            sizes = [longest(part) for part in parts]
            return None if None in sizes else sum(size for size in sizes if size is not None)
        case Alt(parts):
            sizes = [longest(part) for part in parts]
            return None if None in sizes else max((size for size in sizes if size is not None), default=0)
        case Scalar(part) | Except(part):
            return longest(part)
        case Repeat(part, _, high):
            size = longest(part)
            return None if size is None or high is None else size * high
        case Both(parts):
            return min((size for part in parts if (size := longest(part)) is not None), default=None)
    return None
