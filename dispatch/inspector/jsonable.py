"""Values as the page is told them: numbers that JSON lacks as texts, long texts cut, bytes as text or hexadecimal."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

LONGEST = 1 << 18
"""Characters of a text; what is longer is cut."""
IN_ROWS = 240
"""Characters of a text in a row of a list."""

Json = dict[str, Any]


def number(value: float | None) -> float | str | None:
    """Return a number; one that is not finite as text, since JSON has none.

    >>> number(1.5), number(float("-inf")), number(None)
    (1.5, '-inf', None)
    """
    return value if value is None or math.isfinite(value) else str(value)


def clip(text: str, most: int = LONGEST) -> str:
    """Return a text of at most so many characters, and how many were left off.

    >>> clip("abcdef", 4)
    'abcd… (2 more characters)'
    """
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def brief(text: str) -> str:
    """Return a text as a row of a list has it."""
    return text if len(text) <= IN_ROWS else f"{text[: IN_ROWS - 1]}…"


def of_bytes(data: bytes) -> Json:
    """Return bytes as `{"text", "hex"}`, of which one is None.

    >>> of_bytes(b" left"), of_bytes(b"\\xf0\\x9f")
    ({'text': ' left', 'hex': None}, {'text': None, 'hex': 'f09f'})
    """
    try:
        return {"text": data.decode("utf-8"), "hex": None}
    except UnicodeDecodeError:
        return {"text": None, "hex": data.hex()}


def plain(value: Any) -> Any:
    """Return a value that JSON has: records as objects, numbers that are not finite and long texts as above."""
    match value:
        case str():
            return clip(value)
        case float():
            return number(value)
        case BaseModel():
            return plain(value.model_dump(mode="python", by_alias=True, exclude_none=True))
        case Mapping():
            return {clip(str(name)): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
    return value


def dump(value: Any) -> bytes:
    """Return a plain value as JSON in ASCII, so that half of a surrogate pair is no error."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
