"""Shapes of JSON arrays and objects, made of the shapes of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel.canon import canonical
from kernel.shape.shape import EMPTY, NOTHING, Except, Repeat, Scalar, Shape, alt, listed, repeat, seq
from kernel.shape.strings import CHARACTER


@dataclass(frozen=True)
class Member:
    """A key of an object with the shape of its value; one that is not required may be left out."""

    name: str
    shape: Shape
    required: bool


def array(first: Sequence[Shape], rest: Shape | None, low: int, high: int | None) -> Shape:
    """Return arrays whose leading items have the shapes of `first`, all others that of `rest` (None: there are none).

    Args:
        low, high: bounds of the number of items; there are low .. high.
    """
    if rest is None:
        high = len(first) if high is None else min(high, len(first))
    if high is not None and low > high:
        return NOTHING
    fixed = list(first[: high if high is not None else len(first)])
    more: Shape = EMPTY
    if rest is not None and (high is None or high > len(fixed)):
        left = None if high is None else high - len(fixed)
        if fixed:
            more = repeat(seq(",", rest), max(0, low - len(fixed)), left)
        else:
            tail = repeat(seq(",", rest), max(0, low - 1), None if left is None else left - 1)
            more = seq(rest, tail)
            if low == 0:
                more = alt(EMPTY, more)
    for at in reversed(range(len(fixed))):
        more = seq("," if at else "", fixed[at], more)
        if low <= at:  # the array may end before this item
            more = alt(EMPTY, more)
    return seq("[", more, "]")


def mapping(members: Sequence[Member], extra: Shape | None = None, low: int = 0, high: int | None = None) -> Shape:
    """Return objects with these keys in this order, then any others with values of shape `extra` (None: no others).

    Args:
        low, high: bounds of the number of keys.
    """
    others: Shape | None = None
    if extra is not None:
        text = seq('"', Repeat(CHARACTER, 0, None), '"')
        names = frozenset(canonical(member.name) for member in members)
        others = seq(Scalar(Except(text, names) if names else text), ":", extra)
    if high is None and low <= max(1, sum(member.required for member in members)):
        return seq("{", _unbounded(members, others, low), "}")
    return seq("{", _counted(members, others, low, high), "}")


def _unbounded(members: Sequence[Member], others: Shape | None, low: int) -> Shape:
    """Return what stands between the braces where the number of keys needs no counting; `low` is at most 1 here.

    Halves are made of halves, so that the shape of a thousand keys is ten levels deep and not a thousand:

        more     what follows a key: each key with a comma in front, or nothing where it may be left out
        first    at least one key, the first without a comma: `first` of the left half and then `more` of the right one,
                 or, where the left half may be left out as a whole, `first` of the right one
    """
    firsts = [seq(f"{canonical(member.name)}:", member.shape) for member in members]
    mores = [seq(f",{canonical(member.name)}:", member.shape) for member in members]
    mores = [each if member.required else alt(each, EMPTY) for member, each in zip(members, mores, strict=True)]
    needed = [member.required for member in members]
    if others is not None:
        firsts.append(seq(others, Repeat(seq(",", others), 0, None)))
        mores.append(Repeat(seq(",", others), 0, None))
        needed.append(False)

    def halves(at: int, end: int) -> tuple[Shape, Shape, bool]:
        """Return `first` and `more` of some keys, and whether one of them is required."""
        if end - at == 1:
            return firsts[at], mores[at], needed[at]
        middle = (at + end) // 2
        (first, more, must), (later, rest, must_later) = halves(at, middle), halves(middle, end)
        begun = seq(first, rest)
        return begun if must else alt(begun, later), seq(more, rest), must or must_later

    if not firsts:
        return EMPTY if low == 0 else NOTHING
    shape, _, must = halves(0, len(firsts))
    return shape if must or low else alt(shape, EMPTY)


def _counted(members: Sequence[Member], others: Shape | None, low: int, high: int | None) -> Shape:
    """Return what stands between the braces, low .. high keys in all; made from the last key on."""
    most = max(low, high or 0, 1)
    after: list[Shape] = []
    """What may follow when so many keys (at most `most` of them counted) stand before."""
    for count in range(most + 1):
        missing = max(0, low - count)
        left = None if high is None else high - count
        if others is None or left == 0:
            after.append(EMPTY if missing == 0 else NOTHING)
        elif count:
            after.append(repeat(seq(",", others), missing, left))
        else:
            tail = repeat(seq(",", others), max(0, missing - 1), None if left is None else left - 1)
            shape = seq(others, tail)
            after.append(shape if missing else alt(EMPTY, shape))
    for member in reversed(members):
        before: list[Shape] = []
        for count in range(most + 1):
            key = ("," if count else "") + canonical(member.name) + ":"
            more = high is None or count < high
            taken = seq(key, member.shape, after[min(count + 1, most)]) if more else NOTHING
            before.append(taken if member.required else alt(taken, after[count]))
        after = before
    return after[0]


def distinct(values: Sequence[Sequence[str]], low: int, high: int | None) -> Shape:
    """Return arrays of low .. high of these values, none of them twice; a value is given by its texts.

    What may follow depends on which values have come, so there is a shape for each set of them, the full one first.
    """
    most = len(values) if high is None else min(high, len(values))
    items = [listed(tuple(texts)) for texts in values]
    after: dict[int, Shape] = {}
    for used in range((1 << len(values)) - 1, -1, -1):
        count = used.bit_count()
        choices: list[Shape] = [EMPTY] if count >= low else []
        if count < most:
            for n, item in enumerate(items):
                if not used >> n & 1:
                    choices.append(seq("," if used else "", item, after[used | 1 << n]))
        after[used] = alt(*choices) if count <= most else NOTHING
    return seq("[", after[0], "]")
