"""Encodes a record as one line of a log, canonical JSON with a chained checksum, and decodes it.

A line is one JSON object in UTF-8: no spaces, keys in the order of `records.py` and unknown ones after them, `chain`
last, a newline at the end. `chain` is BLAKE2b (16 bytes, in hexadecimal) over the chain value of the line
before, as ASCII text, followed by the line without its chain field; the first line follows the empty text. So a line
that is cut, changed, dropped, repeated or moved does not fit. The chain finds damage; it is no signature: whoever
rewrites a whole log can compute it again, and is then found by the state hashes.

A number that is not finite is null, and `nonfinite` names it: `{"/legal/3/logprob":"-inf"}` (a JSON pointer to `nan`,
`inf` or `-inf`).
"""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any, NoReturn

from dispatch.log.objects import Record
from kernel.opcode import canonical

START = ""
"""The chain value before the first line."""
_MARK = b',"chain":"'
_TAIL = len(_MARK) + 32 + len(b'"}')


def link(chain: str, body: bytes) -> str:
    """Return the chain value of a line: `chain` is that of the line before, `body` the line without its chain field."""
    return blake2b(chain.encode("ascii") + body, digest_size=16).hexdigest()


def seal(body: bytes, chain: str) -> tuple[bytes, str]:
    """Return the whole line, newline included, and its chain value.

    >>> seal(b'{"n":1}', START)
    (b'{"n":1,"chain":"984530e49acf879ea2a3b7c3062fca65"}\\n', '984530e49acf879ea2a3b7c3062fca65')
    """
    chain = link(chain, body)
    return b'%b%b%b"}\n' % (body[:-1], _MARK, chain.encode("ascii")), chain


def unseal(line: bytes) -> tuple[bytes, str] | None:
    """Split a line (without newline) into body and chain value; None when it does not end in a chain field.

    >>> unseal(b'{"n":1,"chain":"984530e49acf879ea2a3b7c3062fca65"}')
    (b'{"n":1}', '984530e49acf879ea2a3b7c3062fca65')
    """
    mark = len(line) - _TAIL
    if mark < 1 or not line.startswith(_MARK, mark) or not line.endswith(b'"}'):
        return None
    return line[:mark] + b"}", line[mark + len(_MARK) : -2].decode("latin-1")


def encode(record: Record) -> bytes:
    """Return the body of a record's line; fields without a value are left out."""
    return encode_data(record.model_dump(by_alias=True, exclude_none=True))


def encode_data(data: dict[str, Any]) -> bytes:
    """Return the body of a line from a dict that is already in order.

    Text that UTF-8 cannot carry (half of a surrogate pair) is written as a JSON escape.
    """
    try:
        text = canonical(data)
    except ValueError:
        found: dict[str, str] = {}
        text = canonical(_blanked(data, "", found) | {"nonfinite": found})
    return text.encode("utf-8", "backslashreplace")


def decode(body: bytes) -> dict[str, Any]:
    """Return a line's fields, with what is not finite back in its place.

    Raises ValueError, with a few words on why, for anything that is not one strict JSON object in this form.
    """
    try:
        data = json.loads(body, parse_constant=_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    flags = data.pop("nonfinite", None)
    if flags is not None:
        _restore(data, flags)
    return data


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _blanked(value: Any, path: str, found: dict[str, str]) -> Any:
    """Return a value with None for every number in it that is not finite, and note its pointer."""
    if isinstance(value, dict):
        return {key: _blanked(each, f"{path}/{_escape(str(key))}", found) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_blanked(each, f"{path}/{at}", found) for at, each in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        found[path] = str(value)
        return None
    return value


def _restore(data: dict[str, Any], flags: Any) -> None:
    """Put the numbers that `flags` names back into `data`."""
    try:
        for pointer, name in flags.items():
            if name not in ("nan", "inf", "-inf"):
                raise ValueError(f"nonfinite {pointer}: {name!r}")
            node: Any = data
            *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
            for part in way:
                node = node[int(part) if isinstance(node, list) else part]
            key = int(last) if isinstance(node, list) else last
            if node[key] is not None:
                raise ValueError(f"nonfinite {pointer}: not null")
            node[key] = float(name)
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"nonfinite names a place that is not there: {error}") from error


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
