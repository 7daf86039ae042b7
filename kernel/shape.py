"""Languages of texts: how the arguments of an opcode may be written. Knows no JSON, no tokens, no model.

A shape is built once and never changes; parts may be shared between shapes. Two parts that are written the same need
not be one object, so identity is what the caches here and elsewhere go by.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Ranges = tuple[tuple[int, int], ...]

MANY = 1 << 62
"""What `count` says when there are more texts than anyone can list, or endlessly many."""

ANY: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))
"""Every character that UTF-8 can write."""


class Shape:
    """One of the classes below."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Text(Shape):
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Chars(Shape):
    """One character out of sorted, disjoint ranges of code points, ends included."""

    ranges: Ranges

    def __contains__(self, char: str) -> bool:
        code = ord(char)
        return any(low <= code <= high for low, high in self.ranges)


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Shape):
    """One part after the other."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Alt(Shape):
    """Any one of the parts; with no parts, nothing at all."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(Shape):
    """The part `low` to `high` times; `high` None is without end."""

    part: Shape
    low: int
    high: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Both(Shape):
    """The texts that all parts have in common. The parts hold no Ref and no Scalar."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Except(Shape):
    """The texts of the part but for these. The part holds no Ref and no Scalar."""

    part: Shape
    texts: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Scalar(Shape):
    """A part that is one unit of the surrounding notation, such as a string or a number in JSON.

    `listed` are all its texts in the order of their declaration, where that is what it was declared by.
    """

    part: Shape
    listed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ref(Shape):
    """What `rules[name]` says, which may be filled in later and may lead back here."""

    name: str
    rules: Mapping[str, Shape] = field(repr=False)

    @property
    def target(self) -> Shape:
        """The shape that the name stands for."""
        return self.rules[self.name]


EMPTY = Text("")


def seq(*parts: Shape | str) -> Shape:
    """Join parts; neighbouring texts become one.

    >>> seq("a", Text("b"), Chars(((48, 57),)))
    Seq(parts=(Text(text='ab'), Chars(ranges=((48, 57),))))
    """
    flat: list[Shape] = []
    for part in parts:
        shape = Text(part) if isinstance(part, str) else part
        for piece in shape.parts if isinstance(shape, Seq) else (shape,):
            if isinstance(piece, Text):
                if not piece.text:
                    continue
                if flat and isinstance(flat[-1], Text):
                    flat[-1] = Text(flat[-1].text + piece.text)
                    continue
            flat.append(piece)
    if not flat:
        return EMPTY
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def alt(*parts: Shape) -> Shape:
    """Offer parts; a single one stands for itself."""
    return parts[0] if len(parts) == 1 else Alt(parts)


def listed(texts: tuple[str, ...]) -> Scalar:
    """Return the scalar of a list of texts, each once."""
    texts = tuple(dict.fromkeys(texts))
    return Scalar(alt(*map(Text, texts)), texts)


class Counter:
    """How many texts a shape has, counted once for each way to write it; MANY when that is too many to list."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, int]] = {}

    def __call__(self, shape: Shape) -> int:
        """Return the count, at most MANY."""
        known = self._known.get(id(shape))
        if known is not None:
            return known[1]
        # a shape that leads back to itself meets this entry; the shape is kept so that its id stays its own
        self._known[id(shape)] = (shape, MANY)
        count = min(MANY, self._count(shape))
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
                    product = min(MANY, product * self(part))
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
            return MANY
        if each <= 1:
            return (high - low + 1) if each else int(low == 0)
        total: int = sum(each**k for k in range(low, high + 1))
        return min(MANY, total)


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
            rest = [set(texts(part)) for part in parts[1:]]
            yield from (text for text in texts(parts[0]) if all(text in others for others in rest))
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


def normal(ranges: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> Ranges:
    """Sort ranges and join those that touch; leave out surrogates, which UTF-8 cannot write.

    >>> normal([(51, 57), (48, 50), (97, 97)])
    ((48, 57), (97, 97))
    """
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return common(tuple(out), ANY)


def common(a: Ranges, b: Ranges) -> Ranges:
    """Return the characters in both.

    >>> common(((48, 57), (97, 122)), ((50, 99),))
    ((50, 57), (97, 99))
    """
    return tuple((max(x, u), min(y, v)) for x, y in a for u, v in b if max(x, u) <= min(y, v))


def without(ranges: Ranges) -> Ranges:
    """Return all characters but these.

    >>> without(((0, 0x10FFFE),))
    ((1114111, 1114111),)
    """
    gaps, start = [], 0
    for low, high in ranges:
        gaps.append((start, low - 1))
        start = high + 1
    gaps.append((start, 0x10FFFF))
    return normal([gap for gap in gaps if gap[0] <= gap[1]])
