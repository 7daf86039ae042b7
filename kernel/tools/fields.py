"""The fields of a tool: its arguments, and in place of an object the members of the object.

Each has one value that is found by itself; together they are the arguments of a call again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.errors import OpcodeError
from kernel.opcode.domains import parameters_of
from kernel.opcode.opcode import SchemaOpcode
from kernel.shape.argument import Argument

DEEP = 3
"""Objects inside each other whose members are fields."""


@dataclass(frozen=True)
class Field:
    """One value of a call.

    Attributes:
        path: its name, behind the names of the objects around it.
        argument: what it may be.
        schema: of the value, references resolved.
        required: whether it has to be there, where the objects around it are.
    """

    path: tuple[str, ...]
    argument: Argument
    schema: Mapping[str, Any]
    required: bool

    @property
    def name(self) -> str:
        """What it is called, in words.

        >>> from kernel.shape.shape import EMPTY
        >>> Field(("fromCity_name",), Argument("fromCity_name", EMPTY, True), {}, True).name
        'from city name'
        """
        spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.path[-1])
        return " ".join(re.split(r"[_\-.\s]+", spaced)).strip().lower() or self.path[-1]

    @property
    def about(self) -> str:
        """What its schema says of it, or its name."""
        return " ".join(self.argument.description.split()) or self.name


def fields_of(opcode: type[SchemaOpcode]) -> list[Field]:
    """Return the fields of a tool in the order of their declaration."""
    schema = opcode.schema_
    return _fields(opcode.method, opcode.arguments(), _properties(schema, schema), schema, ())


def _fields(
    method: str,
    arguments: Sequence[Argument],
    schemas: Mapping[str, Mapping[str, Any]],
    root: Mapping[str, Any],
    path: tuple[str, ...],
) -> list[Field]:
    found: list[Field] = []
    for argument in arguments:
        schema = schemas.get(argument.name, {})
        here = (*path, argument.name)
        inner = _properties(schema, root) if len(path) < DEEP and schema.get("type") == "object" else {}
        members: Sequence[Argument] = ()
        if inner and not {"anyOf", "oneOf", "allOf"} & schema.keys():
            try:
                members = parameters_of(method, {**_definitions(root), **schema}).arguments
            except OpcodeError:
                members = ()
        if members:
            found += [
                Field(each.path, each.argument, each.schema, each.required and argument.required)
                for each in _fields(method, members, inner, root, here)
            ]
        else:
            found.append(Field(here, argument, schema, argument.required))
    return found


def _definitions(root: Mapping[str, Any]) -> dict[str, Any]:
    return {key: root[key] for key in ("$defs", "definitions") if key in root}


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of an object's members, each with what it refers to."""
    properties = schema.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: resolved(part, root) for name, part in found.items() if isinstance(part, Mapping)}


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with the one that it refers to written out, at its top and in its alternatives and items."""
    for _ in range(8):
        target: Any = root
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        for key in reference[2:].split("/"):
            target = target.get(key.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
        if not isinstance(target, Mapping):
            return {}
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    out = dict(schema)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            out[keyword] = [resolved(part, root) for part in schema[keyword] if isinstance(part, Mapping)]
        parts = [part for part in out.get(keyword, []) if part.get("type") != "null"]
        if len(parts) == 1:  # what may be null is left out instead
            del out[keyword]
            out = {**parts[0], **out}
    if isinstance(out.get("type"), list):
        kinds = [kind for kind in out["type"] if kind != "null"]
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
    if isinstance(out.get("items"), Mapping) and "$ref" in out["items"]:
        out["items"] = resolved(out["items"], root)
    return out


def put(values: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put a value of a field among the arguments of a call.

    >>> values = {}
    >>> put(values, ("at", "hour"), 7)
    >>> put(values, ("at", "minute"), 30)
    >>> values
    {'at': {'hour': 7, 'minute': 30}}
    """
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value
