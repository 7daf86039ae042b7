"""Reads the JSON Schemas of strings and numbers into shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kernel.errors import OpcodeError, short
from kernel.shape.keywords import Report
from kernel.shape.limits import DIGITS, SHORTEST, UNCOUNTED
from kernel.shape.listing import LISTED
from kernel.shape.numbers import FRACTION, integer, number
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import EMPTY, NOTHING, Both, Chars, Repeat, Scalar, Shape, Text, alt, listed, seq
from kernel.shape.strings import FORMATS, NARROWER, NOTED, format_shape, string

OF_NUMBERS = {
    "int8": (-(2**7), 2**7 - 1),
    "uint8": (0, 2**8 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
    "float": None,
    "double": None,
}
WIDE = (Decimal(1 - 10**18), Decimal(10**18 - 1))


def size(report: Report, schema: Mapping[str, Any], low: str, high: str, path: str) -> tuple[int, int | None]:
    """Return the bounds that the keywords `low` and `high` set; raises OpcodeError when none fit."""
    found: list[int | None] = []
    for keyword, without in ((low, 0), (high, None)):
        value = schema.get(keyword, without)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise report.refusal(path, keyword, f"{short(value)} is not a whole number from 0 on")
        found.append(None if keyword == high and value is not None and value >= UNCOUNTED else value)
    if found[0] is not None and found[0] > SHORTEST:
        raise report.refusal(path, low, f"{short(found[0])} is more than {SHORTEST}")
    if found[1] is not None and found[0] is not None and found[0] > found[1]:
        raise report.refusal(path, low, f"{found[0]} is above {high} {found[1]}; nothing is left")
    return found[0] or 0, found[1]


def string_shape(report: Report, schema: Mapping[str, Any], path: str) -> Shape:
    """Return the shape of strings within length, pattern and format."""
    low, high = size(report, schema, "minLength", "maxLength", path)
    held = None
    try:
        keyword = "format"
        name = schema.get("format")
        if name in OF_NUMBERS:
            report.note(path, "format", f"{name!r} binds numbers only, here is a string")
        elif name in NOTED:
            report.note(path, "format", f"{name!r} is not enforced; any string is written")
        elif name is not None:
            held = format_shape(name)
            if name in NARROWER:
                report.note(path, "format", f"{name!r} is held more narrowly than the standard")
        keyword = "pattern"
        pattern = schema.get("pattern")
        shape = string(low, high, pattern=pattern, shape=held)
        if pattern is not None or held is not None:
            keyword = "minLength" if pattern is None else "pattern"
            least = Recogniser(shape).size(shape)
            if least is None or least > SHORTEST:
                why = "no string satisfies it together with the rest"
                raise OpcodeError(why if least is None else f"the shortest string has {least} bytes of {SHORTEST}")
    except OpcodeError as error:
        raise report.refusal(path, keyword, str(error)) from error
    return shape


def _bounds(report: Report, schema: Mapping[str, Any], path: str) -> tuple[Decimal | None, bool, Decimal | None, bool]:
    """Return lower bound, whether it is left out, upper bound, whether it is left out.

    A bound of more than DIGITS digits is moved in to them; a range that lies further out is refused.
    """
    ends: list[tuple[Decimal | None, bool]] = []
    said: list[str] = []
    for plain, strict, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        bound = _exact(schema.get(plain))
        out = None if isinstance(schema.get(strict), bool) else _exact(schema.get(strict))
        if schema.get(strict) is True:  # as in draft 4
            bound, out = None, bound
        left_out = out is not None and (bound is None or sign * out >= sign * bound)
        bound, keyword = (out, strict) if left_out else (bound, plain)
        furthest = Decimal(10**DIGITS - 1)
        if bound is not None and -sign * bound > furthest:
            report.note(path, keyword, f"is read as {-sign * furthest:.0e}, at most {DIGITS} digits")
            bound, left_out = -sign * furthest, False
        elif bound is not None and sign * bound > furthest:
            raise report.refusal(path, keyword, f"{short(schema[keyword])} has more than {DIGITS} digits")
        ends.append((bound, left_out))
        said += [keyword] if keyword in schema else [plain] if plain in schema else []
    (low, above), (high, below) = ends
    if low is not None and high is not None and (low > high or (low == high and (above or below))):
        raise report.refusal(path, said[0] if said else "format", f"the range {low}..{high} is empty")
    return low, above, high, below


def _exact(value: Any) -> Decimal | None:
    return None if value is None else Decimal(value if isinstance(value, int) else repr(value))


def _step(report: Report, schema: Mapping[str, Any], path: str) -> Fraction | None:
    step = schema.get("multipleOf")
    if step is not None and step <= 0:
        raise report.refusal(path, "multipleOf", f"{short(step)} is not above 0")
    return None if step is None else Fraction(repr(step))


def _format_bounds(report: Report, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the schema with the bounds that its format stands for."""
    name = schema.get("format")
    if name is None:
        return dict(schema)
    rest = {k: v for k, v in schema.items() if k != "format"}
    if name in FORMATS or name in NOTED:
        report.note(path, "format", f"{name!r} binds strings only, here is a number")
        return rest
    if name not in OF_NUMBERS:
        known = ", ".join(OF_NUMBERS)
        raise report.refusal(path, "format", f"{short(name)} cannot be held for numbers; there is: {known}")
    bounds = OF_NUMBERS[name]
    if bounds is None:
        report.note(path, "format", f"{name!r} only describes a number")
        return rest
    for keyword, bound, narrower in (("minimum", bounds[0], max), ("maximum", bounds[1], min)):
        rest[keyword] = narrower(rest.get(keyword, bound), bound)
    return rest


def integer_shape(report: Report, schema: Mapping[str, Any], path: str) -> Shape:
    """Return the shape of whole numbers; listed when there are at most LISTED."""
    schema = _format_bounds(report, schema, path)
    low, above, high, below = _bounds(report, schema, path)
    step = _step(report, schema, path) or Fraction(1)
    step_int = step.numerator  # a whole multiple of p/q in lowest terms is a multiple of p
    first = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
    if first is not None and last is not None:
        first = -(-first // step_int) * step_int
        if first > last:
            keyword = "multipleOf" if step_int > 1 else _said(schema)
            raise report.refusal(path, keyword, f"no whole number of step {step_int} is in {low}..{high}")
        if (last - first) // step_int < LISTED:
            values = tuple(map(str, range(first, last + 1, step_int)))
            whole = integer(first, last)
            # one after the other, their digits say it shorter than their list
            return Scalar(whole.part, values) if step_int == 1 and isinstance(whole, Scalar) else listed(values)
    if step_int != 1:
        raise report.refusal(path, "multipleOf", f"{step_int} needs bounds on both sides, at most {LISTED} values")
    return integer(first, last)


def decimal_shape(report: Report, schema: Mapping[str, Any], path: str) -> Shape:
    """Return the shape of numbers; those of a step within bounds are listed, as Python writes doubles: `16.0`."""
    schema = _format_bounds(report, schema, path)
    low, above, high, below = _bounds(report, schema, path)
    step = _step(report, schema, path)
    inner = (
        number(low, high, above=above, below=below) if (low, high) != (None, None) or step is None else number(*WIDE)
    )
    if inner is NOTHING:
        raise report.refusal(path, _said(schema), f"no number of {FRACTION} digits is in {low}..{high}")
    if step is None:
        return inner
    if low is not None and high is not None:
        first, last = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
        first += above and first * step == Fraction(low)
        last -= below and last * step == Fraction(high)
        if first > last:
            raise report.refusal(path, "multipleOf", f"no multiple of {float(step)} is in {low}..{high}")
        if last - first < LISTED:
            return listed(tuple(repr(float(n * step)) for n in range(first, last + 1)))
    digits = next((n for n in range(FRACTION + 1) if step * 10**n == 1), None)
    if digits is None:
        why = f"{float(step)} needs bounds on both sides, at most {LISTED} values"
        raise report.refusal(path, "multipleOf", why)
    digit = Chars(((48, 57),))
    fraction = seq(".", alt(Repeat(digit, 1, digits), Text("0"))) if digits else Text(".0")
    few_digits = seq(alt(EMPTY, Text("-")), Repeat(digit, 1, None), alt(EMPTY, fraction))
    assert isinstance(inner, Scalar)
    return Scalar(Both((inner.part, few_digits)))


def _said(schema: Mapping[str, Any]) -> str:
    """Return the keyword that bounds a number."""
    return next((k for k in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum") if k in schema), "format")
