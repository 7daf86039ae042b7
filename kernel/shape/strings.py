"""Shapes of JSON strings: lengths, patterns and formats.

Each string has one text: UTF-8 as it is, and only the escapes that `json.dumps(..., ensure_ascii=False)` writes.
"""

from __future__ import annotations

import json

from kernel.errors import OpcodeError
from kernel.shape.pattern import WORD, parse
from kernel.shape.shape import (
    ANY,
    EMPTY,
    Alt,
    Both,
    Chars,
    Ranges,
    Repeat,
    Scalar,
    Shape,
    Text,
    alt,
    common,
    normal,
    seq,
    without,
)

ESCAPED: Ranges = ((0, 31), (34, 34), (92, 92))
"""What JSON never shows as it is: control characters, the quote, the backslash."""

PLAIN = common(ANY, without(ESCAPED))


def written(ranges: Ranges) -> Shape:
    """Return the shape of one character of these ranges as it stands in a JSON string.

    >>> from kernel.shape.listing import texts
    >>> list(texts(written(((9, 10), (97, 98)))))
    ['a', 'b', '\\\\n', '\\\\t']
    """
    parts: list[Shape] = []
    if plain := common(ranges, PLAIN):
        parts.append(Chars(plain))
    special = [json.dumps(chr(c))[1:-1] for low, high in common(ranges, ESCAPED) for c in range(low, high + 1)]
    if single := [text[1] for text in special if len(text) == 2]:
        parts.append(seq("\\", Chars(normal([(ord(c), ord(c)) for c in single]))))
    if codes := [text for text in special if len(text) == 6]:
        for head in ("0", "1"):
            if digits := [text[5] for text in codes if text[4] == head]:
                parts.append(seq("\\u00" + head, Chars(normal([(ord(d), ord(d)) for d in digits]))))
    return alt(*parts) if parts else Alt(())


CHARACTER = written(ANY)


def string(low: int = 0, high: int | None = None, *, pattern: str | None = None, shape: Shape | None = None) -> Shape:
    """Return the shape of JSON strings, quotes included.

    Args:
        low, high: bounds of the length in code points.
        pattern: a regular expression as JSON Schema uses it: found anywhere unless it is anchored.
        shape: what a format demands of the content, in characters as they are written.
    Raises:
        OpcodeError: the pattern has something that cannot be held.
    """
    contents: list[Shape] = []
    if pattern is not None:
        contents.append(parse(pattern, written))
    if shape is not None:
        contents.append(shape)
    if not contents or low > 0 or high is not None:
        contents.append(Repeat(CHARACTER, low, high))
    content = contents[0] if len(contents) == 1 else Both(tuple(contents))
    return Scalar(seq('"', content, '"'))


def _number(low: int, high: int, width: int = 2) -> Shape:
    """Return whole numbers low .. high, zeros in front up to a width."""
    return alt(*(Text(f"{n:0{width}}") for n in range(low, high + 1)))


_D = Chars(((48, 57),))
_HEX = Chars(((48, 57), (65, 70), (97, 102)))


def _hex(count: int) -> Shape:
    return Repeat(_HEX, count, count)


def _date() -> Shape:
    """Return the days of the years 0001 .. 9999, 29 February in leap years only."""
    tens = [f"{n:02}" for n in range(100)]
    nonzero = Chars(((49, 57),))
    any_year = alt(
        seq(nonzero, Repeat(_D, 3, 3)),
        seq("0", nonzero, Repeat(_D, 2, 2)),
        seq("00", nonzero, _D),
        seq("000", nonzero),
    )
    fours = [t for t in tens if int(t) % 4 == 0]
    leap = alt(
        seq(_D, _D, alt(*(Text(t) for t in fours if t != "00"))),
        seq(alt(*(Text(t) for t in fours if t != "00")), "00"),
    )
    long = alt(*(Text(f"-{m:02}-") for m in (1, 3, 5, 7, 8, 10, 12)))
    short = alt(*(Text(f"-{m:02}-") for m in (4, 6, 9, 11)))
    days = alt(
        seq(long, _number(1, 31)),
        seq(short, _number(1, 30)),
        seq("-02-", _number(1, 28)),
    )
    return alt(seq(any_year, days), seq(leap, "-02-29"))


def _time() -> Shape:
    fraction = alt(EMPTY, seq(".", Repeat(_D, 1, 6)))
    offset = alt(Text("Z"), seq(Chars(((43, 43), (45, 45))), _number(0, 23), ":", _number(0, 59)))
    return seq(_number(0, 23), ":", _number(0, 59), ":", _number(0, 59), fraction, offset)


def _ipv4() -> Shape:
    byte = alt(*(Text(str(n)) for n in range(256)))
    return seq(byte, ".", byte, ".", byte, ".", byte)


def _hostname() -> Shape:
    """Return labels of letters, digits and inner hyphens with dots between, at most 253 characters."""
    inner = Chars(((45, 45), (48, 57), (65, 90), (97, 122)))
    outer = Chars(((48, 57), (65, 90), (97, 122)))
    label = seq(outer, alt(EMPTY, seq(Repeat(inner, 0, 61), outer)))
    any_of_them = Chars(((45, 46), (48, 57), (65, 90), (97, 122)))
    return Both((seq(label, Repeat(seq(".", label), 0, None)), Repeat(any_of_them, 1, 253)))


def _duration() -> Shape:
    number = Repeat(_D, 1, 9)

    def chain(units: str) -> Shape:
        """Return one or more units in order without a gap: Y, YM, YMD, M, MD, D."""
        parts = []
        for first in range(len(units)):
            shape: Shape = EMPTY
            for unit in reversed(units[first:]):
                shape = seq(number, unit, *(() if shape is EMPTY else (alt(EMPTY, shape),)))
            parts.append(shape)
        return alt(*parts)

    time = seq("T", chain("HMS"))
    date = seq(chain("YMD"), alt(EMPTY, time))
    return seq("P", alt(date, time, seq(number, "W")))


def _email() -> Shape:
    """Return addresses of plain words with dots between at a host with at least one dot."""
    atom = Repeat(Chars(normal([*WORD, *((ord(c), ord(c)) for c in "+-")])), 1, 64)
    letter = Chars(((65, 90), (97, 122)))
    label = seq(Chars(((48, 57), (65, 90), (97, 122))), Repeat(Chars(((48, 57), (65, 90), (97, 122))), 0, 62))
    return seq(atom, Repeat(seq(".", atom), 0, 3), "@", Repeat(seq(label, "."), 1, 4), Repeat(letter, 2, 24))


NARROWER = {"email"}
"""Formats of which a part is left out: quoted and internationalised addresses."""


def formats() -> dict[str, Shape]:
    """Return the formats that are held, exactly as their standards say but for NARROWER (no leap seconds in times)."""
    date, time = _date(), _time()
    return {
        "date": date,
        "time": time,
        "date-time": seq(date, "T", time),
        "duration": _duration(),
        "uuid": seq(_hex(8), "-", _hex(4), "-", _hex(4), "-", _hex(4), "-", _hex(12)),
        "ipv4": _ipv4(),
        "hostname": _hostname(),
        "email": _email(),
    }


FORMATS = formats()


def format_shape(name: str) -> Shape:
    """Return what a format demands; raises OpcodeError for one that is not held."""
    shape = FORMATS.get(name)
    if shape is None:
        raise OpcodeError(f"format {name!r} cannot be held; there is: {', '.join(FORMATS)}")
    return shape
