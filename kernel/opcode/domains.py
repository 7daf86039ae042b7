"""The arguments of an opcode class, and all their values where these can be listed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from kernel.canon import canonical
from kernel.errors import OpcodeError, short
from kernel.shape.argument import Argument, Parameters
from kernel.shape.listing import LISTED, Counter, texts


def parameters_of(method: str, schema: Mapping[str, Any] | None) -> Parameters:
    """Return what a JSON Schema says of a method's arguments.

    The reader of schemas is loaded here, at the first use, since opcodes are declared long before their arguments are
    asked for. Raises OpcodeError.
    """
    from kernel.shape.parameters import read_parameters

    return read_parameters(method, schema)


def arguments_of(method: str, model: type[BaseModel]) -> tuple[Argument, ...]:
    """Return the fields of a pydantic class as arguments, from the JSON schema that pydantic writes of the class."""
    out = []
    for argument in parameters_of(method, model.model_json_schema()).arguments:
        field = model.model_fields[argument.name]
        default = None if field.is_required() else _json(field.get_default(call_default_factory=True))
        out.append(replace(argument, default=default))
    return tuple(out)


def why_open(method: str, arguments: Sequence[Argument], most: int) -> str | None:
    """Return why the values of an opcode cannot be listed, or None where they can.

    Args:
        most: the number of combinations that are listed at most.
    """
    size = 1
    for argument in arguments:
        count = Counter()(argument.shape)
        if count > LISTED:
            return (
                f"{method}.{argument.name}: not a finite domain of at most {LISTED} values; "
                "use Literal, Enum, bool, None, or a number with bounds on both sides and a step"
            )
        size *= count + (not argument.required and argument.default is None)
    return f"{method}: {size} combinations are more than {most}" if size > most else None


def combinations(arguments: Sequence[Argument]) -> Iterator[str]:
    """Yield the JSON object of every combination of values; the last argument changes first."""
    listed = [
        [
            *([] if a.required or a.default is not None else [""]),
            *(f"{canonical(a.name)}:{text}" for text in dict.fromkeys(texts(a.shape))),
        ]
        for a in arguments
    ]
    for values in itertools.product(*listed):
        yield "{" + ",".join(filter(None, values)) + "}"


def read_schema(name: str, schema: Mapping[str, Any] | str | Path | None) -> Mapping[str, Any] | None:
    """Return a schema that is given as a mapping, as JSON text, or as a file; raises OpcodeError."""
    if schema is None or isinstance(schema, Mapping):
        return schema
    if isinstance(schema, Path) or not schema.lstrip().startswith("{"):
        from kernel.textfile import read_text  # an author of opcodes seldom has a file

        schema = read_text(Path(schema), OpcodeError, f"{name}: {str(schema)!r}")
    try:
        found = json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise OpcodeError(f"{name}: the schema is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise OpcodeError(f"{name}: the schema is {short(found)}, no object")
    return found


def _json(value: Any) -> str:
    """Return a default as JSON text: an enum member is its value, a model its fields."""
    return canonical(TypeAdapter(type(value)).dump_python(value, mode="json"))
