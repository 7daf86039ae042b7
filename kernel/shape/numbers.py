"""Shapes of JSON numbers within bounds. Each number has one text.

There is no `-0`, no leading zero, and no zero at the end of a fraction but for `.0`. Bounds are exact decimals, so
`0.1` is a tenth.
"""

from __future__ import annotations

from decimal import Decimal

from kernel.shape.shape import EMPTY, Alt, Both, Chars, Repeat, Scalar, Shape, Text, alt, seq

DIGITS = 18
"""Digits of a whole number where no bound says otherwise, as many as a signed 64-bit integer always holds."""
FRACTION = 17
"""Digits of a fraction at most: more than a double tells apart."""

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

    Args:
        low, high: bounds, or None.
        above, below: whether the bound itself is left out.
    """
    if low is None and high is None:
        return Scalar(alt(_canonical(DIGITS), _scientific()))
    width = DIGITS
    for bound in (low, high):
        if bound is not None:
            width = max(width, len(str(abs(int(bound)))))
    parts: list[Shape] = []
    zero = Decimal(0)
    if high is None or high > 0 or (high == 0 and not below):
        start = max(low, zero) if low is not None else zero
        parts.append(_between(start, above and low is not None and low >= 0, high, below, width))
    if low is None or low < 0:
        start = -high if high is not None and high < 0 else zero
        strict = below and high is not None and high < 0
        parts.append(seq("-", _between(start, strict, -low if low is not None else None, above, width)))
    return Scalar(Both((_canonical(width), alt(*parts))))


def _canonical(width: int) -> Shape:
    """Return all decimals in the one way that we write them."""
    whole = alt(Text("0"), seq(NONZERO, Repeat(DIGIT, 0, width - 1)))
    fraction = seq(".", alt(Text("0"), seq(Repeat(DIGIT, 0, FRACTION - 1), NONZERO)))
    # a minus before nothing but zeros is left out
    small = seq("0.", Repeat(DIGIT, 0, FRACTION - 1), NONZERO)
    large = seq(NONZERO, Repeat(DIGIT, 0, width - 1), alt(EMPTY, fraction))
    return alt(seq(whole, alt(EMPTY, fraction)), seq("-", alt(small, large)))


def _scientific() -> Shape:
    """Return numbers beyond the plain ones, as Python writes doubles: `1e+16`, `2.5e-05`, up to e307."""
    mantissa = seq(alt(EMPTY, Text("-")), NONZERO, alt(EMPTY, seq(".", Repeat(DIGIT, 0, FRACTION - 2), NONZERO)))
    exponent = alt(seq("e+", alt(_digits("16", "99"), _digits("100", "307"))), seq("e-", alt(_minus())))
    return seq(mantissa, exponent)


def _minus() -> Shape:
    return alt(seq("0", Chars(((53, 57),))), _digits("10", "99"), _digits("100", "307"))


def _between(low: Decimal, above: bool, high: Decimal | None, below: bool, width: int) -> Shape:
    """Return decimals without a sign within bounds >= 0; fractions of any length, zeros at the end included."""
    whole_low, tail_low = _split(low)
    any_fraction = alt(EMPTY, seq(".", Repeat(DIGIT, 1, FRACTION)))
    at_least = _at_least(tail_low, above)
    if high is None:
        most = 10**width - 1
        larger = seq(_whole(whole_low + 1, most), any_fraction) if whole_low < most else Alt(())
        return alt(larger, seq(str(whole_low), at_least))
    whole_high, tail_high = _split(high)
    if whole_low == whole_high:
        return seq(str(whole_low), Both((at_least, _at_most(tail_high, below))))
    parts = [seq(str(whole_low), at_least), seq(str(whole_high), _at_most(tail_high, below))]
    if whole_low + 1 < whole_high:
        parts.append(seq(_whole(whole_low + 1, whole_high - 1), any_fraction))
    return alt(*parts)


def _split(value: Decimal) -> tuple[int, str]:
    """Return the whole part and the digits of the fraction, zeros at the end left out."""
    whole, _, fraction = f"{value:f}".partition(".")
    return int(whole), fraction.rstrip("0")


def _at_least(bound: str, strict: bool) -> Shape:
    """Return fractions, point included or nothing at all, that are >= or > the digits of `bound`."""
    parts: list[Shape] = []
    for at, digit in enumerate(bound):
        if digit < "9":
            parts.append(seq("." + bound[:at], _digit(chr(ord(digit) + 1), "9"), _any(FRACTION - at - 1)))
    rest = _any(FRACTION - len(bound))
    if strict:
        rest = seq(Repeat(Text("0"), 0, FRACTION), NONZERO, _any(FRACTION))
    parts.append(seq("." + bound, rest))
    if not bound and not strict:
        parts.append(EMPTY)
    return alt(*parts)


def _at_most(bound: str, strict: bool) -> Shape:
    """Return fractions, point included or nothing at all, that are <= or < the digits of `bound`."""
    parts: list[Shape] = []
    for at, digit in enumerate(bound):
        if digit > "0":
            parts.append(seq("." + bound[:at], _digit("0", chr(ord(digit) - 1)), _any(FRACTION - at - 1)))
        if at:
            parts.append(Text("." + bound[:at]))
    if bound:
        parts.append(EMPTY)
    if not strict:
        parts.append(seq("." + bound, Repeat(Text("0"), 0 if bound else 1, FRACTION)))
        if not bound:
            parts.append(EMPTY)
    return alt(*parts) if parts else Alt(())


def _any(count: int) -> Shape:
    return Repeat(DIGIT, 0, max(0, count))
