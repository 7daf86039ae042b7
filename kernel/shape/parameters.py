"""Reads the JSON Schema of a tool's arguments: an object whose properties are the arguments, each with its shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel.shape.argument import Argument, Parameters
from kernel.shape.json_schema import Reader


def read_parameters(tool: str, schema: Mapping[str, Any] | None) -> Parameters:
    """Read the schema of a tool's arguments, an object; None or an empty one means that it takes none.

    Raises:
        OpcodeError: naming tool, JSON path and keyword of what cannot be held.
    """
    reader = Reader(tool, {} if schema is None else schema)
    plain = _root(reader)
    shape = reader.finish(reader.shape(plain, "$"))
    required = set(plain.get("required", ()))
    arguments = []
    for name, part in reader.properties(plain, "$").items():
        text = part.get("description", "") if isinstance(part, dict) else ""
        held = reader.shape(part, f"$.properties.{name}")
        arguments.append(Argument(name, held, name in required, None, text if isinstance(text, str) else ""))
    return Parameters(tuple(arguments), shape, tuple(reader.report.notes))


def _root(reader: Reader) -> dict[str, Any]:
    """Return the root as an object with its properties in one place."""
    if not isinstance(reader.root, Mapping):
        raise reader.report.refusal("$", "type", f"the schema of arguments is {reader.root!r}, no object")
    plain = reader.merger.flat(dict(reader.root), "$")
    kind = reader.types(plain, "$") if "type" in plain else ["object"]
    if kind != ["object"]:
        raise reader.report.refusal("$", "type", f"arguments are an object, not {plain['type']!r}")
    for keyword in ("anyOf", "oneOf", "enum", "const"):
        if keyword in plain:
            raise reader.report.refusal("$", keyword, "arguments have names; put the alternatives into one of them")
    plain["type"] = "object"
    if plain.get("additionalProperties", False) is not False:
        reader.report.note("$", "additionalProperties", "read as false: arguments that have no name are left out")
    plain["additionalProperties"] = False
    return plain
