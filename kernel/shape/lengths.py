"""Upper bounds, in bytes, of the texts of a shape and of what ends a text that was begun.

With such a bound a budget that is still large needs no search for the shortest ending.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Both, Chars, Except, Ref, Repeat, Seq, Shape, Text, inside_out, parts_of

UTF8 = 4
"""Bytes of the longest character."""


def longest_rest(recogniser: Recogniser, shape: Shape) -> int | None:
    """Return how many bytes at most end a text of the shape from anywhere in it; None where no bound is known."""
    texts: dict[int, int | None] = {}
    """By the id of a part: the bytes of its longest text, or more; None when there is no longest one."""
    rests: dict[int, int | None] = {}
    for part in inside_out(shape):
        inner = [(texts.get(id(each)), rests.get(id(each))) for each in parts_of(part)]
        longest, ends = _all([text for text, _ in inner]), [rest for _, rest in inner]
        text, rest = (None if longest is None else max(longest, default=0)), _most(ends)
        match part:
            case Text(fixed):
                text = rest = len(fixed.encode())
            case Chars():
                text = rest = UTF8
            case Seq(parts):
                text, rest = None if longest is None else sum(longest), _in_sequence(recogniser, parts, ends)
            case Repeat(each, low, high):
                text = None if text is None or high is None else text * high
                rest = None if rest is None else rest + max(0, low - 1) * (recogniser.size(each) or 0)
            case Both():
                text = rest = min((size for size, _ in inner if size is not None), default=None)
            case Except():
                rest = text
            case Ref():
                text = rest = None
        texts[id(part)], rests[id(part)] = text, rest
    return rests[id(shape)]


def _in_sequence(recogniser: Recogniser, parts: Sequence[Shape], ends: Sequence[int | None]) -> int | None:
    after = 0
    whole: list[int | None] = []
    for part, end in zip(reversed(parts), reversed(ends), strict=True):
        whole.append(None if end is None else end + after)
        after += recogniser.size(part) or 0
    return _most(whole)


def _all(sizes: Sequence[int | None]) -> list[int] | None:
    return None if None in sizes else [size for size in sizes if size is not None]


def _most(sizes: Sequence[int | None]) -> int | None:
    known = _all(sizes)
    return None if known is None else max(known, default=0)
