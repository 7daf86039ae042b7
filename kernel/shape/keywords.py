"""The keywords of JSON Schema: which bind values, which only describe, and which cannot be held."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.errors import OpcodeError, short
from kernel.shape.document import child, fault, parent, places
from kernel.shape.limits import NAMES, SCHEMAS

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

BOUND: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties"),
}
"""Keywords that bind values of one type and say nothing about others."""

GENERAL = ("type", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "nullable", "$defs", "definitions")

ANNOTATIONS = frozenset({
    "title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id",
    "id", "$anchor", "$comment", "$vocabulary", "discriminator", "externalDocs", "xml", "contentMediaType",
    "contentEncoding", "contentSchema", "markdownDescription", "enumNames", "enumDescriptions",
    "markdownEnumDescriptions", "propertyOrdering", "errorMessage", "deprecationMessage", "strict",
})  # fmt: skip
"""What only describes: of the standard, of OpenAPI, and of the tools that people make schemas with."""

UNHELD = frozenset({
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties",
    "propertyNames", "contains", "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems",
    "$dynamicRef", "$recursiveRef",
})  # fmt: skip

_APPLIES = {keyword: kind for kind, keywords in BOUND.items() for keyword in keywords if keyword != "format"}
_KNOWN = {*_APPLIES, "format", *GENERAL, *ANNOTATIONS, *UNHELD}

_NUMBER, _SCHEMA = (int, float), (Mapping, bool)
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_OF: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(_SIZES, (_NUMBER, "is not a whole number from 0 on")),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), (_NUMBER, "is not a number")),
    **dict.fromkeys(("exclusiveMinimum", "exclusiveMaximum"), ((*_NUMBER, bool), "is not a number")),
    **dict.fromkeys(("pattern", "format", "$ref"), ((str,), "is not a text")),
    **dict.fromkeys(("nullable", "uniqueItems"), ((bool,), "is neither true nor false")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), ((list,), "is not a list of schemas")),
    **dict.fromkeys(("$defs", "definitions", "properties"), ((Mapping,), "is not an object of schemas")),
    **dict.fromkeys(("additionalProperties", "additionalItems"), (_SCHEMA, "is not a schema")),
    "items": ((*_SCHEMA, list), "is not a schema"),
    "required": ((list,), "is not a list of names"),
    "enum": ((list,), "is not a list of values"),
    "type": ((str, list), "is not a type"),
}
"""The Python types that the value of a keyword may have, and what is said of others."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a schema that is not held to the letter, and why that is right."""

    tool: str
    path: str
    keyword: str
    text: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.path}: {self.keyword}: {self.text}"


@dataclass
class Report:
    """What was noted while the schemas of one tool were read, and how much was read.

    Attributes:
        root: the document, in which a refusal looks for the keyword that it names.
    """

    tool: str
    root: Any = None
    kept: dict[Note, None] = field(default_factory=dict)
    read: int = 0

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes, each once, in the order in which they were made."""
        return tuple(self.kept)

    def note(self, path: str, keyword: str, text: str) -> None:
        """Add a note, once."""
        self.kept[Note(self.tool, path, keyword, text)] = None

    def refusal(self, path: str, keyword: str, why: str) -> OpcodeError:
        """Return the error that refuses a schema, with tool, JSON path and keyword.

        Schemas are merged before they are read, so a keyword may come from a schema around the path, or from one that
        is referred to: then the path is that of the place where it stands.
        """
        for place, value in places(self.root, path):
            if (holder := self._holder(place, value, keyword)) is not None:
                path = holder
                break
        return OpcodeError(f"{self.tool}: {path}: {keyword}: {why}".encode(errors="backslashreplace").decode())

    def _holder(self, path: str, schema: Any, keyword: str) -> str | None:
        """Return the path of a schema, or of one that it is merged with, that has a keyword."""
        todo = [(path, schema)]
        for place, found in todo:
            if not isinstance(found, Mapping) or len(todo) > SCHEMAS:
                continue
            if keyword in found:
                return place
            parts = found.get("allOf")
            todo += [
                (child(place, "allOf", n), part) for n, part in enumerate(parts if isinstance(parts, list) else ())
            ]
            if isinstance(ref := found.get("$ref"), str) and len(todo) < 100:
                todo += [next(places(self.root, child("$", *pointer(ref))))]
        return None

    def check_document(self) -> None:
        """Raise OpcodeError where the document is too large or too deep, or holds what JSON cannot say."""
        if (found := fault(self.root)) is not None:
            above, key, why = found
            raise self.refusal(*(parent(above) if key.isdecimal() else (above, key)), why)

    def spend(self, path: str, keyword: str) -> None:
        """Count one more schema that is read; raise OpcodeError when it is too many."""
        self.read += 1
        if self.read > SCHEMAS:
            raise self.refusal(path, keyword, f"more than {SCHEMAS} schemas are to be read, references followed")

    def check_forms(self, schema: Mapping[str, Any], path: str) -> None:
        """Raise OpcodeError for a keyword whose value is of a type that it cannot have."""
        for keyword, value in schema.items():
            types, wrong = _OF.get(keyword, ((object,), ""))
            parts = value if isinstance(value, list) else ()
            if keyword in ("required", "type"):
                right = all(isinstance(part, str) for part in parts)
            elif keyword in ("allOf", "anyOf", "oneOf", "prefixItems", "items"):
                right = all(isinstance(part, Mapping | bool) for part in parts)
                right = right and (value != [] or keyword in ("prefixItems", "items"))
            elif keyword == "properties" and value == []:  # PHP writes an empty object so
                continue
            else:
                right = bool not in map(type, [value]) or bool in types or object in types
                right = right and (keyword != "enum" or value != [])
            if not right or not isinstance(value, types):
                raise self.refusal(path, keyword, f"{short(value)} {wrong}")

    def check(self, schema: Mapping[str, Any], path: str) -> None:
        """Raise OpcodeError for a keyword that is unknown or cannot be held; note those that only describe."""
        self.check_forms(schema, path)
        for keyword in schema:
            if keyword in UNHELD:
                raise self.refusal(path, keyword, "this keyword cannot be held; describe the values without it")
            if keyword in ANNOTATIONS or keyword.startswith("x-"):
                self.note(path, keyword, "only describes; nothing is enforced")
            elif keyword not in _KNOWN:
                close = difflib.get_close_matches(keyword[:NAMES], sorted(_KNOWN), n=1)
                hint = f"did you mean {close[0]!r}?" if close else "name what is only meant for readers 'x-...'"
                raise self.refusal(path, keyword, f"unknown keyword; {hint}")

    def check_types(self, schema: Mapping[str, Any], types: list[str], path: str) -> None:
        """Note the keywords that bind another type than the ones that are possible here."""
        numeric = {"integer": "number"}
        possible = {numeric.get(kind, kind) for kind in types}
        for keyword in schema:
            kind = _APPLIES.get(keyword)
            if kind is not None and kind not in possible:
                self.note(path, keyword, f"binds values of type {kind} only, here is {' or '.join(types)}")


def pointer(ref: str) -> list[str | int]:
    """Return the keys that a `#/...` reference leads through.

    >>> pointer("#/$defs/a~1b/0")
    ['$defs', 'a/b', 0]
    """
    keys = (key.replace("~1", "/").replace("~0", "~").replace("%25", "%") for key in ref[1:].split("/")[1:])
    return [int(key) if key.isdecimal() and key.isascii() and len(key) < 9 else key for key in keys]
