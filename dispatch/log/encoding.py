"""Encodes a record as one line of a log, canonical JSON with a chained checksum, and decodes it.

A line is one JSON object in UTF-8: no spaces, keys in the order of `records.py` and unknown ones after them, `mac` in a
keyed log, `chain` last, a newline at the end. `chain` is BLAKE2b (16 bytes, in hexadecimal) over the chain value of the
line before, as ASCII text, followed by the line without its chain field; the first line follows the empty text. So a
line that is cut, changed, dropped, repeated or moved does not fit. The chain finds damage and is no signature: whoever
rewrites a whole log can compute it again. `mac` is what only the holder of a key can compute, see `key.py`.

A number that is not finite is null, and `nonfinite` names it: `{"/legal/3/logprob":"-inf"}` (a JSON pointer to `nan`,
`inf` or `-inf`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from hashlib import blake2b
from typing import Any, NoReturn

from dispatch.log.objects import Record
from kernel.opcode import canonical

START = ""
"""The chain value before the first line."""
_CHAIN = b',"chain":"'
_MAC = b',"mac":"'
DEPTH = 200
"""Lists and objects may stand in each other so deep; the encoders of all libraries take as much."""
ENTRIES = 1 << 20
"""So many values may stand in one list or object."""


def link(chain: str, body: bytes) -> str:
    """Return the chain value of a line: `chain` is that of the line before, `body` the line without its chain field."""
    return blake2b(chain.encode("ascii") + body, digest_size=16).hexdigest()


def seal(body: bytes, chain: str) -> tuple[bytes, str]:
    """Return the whole line, newline included, and its chain value.

    >>> seal(b'{"n":1}', START)
    (b'{"n":1,"chain":"984530e49acf879ea2a3b7c3062fca65"}\\n', '984530e49acf879ea2a3b7c3062fca65')
    """
    chain = link(chain, body)
    return _with(body, _CHAIN, chain) + b"\n", chain


def unseal(line: bytes) -> tuple[bytes, str] | None:
    """Split a line (without newline) into body and chain value; None when it does not end in a chain field.

    >>> unseal(b'{"n":1,"chain":"984530e49acf879ea2a3b7c3062fca65"}')
    (b'{"n":1}', '984530e49acf879ea2a3b7c3062fca65')
    """
    return _without(line, _CHAIN)


def stamp(body: bytes, mac: str) -> bytes:
    """Return the body of a keyed log's line.

    >>> stamp(b'{"n":1}', "984530e49acf879ea2a3b7c3062fca65")
    b'{"n":1,"mac":"984530e49acf879ea2a3b7c3062fca65"}'
    """
    return _with(body, _MAC, mac)


def unstamp(body: bytes) -> tuple[bytes, str | None]:
    """Split the body of a line into what is stamped and its mac; None where it has none."""
    return _without(body, _MAC) or (body, None)


def _with(body: bytes, mark: bytes, value: str) -> bytes:
    return b'%b%b%b"}' % (body[:-1], mark, value.encode("ascii"))


def _without(line: bytes, mark: bytes) -> tuple[bytes, str] | None:
    at = len(line) - len(mark) - 32 - len(b'"}')
    if at < 1 or not line.startswith(mark, at) or not line.endswith(b'"}'):
        return None
    return line[:at] + b"}", line[at + len(mark) : -2].decode("latin-1")


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

    Raises ValueError, with a few words on why, for anything that is not one strict JSON object in this form, and for a
    key that comes twice in one object, a number that is too large, more than DEPTH or ENTRIES.
    """
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_constant, parse_float=_float, object_pairs_hook=_object)
    except RecursionError as error:
        raise ValueError(f"nested too deeply, deeper than {DEPTH}") from error
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    _measure(data, DEPTH)
    if reserved := [name for name in ("mac", "chain") if name in data]:
        raise ValueError(
            f"{reserved[0]}: {shortly(data[reserved[0]])} is not where it belongs, or not 32 hexadecimal digits"
        )
    flags = data.pop("nonfinite", None)
    if flags is not None:
        _restore(data, flags)
    return data


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is larger than any number")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{twice[:100]!r} stands there twice")
    return found


def _measure(node: dict[str, Any] | list[Any], depth: int) -> None:
    """Raise ValueError where a value is nested too deeply or has too many entries."""
    if not depth:
        raise ValueError(f"nested too deeply, deeper than {DEPTH}")
    if len(node) > ENTRIES:
        raise ValueError(f"{len(node)} values in one list or object, more than {ENTRIES}")
    for each in node.values() if isinstance(node, dict) else node:
        if isinstance(each, dict | list):
            _measure(each, depth - 1)


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
    if not isinstance(flags, dict):
        raise ValueError(f"nonfinite names a place that is not there: {shortly(flags)}")
    for pointer, name in flags.items():
        if name not in ("nan", "inf", "-inf"):
            raise ValueError(f"nonfinite {shortly(pointer)}: {shortly(name)} is no such number")
        node: Any = data
        *way, last = [_key(part) for part in pointer.split("/")[1:]] or [""]
        try:
            for part in way:
                node = node[_place(node, part)]
            key = _place(node, last)
            found = node[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ValueError(f"nonfinite names a place that is not there: {shortly(pointer)}") from error
        if found is not None:
            raise ValueError(f"nonfinite {shortly(pointer)}: not null")
        node[key] = float(name)


def _place(node: Any, part: str) -> str | int:
    """Return a step of a pointer as what indexes the node; Python's own indices from behind are none."""
    if isinstance(node, dict):
        return part
    if not part.isascii() or not part.isdecimal() or len(part) > 7:
        raise ValueError(part)
    return int(part)


def _key(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def shortly(value: object) -> str:
    """Return the first hundred characters of a value's repr, for a message."""
    return repr(value)[:100]


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
