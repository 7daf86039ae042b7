"""Shapes of JSON strings: lengths, patterns and formats.

Each string has one text: UTF-8 as it is, and only the escapes that `json.dumps(..., ensure_ascii=False)` writes.
"""

from __future__ import annotations

import json

from kernel.errors import OpcodeError, short
from kernel.shape.pattern import parse
from kernel.shape.shape import ANY, Both, Chars, Ranges, Repeat, Scalar, Shape, alt, common, normal, seq, without

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
    return alt(*parts)


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


NARROWER = {"email"}
"""Formats of which a part is left out: quoted and internationalised addresses."""

_DAYS = {
    "(0[13578]|1[02])": "(0[1-9]|[12][0-9]|3[01])",
    "(0[469]|11)": "(0[1-9]|[12][0-9]|30)",
    "02": "(0[1-9]|1[0-9]|2[0-8])",
}
"""Months and their days; 29 February is said with its years."""
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_FOURS = "(0[48]|[2468][048]|[13579][26])"
_DATE = f"({_YEAR}-({'|'.join(f'{m}-{d}' for m, d in _DAYS.items())})|([0-9]{{2}}{_FOURS}|{_FOURS}00)-02-29)"
_HOUR, _SIXTY = "([01][0-9]|2[0-3])", "[0-5][0-9]"
_TIME = rf"{_HOUR}:{_SIXTY}:{_SIXTY}(\.[0-9]{{1,6}})?(Z|[+-]{_HOUR}:{_SIXTY})"
_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_N = "[0-9]{1,9}"
_DAY_PART = f"({_N}Y({_N}M({_N}D)?)?|{_N}M({_N}D)?|{_N}D)"
_TIME_PART = f"T({_N}H({_N}M({_N}S)?)?|{_N}M({_N}S)?|{_N}S)"
_LABEL = "[0-9A-Za-z]([-0-9A-Za-z]{0,61}[0-9A-Za-z])?"
_ATOM = r"[\w+-]{1,64}"

PATTERNS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}T{_TIME}",
    "duration": f"P({_DAY_PART}({_TIME_PART})?|{_TIME_PART}|{_N}W)",
    "uuid": "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
    "ipv4": rf"{_BYTE}(\.{_BYTE}){{3}}",
    "hostname": rf"{_LABEL}(\.{_LABEL})*",
    "email": rf"{_ATOM}(\.{_ATOM}){{0,3}}@([0-9A-Za-z]{{1,63}}\.){{1,4}}[A-Za-z]{{2,24}}",
}
"""The formats that are held, exactly as their standards say but for NARROWER (no leap seconds in times)."""
FORMATS = {name: parse(f"^({pattern})$", written) for name, pattern in PATTERNS.items()}
FORMATS["hostname"] = Both((FORMATS["hostname"], parse("^[-.0-9A-Za-z]{1,253}$", written)))


NOTED = frozenset({
    "uri", "uri-reference", "uri-template", "url", "iri", "iri-reference", "ipv6", "idn-email", "idn-hostname", "byte",
    "binary", "password", "regex", "json-pointer", "relative-json-pointer",
})  # fmt: skip
"""Formats of JSON Schema and OpenAPI that are not enforced."""


def format_shape(name: str) -> Shape:
    """Return what a format demands; raises OpcodeError for one that is not held."""
    shape = FORMATS.get(name)
    if shape is None:
        raise OpcodeError(f"format {short(name)} cannot be held; there is: {', '.join(FORMATS)}")
    return shape
