"""Rewrites tool lists whose schemas use the type names of a programming language as the JSON Schema that they mean.

A schema speaks such a dialect when the type of its arguments is `dict` or another name of a mapping. Nothing is
rewritten in plain JSON Schema, where an unknown type is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel.shape.document import child
from kernel.shape.keywords import TYPES, Report

MAPPINGS = ("dict", "hashmap", "map")
ALIASES = {
    **dict.fromkeys(MAPPINGS, "object"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("tuple", "list", "arraylist", "set"), "array"),
    **dict.fromkeys(("str", "char"), "string"),
    "bool": "boolean",
    "none": "null",
}
"""Names of types that other languages use, lower case."""
ANY = ("any", "")

_OF: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def speaks(schema: Any) -> bool:
    """Whether the schema of a tool's arguments is written in a dialect.

    >>> speaks({"type": "dict"}), speaks({"type": "object"})
    (True, False)
    """
    return isinstance(schema, Mapping) and str(schema.get("type")).lower() in MAPPINGS


def translate(schema: Any, report: Report, path: str = "$") -> Any:
    """Return the schema in plain JSON Schema; each thing that was rewritten is noted.

    Types get their JSON names, `any` is no constraint; `optional` takes a name out of `required`; values of `enum`
    that no array can equal bind its items; when no value has the type, the values stand and the type goes.
    """
    if not isinstance(schema, Mapping):
        return schema
    report.check_forms(schema, path)
    out = dict(schema)
    if isinstance(out.get("type"), str):
        _rename(out, report, path)
    if isinstance(out.get("properties"), Mapping):
        names = out["properties"]
        out["properties"] = {n: translate(part, report, child(path, "properties", n)) for n, part in names.items()}
        _optional(out, report, path)
    for keyword in ("items", "additionalProperties"):
        if isinstance(out.get(keyword), Mapping):
            out[keyword] = translate(out[keyword], report, child(path, keyword))
    if isinstance(out.get("enum"), list) and out.get("type") in TYPES:
        _values(out, report, path)
    return out


def _rename(schema: dict[str, Any], report: Report, path: str) -> None:
    name = schema["type"].lower()
    plain = name if name in TYPES else ALIASES.get(name)
    if name in ANY:
        del schema["type"]
        report.note(path, "type", f"{name!r} is read as no constraint")
    elif plain is not None and plain != schema["type"]:
        report.note(path, "type", f"{schema['type']!r} is read as {plain!r}")
        schema["type"] = plain


def _optional(schema: dict[str, Any], report: Report, path: str) -> None:
    if isinstance(schema.get("optional"), list) and all(isinstance(name, str) for name in schema["optional"]):
        names = schema.pop("optional")
        schema["required"] = [name for name in schema.get("required", ()) if name not in names]
        report.note(path, "optional", "names the arguments that are not required")
    for name, part in schema["properties"].items():
        if isinstance(part, dict) and str(part.get("optional")).lower() in ("true", "false"):
            if str(part.pop("optional")).lower() == "true" and name in schema.get("required", ()):
                schema["required"] = [other for other in schema["required"] if other != name]
            report.note(child(path, "properties", name), "optional", "decides whether the argument is required")


def _values(schema: dict[str, Any], report: Report, path: str) -> None:
    kind, values = schema["type"], schema["enum"]
    fits = [isinstance(v, _OF[kind]) and (kind == "boolean" or not isinstance(v, bool)) for v in values]
    if any(fits) or not values:
        return
    if kind == "array":
        items = schema.get("items")
        schema["items"] = {**(items if isinstance(items, dict) else {}), "enum": values}
        del schema["enum"]
        report.note(path, "enum", "no value is an array; the values bind its items")
    else:
        del schema["type"]
        report.note(path, "enum", f"no value is of type {kind!r}; the values decide")
