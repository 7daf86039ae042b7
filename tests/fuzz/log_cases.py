"""Session logs, damaged or forged in a random way, for a fuzz suite: pure functions of a `random.Random`.

A log is a list of lines, each a dict as `decode` gives it. `forged` changes what it means or how it is written,
`sealed` computes every checksum anew, `damaged` spoils the bytes.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dispatch.log.encoding import START, decode, encode_data, seal, unseal, unstamp

Line = dict[str, Any]
Path_ = tuple[str | int, ...]

STRANGE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 10**30, -(10**30), 2**63, 0.5, -0.5, 1.0, 1e308, -1e308, math.nan, math.inf,
    -math.inf, "", "1",
    "nan", "\x00", "\ud800", "\u202e\x1b[2J[/b]", "x" * 5000, [], {}, [[]], {"a": {}}, [None], [1, "1"], {"": None},
]  # fmt: skip
"""What stands in place of a value: other types, the ends of ranges, numbers that are none, hostile text."""


def lines_of(path: Path) -> list[Line]:
    """Return the lines of a log that is whole."""
    found = []
    for line in filter(None, path.read_bytes().splitlines()):
        parts = unseal(line)
        assert parts is not None
        found.append(decode(unstamp(parts[0])[0]))
    return found


def sealed(lines: list[Line]) -> bytes:
    """Return the bytes of a log, every checksum right, no key."""
    out, chain = [], START
    for data in lines:
        line, chain = seal(encode_data(copy.deepcopy(data)), chain)
        out.append(line)
    return b"".join(out)


def leaves(node: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every value below a node with its path; what has entries is one as well."""
    yield path, node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list | tuple):
        for at, value in enumerate(node):
            yield from leaves(value, (*path, at))


def differences(one: list[Line], other: list[Line]) -> set[str]:
    """Return the paths, without numbers, at which two logs say something else, each with the event of its line.

    Lines that are gone, more or in another order are told as `lines`; how often a session was resumed is not looked at.
    """
    one, other = ([line for line in lines if line.get("event") != "resumed"] for lines in (one, other))
    if [line.get("event") for line in one] != [line.get("event") for line in other]:
        return {"lines"}
    found = set()
    for a, b in zip(one, other, strict=True):
        first, second = (
            {
                path: (type(v).__name__, repr(v))
                for path, v in leaves(line)
                if v is not None and (not isinstance(v, dict | list | tuple) or not v)  # null says what is not there
            }
            for line in (a, b)
        )
        for path in first.keys() ^ second.keys() | {p for p in first.keys() & second.keys() if first[p] != second[p]}:
            found.add(".".join([str(a.get("event")), *(part for part in path if isinstance(part, str))]))
    return found


def forged(lines: list[Line], rng: random.Random) -> tuple[str, list[Line]]:
    """Return what was done and a copy of a log in which one thing, or a few, say something else."""
    lines = copy.deepcopy(lines)
    how = rng.choice(
        ["delete", "change", "change", "nudge", "nudge", "nudge", "add", "copy", "drop", "double", "swap", "two"]
    )
    if how == "two":
        first, lines = forged(lines, rng)
        second, lines = forged(lines, rng)
        return f"{first}, {second}", lines
    at = rng.randrange(len(lines))
    line = lines[at]
    paths = [(path, value) for path, value in leaves(line) if path and path[0] != "event"]
    path, value = rng.choice(paths) if paths else ((), None)
    match how:
        case "drop":
            del lines[at]
        case "double":
            lines.insert(at, copy.deepcopy(line))
        case "swap":
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "add":
            line[rng.choice(["mood", "mac", "request", "failed", "refused", "totals", "keyed", "n", "nonfinite"])] = (
                rng.choice(STRANGE)
            )
        case "delete" if path:
            _remove(line, path)
        case "copy" if path:
            source = [v for each in lines for p, v in leaves(each) if p and p[-1] == path[-1]]
            _put(line, path, copy.deepcopy(rng.choice(source)))
        case "nudge" if path:
            _put(line, path, nudged(value, rng))
        case _ if path:
            _put(line, path, copy.deepcopy(rng.choice(STRANGE)))
    return f"{how} line {at + 1} {'.'.join(map(str, path))}", lines


def nudged(value: Any, rng: random.Random) -> Any:
    """Return a value of the same kind that is a little different."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 2, 100])
    if isinstance(value, float):
        return value + rng.choice([-1.0, 0.001, 0.1, 1.0]) if math.isfinite(value) else 0.0
    if isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        return value[:at] + rng.choice(["x", " ", "1", "\n", ""]) + value[at + rng.randrange(2) :]
    if isinstance(value, list):
        return value[:-1] if value and rng.random() < 0.5 else value + value[:1]
    if isinstance(value, dict):
        return dict(list(value.items())[:-1])
    return value


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return the bytes of a log after an accident, or after somebody who cannot compute checksums."""
    at = rng.randrange(len(data))
    match rng.choice(["cut", "flip", "gone", "block", "junk", "deep", "doubled", "long"]):
        case "cut":
            return data[:at]
        case "flip":
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        case "gone":
            return data[:at] + data[at + rng.randrange(1, 50) :]
        case "block":
            return data[:at] + bytes(rng.randrange(1, 5000)) + data[at:]
        case "junk":
            return data[:at] + rng.randbytes(rng.randrange(1, 300)) + data[at:]
        case "long":
            return data[:at] + b"x" * 100_000 + data[at:]
        case how:
            return unlike(data, rng, how)


def unlike(data: bytes, rng: random.Random, how: str) -> bytes:
    """Return a log with a line, its checksum right, that is no JSON to be read: nested deeply, or with a key twice."""
    out, chain = [], START
    lines = data.splitlines()
    chosen = rng.randrange(len(lines))
    for at, line in enumerate(lines):
        parts = unseal(line)
        assert parts is not None
        body = parts[0]
        if at == chosen:
            key = rng.choice(list(json.loads(body)))
            value = b"[" * 5000 + b"]" * 5000 if how == "deep" else json.dumps(rng.choice([1, "x", None])).encode()
            body = body[:-1] + b"," + json.dumps(key if how == "doubled" else "mood").encode() + b":" + value + b"}"
        new, chain = seal(body, chain)
        out.append(new)
    return b"".join(out)


def _remove(line: Line, path: Path_) -> None:
    node: Any = line
    for part in path[:-1]:
        node = node[part]
    del node[path[-1]]


def _put(line: Line, path: Path_, value: Any) -> None:
    node: Any = line
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = value
