"""Reads the JSON Schema of a tool's arguments: an object whose properties are the arguments, each with its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernel.errors import OpcodeError
from kernel.shape.argument import Argument, Parameters
from kernel.shape.containers import members_of, shape_of
from kernel.shape.json_schema import Reader
from kernel.shape.scalars import size
from kernel.shape.shape import NOTHING, Shape, alt

Way = list[tuple[Argument, Any]]
"""The arguments of one alternative, each with its schema."""


def read_parameters(tool: str, schema: Mapping[str, Any] | None) -> Parameters:
    """Read the schema of a tool's arguments, an object; None or an empty one means that it takes none.

    Raises:
        OpcodeError: naming tool, JSON path and keyword of what cannot be held.
    """
    try:
        reader = Reader(tool, {} if schema is None else schema)
        found = _read(reader)
        reader.check_size(found.shape, lambda: _read(reader))
    except RecursionError as error:
        raise OpcodeError(f"{tool}: $: properties: the schema is too deep to be read") from error
    return found


def _read(reader: Reader) -> Parameters:
    if not isinstance(reader.root, Mapping):
        raise reader.report.refusal("$", "type", f"the schema of arguments is {reader.root!r}, no object")
    plain = reader.merger.flat(dict(reader.root), "$")
    plain.setdefault("type", "object")
    keyword = next((k for k in ("anyOf", "oneOf") if k in plain), None)
    merged = [(plain, "$")] if keyword is None else reader.merged(keyword, plain, "$")
    read = [_alternative(reader, reader.merger.flat(each, place), place) for each, place in merged]
    if keyword == "oneOf":
        reader.tell_apart([each for each, _ in merged], [shape for _, shape in read], "$")
    low, high = size(reader.report, plain, "minProperties", "maxProperties", "$")
    ways = [way for way, _ in read]
    arguments = [tuple(argument for argument, _ in way) for way in ways]
    shape = alt(*(shape for _, shape in read))
    return Parameters(_together(ways), shape, reader.report.notes, tuple(arguments), low, high)


def _alternative(reader: Reader, plain: dict[str, Any], path: str) -> tuple[Way, Shape]:
    """Return the arguments of a flat schema, and the shape of their object."""
    report = reader.report
    report.check(plain, path)
    if (kinds := reader.types(plain, path)) != ["object"]:
        raise report.refusal(path, "type", f"arguments are an object, not {kinds}")
    for keyword in ("anyOf", "oneOf", "enum", "const"):
        if keyword in plain:
            raise report.refusal(path, keyword, "arguments have names; put the alternatives into one of them")
    report.check_types(plain, kinds, path)
    members = members_of(report, reader.shape, plain, path)
    if plain.get("additionalProperties", False) is not False:
        report.note(path, "additionalProperties", "read as false: arguments that have no name are left out")
    shape = shape_of(report, reader.shape, {**plain, "additionalProperties": False}, members, path)
    schemas = plain.get("properties") or {}
    way: Way = []
    for member in members:
        part = schemas.get(member.name)
        text = part.get("description", "") if isinstance(part, Mapping) else ""
        about = text if isinstance(text, str) else ""
        if member.shape is not NOTHING:
            way.append((Argument(member.name, member.shape, member.required, None, about), part))
    return way, shape


def _together(ways: Sequence[Way]) -> tuple[Argument, ...]:
    """Return the arguments of all alternatives; each has the values that any of them gives it."""
    found: dict[str, Way] = {}
    for way in ways:
        for argument, schema in way:
            found.setdefault(argument.name, []).append((argument, schema))
    out = []
    for name, some in found.items():
        distinct = [a for n, (a, schema) in enumerate(some) if not any(schema == other for _, other in some[:n])]
        required = len(some) == len(ways) and all(argument.required for argument, _ in some)
        shape = alt(*(argument.shape for argument in distinct))
        out.append(Argument(name, shape, required, None, distinct[0].description))
    return tuple(out)
