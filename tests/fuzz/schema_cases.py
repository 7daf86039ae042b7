"""Schemas and values for tests: pure functions of a random.Random.

`schema` makes a schema of the kinds that are held, with values that satisfy it in the one way that we write them.
`hostile` makes one of those and breaks it, or makes it too large, too deep, or nonsense.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Schema = dict[str, Any]
Values = list[Any]

CONSTANTS: Values = [
    1,
    "1",
    True,
    None,
    "küche",
    "a b",
    0.5,
    "on",
    -3,
    "",
    '"',
    "\n",
    [1, "x"],
    {"k": [None]},
    "\U0001f600",
]
NAMES = ["a", "b", "room", "größe", 'q"', "x y", "$ref", "0", "__proto__"]
WORDS = ["", "a", "ab", "x.y", "hello", "ä" * 3, "\\", "line\nend", "2024-02-29"]
HALVES = [0.25, 0.5, 2.0, 5, 1]


def scalar(rng: random.Random) -> tuple[Schema, Values]:
    """Return a schema of a string, a number or constants, and some values of it."""
    match rng.randrange(9):
        case 0:
            chosen = rng.sample(CONSTANTS, rng.randint(1, 5))
            return {"enum": chosen}, chosen
        case 1:
            value = rng.choice(CONSTANTS)
            return {"const": value}, [value]
        case 2:
            return {"type": rng.choice(["boolean", ["boolean"]])}, [True, False]
        case 3:
            low = rng.randint(-50, 50)
            high = low + rng.randint(0, 400)
            return {"type": "integer", "minimum": low, "maximum": high}, [low, high, (low + high) // 2]
        case 4:
            return bounded(rng)
        case 5:
            step = rng.choice(HALVES)
            most = rng.randint(1, 40)
            whole = [n * step for n in (0, 1, most)]
            return {"type": "number", "multipleOf": step, "minimum": 0, "maximum": most * step}, [
                float(n) for n in whole
            ]
        case 6:
            low = rng.randint(0, 3)
            values = [word for word in WORDS if low <= len(word) <= low + 6]
            return {"type": "string", "minLength": low, "maxLength": low + 6}, values
        case 7:
            pattern, values = rng.choice(
                [
                    ("^[a-c]{2,3}$", ["ab", "ccc"]),
                    ("x.y", ["x.y", "axby"]),
                    (r"^\d+(-\d+)?$", ["1", "12-3"]),
                    ("^(on|off)?$", ["", "off"]),
                ]
            )
            return {"type": "string", "pattern": pattern}, values
    name, values = rng.choice(
        [
            ("date", ["2024-02-29"]),
            ("ipv4", ["127.0.0.1"]),
            ("uuid", ["123e4567-e89b-12d3-a456-426614174000"]),
            ("email", ["a.b@example.org"]),
            ("hostname", ["example.org"]),
            ("time", ["23:59:59Z"]),
        ]
    )
    return {"type": "string", "format": name}, values


def bounded(rng: random.Random) -> tuple[Schema, Values]:
    """Return a schema of numbers within bounds that may be left out, and values around them."""
    low, high = sorted(rng.sample([-180, -1, -0.5, 0, 0.25, 1, 180, 1e6, -2.5], 2))
    schema: Schema = {"type": "number"}
    if rng.random() < 0.8:
        schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.8:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = high
    middle = (low + high) / 2
    return schema, [middle, low + (high - low) / 4, *(v for k, v in schema.items() if k in ("minimum", "maximum"))]


def schema(rng: random.Random, depth: int = 3) -> tuple[Schema, Values]:
    """Return a schema with at most so many schemas inside each other, and some values of it."""
    kind = rng.randrange(6) if depth > 0 else 0
    if kind <= 1:
        return scalar(rng)
    if kind == 2:
        inner, values = schema(rng, depth - 1)
        low, more = rng.randint(0, 2), rng.randint(0, 3)
        out: Schema = {"type": "array", "items": inner, "minItems": low}
        if rng.random() < 0.7:
            out["maxItems"] = low + more
        return out, [[rng.choice(values) for _ in range(low + n)] for n in range(more + 1)]
    if kind == 3:
        parts = [schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return {"anyOf": [part for part, _ in parts]}, [v for _, values in parts for v in values]
    if kind == 4:
        inner, values = schema(rng, depth - 1)
        return {"type": "object", "additionalProperties": inner}, [{}, {"k": rng.choice(values)}]
    names = rng.sample(NAMES, rng.randint(1, 4))
    members = {name: schema(rng, depth - 1) for name in names}
    required = [name for name in names if rng.random() < 0.5]
    out = {
        "type": "object",
        "properties": {name: part for name, (part, _) in members.items()},
        "required": required,
        "additionalProperties": False,
    }
    if rng.random() < 0.2:
        out["minProperties"] = len(required)
    whole = []
    for _ in range(3):
        there = [name for name in names if name in required or rng.random() < 0.5]
        whole.append({name: rng.choice(members[name][1]) for name in there})
    return out, whole


def document(rng: random.Random) -> tuple[Schema, Values]:
    """Return the schema of a tool's arguments, some of it under $defs, and values of it."""
    name = rng.choice(NAMES)
    part, values = schema(rng)
    other, more = schema(rng, 2)
    tree: Schema = {
        "type": "object",
        "properties": {"v": other, "kids": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 2}},
        "required": ["v"],
        "additionalProperties": False,
    }
    out: Schema = {
        "type": "object",
        "properties": {name: {"$ref": "#/$defs/p"}, "tree": {"$ref": "#/$defs/t"}},
        "required": [name],
        "additionalProperties": False,
        "$defs": {"p": part, "t": tree},
    }
    leaf = {"v": rng.choice(more)}
    return out, [{name: v} for v in values] + [
        {name: values[0], "tree": {**leaf, "kids": [leaf, {**leaf, "kids": []}]}}
    ]


JUNK: Values = [
    None,
    True,
    -1,
    1.5,
    1e308,
    10**400,
    float("inf"),
    float("nan"),
    "",
    "\ud800",
    "a\x00b",
    "(" * 300,
    "(a*)*b",
    [],
    [[]],
    {},
    {"a": {}},
    {"$ref": "#"},
    {"$ref": "#/$defs/p"},
    {"$ref": "#/nowhere/0"},
    {"type": "object", "required": ["x"], "additionalProperties": False},
    {"not": {}},
    {"enum": []},
    {"allOf": []},
    {"type": "array", "minItems": 10**9},
    {"minLength": 1e10},
    {"pattern": "[" * 9},
    {"type": "string", "pattern": "^((a|b|ab)*c?){90}$", "minLength": 50},
    {"multipleOf": 1e-300, "minimum": 0, "maximum": 1},
    {"minimum": 1e300, "maximum": 1e301},
    {"exclusiveMinimum": 0, "exclusiveMaximum": 5e-324},
    False,
]
"""Values that a keyword may have by mistake or by malice."""
KEYWORDS = [
    "type",
    "enum",
    "const",
    "$ref",
    "anyOf",
    "oneOf",
    "allOf",
    "nullable",
    "$defs",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "title",
    "default",
    "description",
    "x-vendor",
    "maxlenght",
    "not",
    "if",
]


def hostile(rng: random.Random) -> Schema:
    """Return a schema of arguments that is broken in one to four places, or one that is large or deep on purpose."""
    if rng.random() < 0.15:
        return rng.choice(LARGE)(rng)
    found = json.loads(json.dumps(document(rng)[0]))
    for _ in range(rng.randint(1, 4)):
        where = rng.choice(mappings(found))
        junk = rng.choice([*JUNK, *KEYWORDS, [rng.choice(JUNK)], [rng.choice(KEYWORDS)] * 2])
        where[rng.choice(KEYWORDS)] = copy.deepcopy(junk)  # it may become the place that is broken next
    return found


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return all objects in a JSON value."""
    found: list[dict[str, Any]] = []
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            found.append(each)
            todo += each.values()
        elif isinstance(each, list):
            todo += each
    return found


def _doubling(rng: random.Random) -> Schema:
    last, keyword = rng.randint(5, 40), rng.choice(["properties", "allOf", "anyOf", "oneOf", "prefixItems"])
    defs: Schema = {f"d{last}": {"enum": [1, 2]}}
    for n in range(last):
        ref = {"$ref": f"#/$defs/d{n + 1}"}
        defs[f"d{n}"] = (
            {"required": ["a", "b"], "properties": {"a": ref, "b": ref}}
            if keyword == "properties"
            else {keyword: [ref, ref]}
        )
    return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"], "$defs": defs}


def _deep(rng: random.Random) -> Schema:
    inner: Any = {"type": "string"}
    for n in range(rng.choice([20, 60, 300, 2000])):
        inner = rng.choice([{"type": "array", "items": inner}, {"properties": {f"n{n}": inner}}, {"anyOf": [inner]}])
    return {"properties": {"x": inner}, "required": ["x"]}


def _wide(rng: random.Random) -> Schema:
    count = rng.choice([50, 300, 1000, 6000])
    part = rng.choice(
        [{"type": "boolean"}, {"type": "string"}, {"const": 1}, {"type": "integer", "minimum": 0, "maximum": 9}]
    )
    names = [f"p{n}" for n in range(count)]
    return {
        "properties": dict.fromkeys(names, part),
        "required": rng.sample(names, rng.choice([0, 1, count // 2, count])),
    }


def _repeated(rng: random.Random) -> Schema:
    bounds = [0, 1, 5, 60, 70, 5000, 10**6, 10**10]
    low, high = sorted(rng.sample(bounds, 2))
    part = rng.choice([{"const": 1}, {"type": "string"}, {"enum": list("abcdefghijkl")}])
    unique = rng.random() < 0.3
    return {
        "properties": {"x": {"type": "array", "items": part, "minItems": low, "maxItems": high, "uniqueItems": unique}}
    }


LARGE: list[Callable[[random.Random], Schema]] = [_doubling, _deep, _wide, _repeated]
