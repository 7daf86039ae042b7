"""Checks a schema as a JSON document before anything of it is read, and finds places in it again by their paths.

A path is that of a JSON value in the document: `$.properties.code`, `$.anyOf[1]["odd name"]`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kernel.errors import short
from kernel.shape.limits import DOCUMENT_NESTING, DOCUMENT_VALUES

PLAIN = re.compile(r"[A-Za-z_$][\w$-]*", re.ASCII)
STEP = re.compile(r'\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]', re.ASCII)


def child(path: str, *keys: str | int) -> str:
    """Return the path of a value inside that of another.

    >>> child("$", "anyOf", 1, "odd name")
    '$.anyOf[1]["odd name"]'
    """
    for key in keys:
        plain = isinstance(key, str) and PLAIN.fullmatch(key)
        path += f".{key}" if plain else f"[{json.dumps(key)}]"
    return path


def parent(path: str) -> tuple[str, str]:
    """Return the path of what holds a value, and the last step to the value.

    >>> parent("$.properties.code"), parent("$")
    (('$.properties', 'code'), ('$', '$'))
    """
    steps = list(STEP.finditer(path))
    if not steps:
        return "$", "$"
    name, number, quoted = steps[-1].groups()
    return path[: steps[-1].start()], name or number or json.loads(quoted)


def fault(document: Any) -> tuple[str, str, str] | None:
    """Return path, key and reason of the first value in a document that no schema may hold; None where all is well."""
    todo: list[tuple[Any, str, str, int]] = [(document, "$", "$", 0)]
    """A value, the path of what holds it, its own last step, how deep it is."""
    count = 0
    while todo:
        value, above, key, depth = todo.pop()
        count += 1
        reason = ""
        if count > DOCUMENT_VALUES:
            reason = f"the schema has more than {DOCUMENT_VALUES} values"
        elif depth > DOCUMENT_NESTING:
            reason = f"more than {DOCUMENT_NESTING} lists and objects of JSON are inside each other"
        elif isinstance(value, str) and not _is_text(value):
            reason = f"{short(value)} has half a surrogate pair, which is no character"
        elif isinstance(value, float) and not math.isfinite(value):
            reason = f"{value!r} is no JSON number"
        elif isinstance(value, int) and value.bit_length() > 4096:
            reason = "the number has too many digits to be read"
        elif isinstance(value, Mapping):
            wrong = next((name for name in value if not isinstance(name, str) or not _is_text(name)), None)
            if wrong is not None:
                reason = f"the key {short(wrong)} is no text"
            path = _below(above, key)
            todo += [(part, path, name, depth + 1) for name, part in reversed(list(value.items()))]
        elif isinstance(value, list | tuple):
            path = _below(above, key)
            todo += [(part, path, str(n), depth + 1) for n, part in reversed(list(enumerate(value)))]
        elif value is not None and not isinstance(value, str | bool | int | float):
            reason = f"{short(value)} is no JSON"
        if reason:
            return above, key, reason
    return None


def _below(above: str, key: str) -> str:
    """Return the path of a key; that of a list's item is its number."""
    return key if key == "$" and above == "$" else child(above, int(key) if key.isdecimal() else key)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def places(document: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the places on the way to a path with what stands there, the innermost first."""
    found = [("$", document)]
    at = "$"
    for name, number, quoted in STEP.findall(path):
        key: str | int = name or (int(number) if number else json.loads(quoted))
        at, value = child(at, key), found[-1][1]
        if isinstance(key, int) and isinstance(value, list) and key < len(value):
            found.append((at, value[key]))
        elif isinstance(value, Mapping) and str(key) in value:
            found.append((at, value[str(key)]))
        else:
            break
    yield from reversed(found)
