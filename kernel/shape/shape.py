"""Shapes: the languages of the texts that an argument may have, as trees of a few classes.

A shape is built once and never changes, and shapes may share parts. Two shapes that are written alike need not be one
object, so caches go by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Ranges = tuple[tuple[int, int], ...]

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


NOTHING = Alt(())
"""The shape without any text."""
JOINED = 64
"""Parts up to which a sequence within a sequence is written out: a shape that holds another twice stays small."""


def seq(*parts: Shape | str) -> Shape:
    """Join parts; neighbouring texts become one. A part that has no text leaves none to the whole.

    >>> seq("a", Text("b"), Chars(((48, 57),)))
    Seq(parts=(Text(text='ab'), Chars(ranges=((48, 57),))))
    >>> seq("a", alt()) is NOTHING
    True
    """
    flat: list[Shape] = []
    for part in parts:
        shape = Text(part) if isinstance(part, str) else part
        if shape is NOTHING:
            return NOTHING
        for piece in shape.parts if isinstance(shape, Seq) and len(shape.parts) <= JOINED else (shape,):
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
    """Offer parts but for those without any text, each object once; a single one stands for itself."""
    some = tuple({id(part): part for part in parts if part is not NOTHING}.values())
    return some[0] if len(some) == 1 else Alt(some) if some else NOTHING


def repeat(part: Shape, low: int, high: int | None) -> Shape:
    """Say a part `low` to `high` times; one without any text can only be left out."""
    return Repeat(part, low, high) if part is not NOTHING else NOTHING if low else EMPTY


def parts_of(shape: Shape) -> tuple[Shape, ...]:
    """Return the shapes that a shape is made of; of a Ref, what its name stands for, if that is known already."""
    match shape:
        case Seq(parts) | Alt(parts) | Both(parts):
            return parts
        case Repeat(part) | Scalar(part) | Except(part):
            return (part,)
        case Ref(name, rules) if name in rules:
            return (rules[name],)
    return ()


def inside_out(shape: Shape, parts: Callable[[Shape], tuple[Shape, ...]] = parts_of) -> list[Shape]:
    """Return a shape and all it is made of, each object once and after its parts, without recursion.

    Only a Ref that leads back to a shape around it comes before what it stands for.
    """
    order: list[Shape] = []
    seen: set[int] = set()
    todo = [(shape, False)]
    while todo:
        part, done = todo.pop()
        if done:
            order.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            todo.append((part, True))
            todo += [(each, False) for each in reversed(parts(part))]
    return order


def listed(texts: tuple[str, ...]) -> Scalar:
    """Return the scalar of a list of texts, each once."""
    texts = tuple(dict.fromkeys(texts))
    return Scalar(alt(*map(Text, texts)), texts)


def normal(ranges: Iterable[tuple[int, int]]) -> Ranges:
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
