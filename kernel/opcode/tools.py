"""Reads tool lists, as the OpenAI API and MCP's `tools/list` write them, into opcodes.

A tool that cannot be held is left out with its reason and the others stay. Names become methods; two tools whose
functions would have one name are left out both, whichever came first.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel.errors import OpcodeError, short
from kernel.opcode.instruction import HALT, NAME
from kernel.opcode.opcode import SchemaOpcode
from kernel.shape.dialect import speaks, translate
from kernel.shape.keywords import Note, Report
from kernel.textfile import read_text

SCHEMAS = ("parameters", "inputSchema", "input_schema", "parametersJsonSchema")
"""Where a tool keeps the schema of its arguments: OpenAI, MCP, Anthropic, Gemini."""


TAKEN = (
    "abs aiter all anext annotations any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile "
    "complex copyright credits delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr "
    "globals hasattr hash help hex id input int isinstance issubclass iter len license list locals map max memoryview "
    "min next object oct open ord pow print property quit range repr reversed round set setattr slice sorted "
    "staticmethod str sum super tuple type vars zip"
)
"""What a function of a tool is not called, written out so that the name of a function is the same on every Python."""

LONGEST_NAME = 200
"""Letters that the method of a tool may have."""


@dataclass(frozen=True)
class Tool:
    """A tool as its server lists it; `schema` is plain JSON Schema, `destructive` whether it says it may destroy."""

    name: str
    description: str
    schema: Mapping[str, Any] | None
    notes: tuple[Note, ...] = ()
    destructive: bool = False


@dataclass(frozen=True)
class Refusal:
    """A tool that was left out, and why."""

    tool: str
    reason: str


@dataclass(frozen=True)
class Imported:
    """What became of a tool list."""

    tools: tuple[Tool, ...]
    opcodes: tuple[type[SchemaOpcode], ...]
    refusals: tuple[Refusal, ...]
    notes: tuple[Note, ...]


def method_of(name: str) -> str:
    """Return the method that stands for a tool's name.

    Capitals become small, what is no letter or digit becomes `_`, a letter beyond ASCII its code point.

    >>> method_of("shelf/scan"), method_of("getWeather"), method_of("再起動"), method_of("3d-print")
    ('shelf_scan', 'getweather', 'u518d_u8d77_u52d5', 't3d-print')
    """
    parts = []
    for char in name:
        if char.isascii():
            parts.append(char.lower() if char.isalnum() or char in "-_" else "_")
        else:
            parts.append(f"_u{ord(char):x}_")
    method = re.sub(r"_{2,}(?=u[0-9a-f]{2,}_)|(?<=[0-9a-f])_{2,}", "_", "".join(parts))
    if not name.isascii():
        method = method.strip("_")
    return method if NAME.fullmatch(method) else f"t{method}"


def function_name(method: str) -> str:
    """Return the name of the function that carries out a method.

    It is no keyword, nothing that Python has built in, and no name that a module of functions has from elsewhere.

    >>> function_name("shelf-scan"), function_name("import"), function_name("print"), function_name("annotations")
    ('shelf_scan', 'import_', 'print_', 'annotations_')
    """
    name = method.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or name in TAKEN.split() else name


def read_tools(source: str | Path | Sequence[Any] | Mapping[str, Any]) -> Imported:
    """Read a tool list: a list, an object with `tools`, their JSON text, or a file of it.

    Raises OpcodeError when it is no tool list at all; what is wrong with one tool only is a refusal.
    """
    refusals: list[Refusal] = []
    tools: list[Tool] = []
    for number, entry in enumerate(_entries(source)):
        try:
            tools.append(_tool(entry, number))
        except OpcodeError as error:
            refusals.append(Refusal(_name(entry, number), str(error)))
    distinct, clashes = _clashes(tools)
    refusals += clashes
    opcodes: list[type[SchemaOpcode]] = []
    kept: list[Tool] = []
    notes: list[Note] = []
    for tool in distinct:
        try:
            opcode = SchemaOpcode.declare(method_of(tool.name), tool.schema, original=tool.name)
        except OpcodeError as error:
            refusals.append(Refusal(tool.name, str(error)))
            continue
        opcode.__doc__ = tool.description or tool.name
        opcode.confirm = tool.destructive
        opcodes.append(opcode)
        kept.append(tool)
        notes += [*tool.notes, *opcode.notes()]
    return Imported(tuple(kept), tuple(opcodes), tuple(refusals), tuple(notes))


def _entries(source: str | Path | Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    where = "the tool list"
    if isinstance(source, Path):
        where = repr(str(source))
        source = read_text(source, OpcodeError, where)
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except (ValueError, RecursionError) as error:
            raise OpcodeError(f"{where} is no JSON: {error}") from error
    if isinstance(source, Mapping):
        for key in ("tools", "functions"):
            if isinstance(source.get(key), list):
                return list(source[key])
        if isinstance(source.get("result"), Mapping):  # the answer of tools/list as it comes over the wire
            return _entries(source["result"])
        if "name" in source or "function" in source:
            return [source]
        raise OpcodeError(f"{where}: an object without 'tools'; give a list of tools or MCP's tools/list")
    if isinstance(source, Sequence):
        return list(source)
    raise OpcodeError(f"{where} is {short(source)}, no list of tools")


def _name(entry: Any, number: int) -> str:
    inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return _writable(name) if isinstance(name, str) and name else f"tool {number}"


def _writable(text: str) -> str:
    """Return a text with halves of surrogate pairs, which nothing can write, as escapes."""
    return text.encode(errors="backslashreplace").decode()


def _tool(entry: Any, number: int) -> Tool:
    if not isinstance(entry, Mapping):
        raise OpcodeError(f"tool {number}: {short(entry)} is no object")
    inner = entry.get("function", entry)
    if entry.get("type", "function") != "function" or not isinstance(inner, Mapping):
        raise OpcodeError(f"tool {number}: $: type: {short(entry.get('type'))} is no function")
    name, description = inner.get("name"), inner.get("description", "")
    if not isinstance(name, str) or not name:
        raise OpcodeError(f"tool {number}: $: name: {short(name)} is no name")
    description = description if isinstance(description, str) else ""
    for key, text in (("name", name), ("description", description)):
        if _writable(text) != text:
            what = f"{short(text)} has half a surrogate pair, which is no character"
            raise OpcodeError(f"{_writable(name)}: $: {key}: {what}")
    schema = next((inner[key] for key in SCHEMAS if inner.get(key) is not None), None)
    if schema is not None and not isinstance(schema, Mapping):
        raise OpcodeError(f"{name}: $: parameters: {short(schema)} is no schema")
    report = Report(name, schema)
    if speaks(schema):
        report.check_document()
        schema = translate(schema, report)
    return Tool(name, description, schema, report.notes, _destructive(inner, name))


def _destructive(inner: Mapping[str, Any], name: str) -> bool:
    """Return whether a tool says that it may destroy something.

    `destructiveHint` stands among MCP's annotations (2025-06-18, schema.ts: ToolAnnotations). It means nothing where
    `readOnlyHint` is true, and a tool that does not say it is not asked about.
    """
    hints = inner.get("annotations")
    if not isinstance(hints, Mapping):
        return False
    said = hints.get("destructiveHint", False)
    if not isinstance(said, bool):
        raise OpcodeError(f"{name}: $: annotations.destructiveHint: {short(said)} is neither true nor false")
    return said and hints.get("readOnlyHint") is not True


def _clashes(tools: Sequence[Tool]) -> tuple[list[Tool], list[Refusal]]:
    """Part tools with a function of their own from those that share one, or take the method of the shared halt."""
    by_function: dict[str, list[Tool]] = {}
    for tool in tools:
        by_function.setdefault(function_name(method_of(tool.name)), []).append(tool)
    distinct, refusals = [], []
    for tool in tools:
        method = method_of(tool.name)
        same = by_function[function_name(method)]
        if len(same) > 1:
            names = ", ".join(sorted(repr(other.name) for other in same))
            shared = function_name(method)
            reason = f"{tool.name}: $: name: {names} would all be {shared!r}; rename all but one of them"
            refusals.append(Refusal(tool.name, reason))
        elif len(method) > LONGEST_NAME:
            reason = f"$: name: it has {len(method)} letters as a method; a tool's name may have {LONGEST_NAME}"
            refusals.append(Refusal(tool.name, f"{tool.name[:40]}...: {reason}"))
        elif method == HALT:
            refusals.append(Refusal(tool.name, f"{tool.name}: $: name: {HALT!r} ends a session; rename the tool"))
        else:
            distinct.append(tool)
    return distinct, refusals
