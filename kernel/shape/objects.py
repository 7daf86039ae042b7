"""Shapes of JSON arrays and objects, made of the shapes of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel.canon import canonical
from kernel.shape.shape import EMPTY, Alt, Except, Repeat, Scalar, Shape, alt, seq
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
        return Alt(())
    fixed = list(first[: high if high is not None else len(first)])
    more: Shape = EMPTY
    if rest is not None and (high is None or high > len(fixed)):
        left = None if high is None else high - len(fixed)
        if fixed:
            more = Repeat(seq(",", rest), max(0, low - len(fixed)), left)
        else:
            tail = Repeat(seq(",", rest), max(0, low - 1), None if left is None else left - 1)
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
    most = max(low, high or 0, 1)
    others: Shape | None = None
    if extra is not None:
        key: Shape = Scalar(seq('"', Repeat(CHARACTER, 0, None), '"'))
        if members:
            names = frozenset(canonical(member.name) for member in members)
            key = Scalar(Except(seq('"', Repeat(CHARACTER, 0, None), '"'), names))
        others = seq(key, ":", extra)
    known: dict[tuple[int, int], Shape] = {}

    def rest(at: int, count: int) -> Shape:
        """Return what may follow when `count` keys (at most `most` of them counted) stand before member `at`."""
        if (at, count) in known:
            return known[at, count]
        if at == len(members):
            missing = max(0, low - count)
            left = None if high is None else high - count
            if others is None or left == 0:
                shape: Shape = EMPTY if missing == 0 else Alt(())
            elif count:
                shape = Repeat(seq(",", others), missing, left)
            else:
                shape = seq(others, Repeat(seq(",", others), max(0, missing - 1), None if left is None else left - 1))
                shape = shape if missing else alt(EMPTY, shape)
        else:
            member = members[at]
            choices: list[Shape] = []
            if high is None or count < high:
                key = ("," if count else "") + canonical(member.name) + ":"
                choices.append(seq(key, member.shape, rest(at + 1, min(count + 1, most))))
            if not member.required:
                choices.append(rest(at + 1, count))
            shape = alt(*choices) if choices else Alt(())
        known[at, count] = shape
        return shape

    return seq("{", rest(0, 0), "}")
