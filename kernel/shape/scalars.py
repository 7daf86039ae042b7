"""Reads the JSON Schemas of strings and numbers into shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from kernel.errors import OpcodeError
from kernel.shape.keywords import Report
from kernel.shape.listing import LISTED
from kernel.shape.numbers import FRACTION, integer, number
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import EMPTY, Both, Chars, Repeat, Scalar, Shape, Text, alt, listed, seq
from kernel.shape.strings import NARROWER, format_shape, string

OF_NUMBERS = {
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
            raise report.refusal(path, keyword, f"{value!r} is not a whole number from 0 on")
        found.append(value)
    if found[1] is not None and found[0] is not None and found[0] > found[1]:
        raise report.refusal(path, low, f"{found[0]} is above {high} {found[1]}; nothing is left")
    return found[0] or 0, found[1]


def string_shape(report: Report, schema: Mapping[str, Any], path: str) -> Shape:
    """Return the shape of strings within length, pattern and format."""
    low, high = size(report, schema, "minLength", "maxLength", path)
    held = None
    try:
        keyword = "format"
        if "format" in schema:
            held = format_shape(schema["format"])
            if schema["format"] in NARROWER:
                report.note(path, "format", f"{schema['format']!r} is held more narrowly than the standard")
        keyword = "pattern"
        pattern = schema.get("pattern")
        shape = string(low, high, pattern=pattern, shape=held)
        if pattern is not None or held is not None:
            keyword = "minLength" if pattern is None else "pattern"
            if Recogniser(shape).minimal(shape) is None:
                raise OpcodeError("no string satisfies it together with the rest")
    except OpcodeError as error:
        raise report.refusal(path, keyword, str(error)) from error
    return shape


def _bounds(report: Report, schema: Mapping[str, Any], path: str) -> tuple[Decimal | None, bool, Decimal | None, bool]:
    """Return lower bound, whether it is left out, upper bound, whether it is left out."""
    ends: list[tuple[Decimal | None, bool]] = []
    for plain, strict, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        bound = _exact(report, schema, plain, path)
        out = _exact(report, schema, strict, path) if not isinstance(schema.get(strict), bool) else None
        if schema.get(strict) is True:  # as in draft 4
            bound, out = None, bound
        if out is not None and (bound is None or sign * out >= sign * bound):
            ends.append((out, True))
        else:
            ends.append((bound, False))
    (low, above), (high, below) = ends
    if low is not None and high is not None and (low > high or (low == high and (above or below))):
        keyword = next(k for k in ("minimum", "exclusiveMinimum") if k in schema)
        raise report.refusal(path, keyword, f"the range {low}..{high} is empty")
    return low, above, high, below


def _exact(report: Report, schema: Mapping[str, Any], keyword: str, path: str) -> Decimal | None:
    value = schema.get(keyword)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise report.refusal(path, keyword, f"{value!r} is not a number")
    return Decimal(repr(value))


def _step(report: Report, schema: Mapping[str, Any], path: str) -> Decimal | None:
    step = _exact(report, schema, "multipleOf", path)
    if step is not None and step <= 0:
        raise report.refusal(path, "multipleOf", f"{step} is not above 0")
    return step


def _format_bounds(report: Report, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the schema with the bounds that its format stands for."""
    name = schema.get("format")
    if name is None:
        return dict(schema)
    if name not in OF_NUMBERS:
        known = ", ".join(OF_NUMBERS)
        raise report.refusal(path, "format", f"{name!r} cannot be held for numbers; there is: {known}")
    bounds = OF_NUMBERS[name]
    rest = {k: v for k, v in schema.items() if k != "format"}
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
    step = _step(report, schema, path) or Decimal(1)
    # a whole multiple of p/q in lowest terms is a multiple of p
    step_int = step.as_integer_ratio()[0]
    first = None if low is None else math.floor(low) + 1 if above else math.ceil(low)
    last = None if high is None else math.ceil(high) - 1 if below else math.floor(high)
    if first is not None and last is not None:
        first = -(-first // step_int) * step_int
        if first > last:
            raise report.refusal(path, "type", f"no whole number is in {schema}")
        if (last - first) // step_int < LISTED:
            values = tuple(map(str, range(first, last + 1, step_int)))
            whole = integer(first, last)
            # one after the other, their digits say it shorter than their list
            return Scalar(whole.part, values) if step_int == 1 and isinstance(whole, Scalar) else listed(values)
    if step_int != 1:
        raise report.refusal(path, "multipleOf", f"{step} needs bounds on both sides, at most {LISTED} values")
    return integer(first, last)


def decimal_shape(report: Report, schema: Mapping[str, Any], path: str) -> Shape:
    """Return the shape of numbers; those of a step within bounds are listed, as Python writes doubles: `16.0`."""
    schema = _format_bounds(report, schema, path)
    low, above, high, below = _bounds(report, schema, path)
    step = _step(report, schema, path)
    if step is None:
        return number(low, high, above=above, below=below)
    if low is not None and high is not None:
        first, last = math.ceil(low / step), math.floor(high / step)
        first += above and first * step == low
        last -= below and last * step == high
        if first > last:
            raise report.refusal(path, "multipleOf", f"no multiple of {step} is in {low}..{high}")
        if last - first < LISTED:
            return listed(tuple(repr(float(n * step)) for n in range(first, last + 1)))
    digits = -int(step.normalize().as_tuple().exponent)
    if step != Decimal(1).scaleb(-digits) or not 0 <= digits <= FRACTION:
        raise report.refusal(path, "multipleOf", f"{step} needs bounds on both sides, at most {LISTED} values")
    digit = Chars(((48, 57),))
    fraction = seq(".", alt(Repeat(digit, 1, digits), Text("0"))) if digits else Text(".0")
    short = seq(alt(EMPTY, Text("-")), Repeat(digit, 1, None), alt(EMPTY, fraction))
    inner = number(low, high, above=above, below=below) if (low, high) != (None, None) else number(*WIDE)
    assert isinstance(inner, Scalar)
    return Scalar(Both((inner.part, short)))
