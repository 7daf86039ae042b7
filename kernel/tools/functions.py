"""Python functions as tools: signature and docstring become the schema of the arguments, by way of pydantic."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, validate_call
from pydantic.errors import PydanticInvalidForJsonSchema

from kernel.errors import OpcodeError

ENTRY = re.compile(r"^(?P<indent>[ \t]*)(?:[:@]param )?(?P<name>\*{0,2}\w+)(?: *\([^)]*\))?:[ \t]+(?P<text>\S.*)$")
"""The line of an argument in a docstring: `city: where`, `city (str): where`, `:param city: where`."""


def declared(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function as the entry of a tool list.

    The description is the docstring up to its sections; what it says of an argument describes the argument.

    Raises:
        OpcodeError: a parameter whose type has no JSON Schema, or that can only be given by its place.

    >>> def set_timer(minutes: int, label: str = "") -> None:
    ...     '''Start a timer.
    ...
    ...     Args:
    ...         minutes: how long it runs.
    ...     '''
    >>> entry = declared(set_timer)
    >>> entry["description"], entry["parameters"]["required"]
    ('Start a timer.', ['minutes'])
    >>> entry["parameters"]["properties"]["minutes"]
    {'description': 'how long it runs.', 'type': 'integer'}
    """
    name = getattr(function, "__name__", "") or type(function).__name__
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY or parameter.kind is parameter.VAR_POSITIONAL:
            raise OpcodeError(f"{name}: parameter {parameter.name!r} has no name for its caller; make it a keyword")
    try:
        schema = TypeAdapter[Any](function).json_schema()  # type: ignore[arg-type]
    except (PydanticUserError, PydanticInvalidForJsonSchema) as error:
        raise OpcodeError(f"{name}: its signature has no JSON Schema: {str(error).splitlines()[0]}") from error
    about, arguments = read_docstring(inspect.getdoc(function) or "")
    for key, part in schema.get("properties", {}).items():
        part.pop("title", None)
        if key in arguments:
            part.setdefault("description", arguments[key])
    schema["properties"] = {
        key: dict(sorted(part.items(), key=lambda item: item[0] != "description"))
        for key, part in schema.get("properties", {}).items()
    }
    return {"name": name, "description": about or name.replace("_", " "), "parameters": schema}


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that turns its arguments from JSON into what its signature says, a date for instance."""
    return validate_call(function)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says of the function, and of each argument by name.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a: one,\\n        or so.\\n    b (int): another.\\nReturns:\\n    c: it.")
    ('Add.', {'a': 'one, or so.', 'b': 'another.'})
    """
    lines = text.splitlines()
    section = next((n for n, line in enumerate(lines) if re.match(r"\s*(?:\w+:\s*$|[:@]\w+)", line)), len(lines))
    about = " ".join(" ".join(lines[:section]).split())
    found: dict[str, str] = {}
    name, indent, inside = "", "", False
    for line in lines[section:]:
        if re.match(r"\s*\w+:\s*$", line):
            inside, name = line.strip().rstrip(":").lower() in ("args", "arguments", "parameters", "params"), ""
        elif (entry := ENTRY.match(line)) and (inside or line.lstrip()[:1] in ":@"):
            if name and inside and len(entry["indent"]) > len(indent):  # a line that goes on, with a colon in it
                found[name] += f" {line.strip()}"
                continue
            name, indent = entry["name"].lstrip("*"), entry["indent"]
            found[name] = entry["text"].strip()
        elif name and line.strip():
            found[name] += f" {line.strip()}"
    return about, found
