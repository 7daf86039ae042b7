"""Shapes of JSON numbers within bounds. Each number has one text.

There is no `-0`, no leading zero, and no zero at the end of a fraction but for `.0`. Bounds are exact decimals, so
`0.1` is a tenth.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kernel.canon import canonical
from kernel.shape.shape import EMPTY, NOTHING, Both, Chars, Repeat, Scalar, Shape, Text, alt, seq

DIGITS = 18
"""Digits of a whole number where no bound says otherwise, as many as a signed 64-bit integer always holds."""
FRACTION = 17
"""Digits of a fraction at most: more than a double tells apart."""
WHOLE_DIGITS = 15
"""Digits at most in front of a fraction; a double holds so many exactly."""

DIGIT = Chars(((48, 57),))
NONZERO = Chars(((49, 57),))


def integer(low: int | None, high: int | None) -> Shape:
    """Return the shape of whole numbers within bounds, ends included; None is no bound but DIGITS digits.

    >>> from kernel.shape.listing import texts
    >>> list(texts(integer(-1, 10)))
    ['-1', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '10']
    """
    most = 10**DIGITS - 1
    low = min(-most, high if high is not None else 0) if low is None else low
    high = max(most, low) if high is None else high
    parts: list[Shape] = []
    if low < 0:
        parts.append(seq("-", _whole(max(1, -high), -low)))
    if high >= 0:
        parts.append(_whole(max(0, low), high))
    return Scalar(alt(*parts))


def _whole(low: int, high: int) -> Shape:
    """Return whole numbers low .. high, low >= 0, without a sign."""
    parts: list[Shape] = []
    for width in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (width - 1) if width > 1 else 0)
        last = min(high, 10**width - 1)
        parts.append(_digits(str(first), str(last)))
    return alt(*parts)


def _digits(low: str, high: str) -> Shape:
    """Return digit strings of one width between two of that width, ends included."""
    if low == high:
        return Text(low)
    if low[0] == high[0]:
        return seq(low[0], _digits(low[1:], high[1:]))
    rest = len(low) - 1
    if low.strip("0") == "" and set(high) == {"9"}:
        return _times(DIGIT, len(low))
    if low[1:].strip("0") == "" and set(high[1:]) <= {"9"}:
        return seq(_digit(low[0], high[0]), _times(DIGIT, rest))
    parts = []
    head, tail = low[0], high[0]
    if low[1:].strip("0"):
        parts.append(seq(head, _digits(low[1:], "9" * rest)))
        head = chr(ord(head) + 1)
    last = None
    if set(high[1:]) != {"9"}:
        last = seq(tail, _digits("0" * rest, high[1:]))
        tail = chr(ord(tail) - 1)
    if head <= tail:
        parts.append(seq(_digit(head, tail), _times(DIGIT, rest)))
    return alt(*parts, last) if last else alt(*parts)


def _digit(low: str, high: str) -> Shape:
    return Text(low) if low == high else Chars(((ord(low), ord(high)),))


def _times(part: Shape, count: int) -> Shape:
    if count == 0:
        return EMPTY
    return part if count == 1 else Repeat(part, count, count)


def number(low: Decimal | None, high: Decimal | None, *, above: bool = False, below: bool = False) -> Shape:
    """Return the shape of decimal numbers within bounds; without any bound, those with an exponent as well.

    A number counts in units of its last possible digit, so bounds are whole and both inclusive here. A bound that is
    left out is replaced by the double next to it, since what is written is read as a double. NOTHING has no number.

    Args:
        low, high: bounds, or None.
        above, below: whether the bound itself is left out.
    """
    if low is None and high is None:
        return Scalar(alt(_canonical(DIGITS), _scientific()))
    width = max(DIGITS, *(len(str(abs(int(bound)))) for bound in (low, high) if bound is not None))
    most = 10 ** (width + FRACTION) - 1
    first = -most if low is None else math.ceil(_units(_next(low, math.inf) if above else low))
    last = most if high is None else math.floor(_units(_next(high, -math.inf) if below else high))
    parts: list[Shape] = []
    if last >= max(first, 0):
        parts.append(_between(max(first, 0), last))
    if first <= min(last, -1):
        parts.append(seq("-", _between(max(1, -last), -first)))
    return Scalar(Both((_canonical(width), alt(*parts)))) if parts else NOTHING


def _units(value: Decimal) -> Fraction:
    return Fraction(value) * Fraction(10**FRACTION)


def _next(bound: Decimal, towards: float) -> Decimal:
    """Return the bound of what lies beyond it in one direction: the next double, or whole number where those are."""
    if abs(bound) >= 10**WHOLE_DIGITS:
        return Decimal(math.floor(bound) + 1 if towards > 0 else math.ceil(bound) - 1)
    return Decimal(repr(math.nextafter(float(bound), towards)))


def _canonical(width: int) -> Shape:
    """Return all decimals in the one way that we write them."""
    tail = alt(Text(".0"), seq(".", Repeat(DIGIT, 0, FRACTION - 1), NONZERO))
    # a minus before nothing but zeros is left out
    small = seq("0.", Repeat(DIGIT, 0, FRACTION - 1), NONZERO)
    whole = seq(NONZERO, Repeat(DIGIT, 0, width - 1))
    large = seq(NONZERO, Repeat(DIGIT, 0, WHOLE_DIGITS - 1), tail)
    return alt(Text("0"), Text("0.0"), seq(alt(EMPTY, Text("-")), alt(whole, small, large)))


def _scientific() -> Shape:
    """Return numbers beyond the plain ones, as Python writes doubles: `1e+16`, `2.5e-05`, up to e307."""
    mantissa = seq(alt(EMPTY, Text("-")), NONZERO, alt(EMPTY, seq(".", Repeat(DIGIT, 0, FRACTION - 2), NONZERO)))
    minus = alt(seq("0", Chars(((53, 57),))), _digits("10", "99"), _digits("100", "307"))
    return seq(mantissa, alt(seq("e+", alt(_digits("16", "99"), _digits("100", "307"))), seq("e-", minus)))


def _between(low: int, high: int) -> Shape:
    """Return decimals low .. high in units, 0 <= low <= high, zeros at the end included."""
    (first, start), (last, end) = divmod(low, 10**FRACTION), divmod(high, 10**FRACTION)
    if first == last:
        return seq(str(first), _fraction(start, end))
    most = 10**FRACTION - 1
    parts = [seq(str(first), _fraction(start, most)), seq(str(last), _fraction(0, end))]
    if first + 1 < last:
        parts.append(seq(_whole(first + 1, last - 1), _fraction(0, most)))
    return alt(*parts)


def _fraction(low: int, high: int) -> Shape:
    """Return fractions low .. high in units, the point included; nothing at all is 0."""
    tails = seq(".", _tails(f"{low:0{FRACTION}}", f"{high:0{FRACTION}}"))
    return tails if low else alt(EMPTY, tails)


def _tails(low: str, high: str) -> Shape:
    """Return digits that are low .. high, two texts of one length, once zeros fill them up to that length."""
    rest = len(low) - 1
    zeros, nines = "0" * rest, "9" * rest
    if low[:1] == high[:1]:
        shape = seq(low[:1], _tails(low[1:], high[1:])) if low else EMPTY
    elif low == "0" + zeros and high == "9" + nines:
        return Repeat(DIGIT, 0, rest + 1)
    else:
        parts = [seq(low[0], _tails(low[1:], nines)), seq(high[0], _tails(zeros, high[1:]))]
        if ord(high[0]) - ord(low[0]) > 1:
            parts.append(seq(_digit(chr(ord(low[0]) + 1), chr(ord(high[0]) - 1)), Repeat(DIGIT, 0, rest)))
        shape = alt(*parts)
    return shape if low.strip("0") else alt(EMPTY, shape)


def spelled(value: Any) -> str:
    """Return the text of a JSON value as shapes write it: canonical, but numbers without an exponent where that fits.

    >>> spelled({"a": [1e-05, 1e16, 1e300, 0.5]})
    '{"a":[0.00001,10000000000000000,1e+300,0.5]}'
    """
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(name)}:{spelled(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    if isinstance(value, float) and value.is_integer() and 10**WHOLE_DIGITS <= abs(value) < 10**DIGITS:
        return str(int(value))
    if isinstance(value, float) and 10.0**-FRACTION <= abs(value) < 1:
        text = f"{Decimal(repr(value)):f}"
        return text if len(text.partition(".")[2]) <= FRACTION else canonical(value)
    return canonical(value)
