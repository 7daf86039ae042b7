"""Hostile tool lists, each drawn from a random.Random: names, texts and values that try to become code."""

from __future__ import annotations

import random
from typing import Any

PIECES = (
    '"""', "'''", '"', "'", "\\", "\\\\", "\\N{DIGIT ONE}", "\\x", "\\u12", "{", "}", "{0}", "%s", "#", ";", "\0",
    "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[2J", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\ufeff", "\ud800",
    "\U0001f999", "é", "e\u0301", "\ufb01", "fi", " ", "\t", "`", "```", "[x](http://x)", "<script>", "# ", "return",
    "print('RAN')", "\nprint('RAN')\n", "RAN()", '"""\nprint("RAN")\n"""', "'''\nprint('RAN')\n'''", "\nimport os\n",
    "):\n    pass\nprint('RAN')\ndef g(", "__import__('os')", "lambda: 0", "x" * 99, "-", "_", ".", "/",
)  # fmt: skip
"""What the texts are made of."""

NAMES = (
    "a", "b", "ping", "a-b", "a_b", "a.b", "print", "list", "str", "import", "class", "match", "Any", "annotations",
    "None", "__debug__", "__name__", "__init__", "self", "toolbox", "handlers", "make", "halt", "\ufb01", "fi",
    "x" * 110, "x" * 201, "é", "e\u0301", "ªb", "", " ", "_", "3d", "a b",
)  # fmt: skip
"""Names of tools and arguments that Python gives a sense, reads as others, or that meet under one function."""


def text(rng: random.Random) -> str:
    """Return a text; often its hostile piece stands where descriptions are cut, at 95 to 105 characters."""
    piece = rng.choice(PIECES)
    if rng.random() < 0.4:
        return "x" * rng.randint(95 - len(piece), 105) + piece + rng.choice(PIECES)
    return "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 4)))


def name(rng: random.Random) -> str:
    """Return the name of a tool or an argument."""
    return rng.choice(NAMES) if rng.random() < 0.6 else text(rng)


def value(rng: random.Random) -> Any:
    """Return a value of JSON, or of what Python's reader takes for JSON."""
    plain = (None, True, 0, -1, 10**400, 1.5, 1e308, float("inf"), float("nan"), [], {})
    return text(rng) if rng.random() < 0.6 else rng.choice(plain)


def domain(rng: random.Random) -> dict[str, Any]:
    """Return the schema of an argument."""
    kinds: tuple[dict[str, Any], ...] = (
        {"type": "string", "maxLength": rng.randint(0, 40)},
        {"type": "integer", "minimum": 0, "maximum": rng.randint(0, 9)},
        {"type": "boolean"},
        {"enum": [value(rng) for _ in range(rng.randint(1, 3))]},
        {"const": value(rng)},
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        {"type": "object", "properties": {name(rng): {"type": "boolean"}}, "additionalProperties": False},
        {"type": text(rng)},
    )
    said = {"title": text(rng), "description": text(rng), "default": value(rng), "examples": [value(rng)]}
    return rng.choice(kinds) | {key: said[key] for key in rng.sample(sorted(said), rng.randint(0, 2))}


def tool(rng: random.Random) -> dict[str, Any]:
    """Return one tool."""
    names = list(dict.fromkeys(name(rng) for _ in range(rng.randint(0, 4))))
    schema: dict[str, Any] = {"type": "object", "properties": {each: domain(rng) for each in names}}
    schema["required"] = [each for each in names if rng.random() < 0.5]
    if rng.random() < 0.3:
        schema |= {"title": text(rng), "description": text(rng)}
    made = {"name": name(rng), "inputSchema": schema}
    return made | {"description": text(rng)} if rng.random() < 0.8 else made


def tools(rng: random.Random) -> list[dict[str, Any]]:
    """Return a tool list; the last of it is harmless and must load whatever stands before."""
    return [*(tool(rng) for _ in range(rng.randint(1, 4))), {"name": "fine", "description": "Nothing is wrong here."}]
