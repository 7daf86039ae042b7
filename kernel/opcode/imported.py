"""Opcodes out of JSON Schemas: their arguments are a dict, checked against the shape. Knows no tool list, no tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import ConfigDict

from kernel.canon import canonical
from kernel.errors import OpcodeError
from kernel.opcode import Instruction, Opcode
from kernel.shape.keywords import Note
from kernel.shape.schema import Argument, Parameters, read_parameters

LISTED = 4096
"""Values up to which an imported opcode is listed: nobody wrote an engine that says which of more are legal."""


class SchemaOpcode(Opcode):
    """An opcode that a JSON Schema declares; make the class with `Opcode.from_json_schema`.

    `values` are the arguments that were given, by name, in the order of their declaration.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    method: ClassVar[str] = "schema_opcode"
    schema_: ClassVar[Mapping[str, Any]] = {}
    parameters: ClassVar[Parameters]
    _most: ClassVar[int] = LISTED
    original: ClassVar[str] = ""
    """The name of the tool as its server has it."""

    values: dict[str, Any]

    def instruction(self, cartridge: str) -> Instruction:
        """See Opcode."""
        return Instruction(cartridge, self.method, canonical(self.values))

    @classmethod
    def from_arguments(cls, arguments: str) -> Self:
        """See Opcode."""
        names: list[str] = []

        def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
            """Take objects from the inside out, so that the last one is that of the arguments."""
            names[:] = [name for name, _ in found]
            return dict(found)  # in a map a key may come twice, no grammar can tell; as everywhere, the last one counts

        try:
            values = json.loads(arguments, object_pairs_hook=pairs, parse_constant=_no_constant)
        except ValueError as error:
            raise OpcodeError(f"{cls.method}: {arguments!r} is no JSON: {error}") from error
        if not isinstance(values, dict):
            raise OpcodeError(f"{cls.method}: {arguments!r} is no object of arguments")
        if len(set(names)) < len(names):
            raise OpcodeError(f"{cls.method}: an argument comes twice in {names}")
        known = {argument.name: argument for argument in cls.arguments()}
        for name in values:
            if name not in known:
                raise OpcodeError(f"{cls.method}.{name}: there is no such argument; there is: {', '.join(known)}")
        for name, argument in known.items():
            if name not in values:
                if argument.required:
                    raise OpcodeError(f"{cls.method}.{name}: is missing")
            elif not argument.recogniser.accepts(canonical(values[name])):
                schema = cls.schema_.get("properties", {}).get(name, {})
                raise OpcodeError(f"{cls.method}.{name}: {values[name]!r} does not satisfy {canonical(schema)}")
        return cls(values={name: values[name] for name in known if name in values})

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        """See Opcode."""
        return cls.parameters.arguments

    @classmethod
    def notes(cls) -> tuple[Note, ...]:
        """Return what of the schema is not held to the letter."""
        return cls.parameters.notes


def opcode_of(method: str, schema: Mapping[str, Any] | None, *, original: str = "") -> type[SchemaOpcode]:
    """Return the opcode class of a schema of arguments; see `Opcode.from_json_schema`."""
    parameters = read_parameters(original or method, schema)
    text = (schema or {}).get("description") or original or method
    body = {
        "__doc__": text if isinstance(text, str) else method,
        "__module__": __name__,
        "method": method,
        "schema_": dict(schema or {}),
        "parameters": parameters,
        "original": original or method,
    }
    return type(_class_name(method), (SchemaOpcode,), body)


def read_schema(name: str, schema: Mapping[str, Any] | str | Path | None) -> Mapping[str, Any] | None:
    """Return a schema that is given as a mapping, as JSON text, or as a file; raises OpcodeError."""
    if schema is None or isinstance(schema, Mapping):
        return schema
    if isinstance(schema, Path) or not schema.lstrip().startswith("{"):
        try:
            schema = Path(schema).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise OpcodeError(f"{name}: {str(schema)!r} cannot be read: {error}") from error
    try:
        found = json.loads(schema)
    except ValueError as error:
        raise OpcodeError(f"{name}: the schema is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise OpcodeError(f"{name}: the schema is {found!r}, no object")
    return found


def _class_name(method: str) -> str:
    return "".join(part.capitalize() for part in method.replace("-", "_").split("_")) or "Tool"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
