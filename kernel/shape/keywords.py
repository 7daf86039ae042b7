"""The keywords of JSON Schema: which bind values, which only describe, and which cannot be held."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.errors import OpcodeError

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
    "id", "$anchor", "$comment", "discriminator", "externalDocs", "xml", "contentMediaType", "contentEncoding",
})  # fmt: skip

UNHELD = frozenset({
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "patternProperties",
    "propertyNames", "contains", "minContains", "maxContains", "unevaluatedProperties", "unevaluatedItems",
    "$dynamicRef", "$recursiveRef",
})  # fmt: skip

_APPLIES = {keyword: kind for kind, keywords in BOUND.items() for keyword in keywords if keyword != "format"}
_KNOWN = {*_APPLIES, "format", *GENERAL, *ANNOTATIONS, *UNHELD}


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
    """What was noted while the schemas of one tool were read."""

    tool: str
    notes: list[Note] = field(default_factory=list)

    def note(self, path: str, keyword: str, text: str) -> None:
        """Add a note, once."""
        note = Note(self.tool, path, keyword, text)
        if note not in self.notes:
            self.notes.append(note)

    def refusal(self, path: str, keyword: str, why: str) -> OpcodeError:
        """Return the error that refuses a schema, with tool, JSON path and keyword."""
        return OpcodeError(f"{self.tool}: {path}: {keyword}: {why}")

    def check(self, schema: Mapping[str, Any], path: str) -> None:
        """Raise OpcodeError for a keyword that is unknown or cannot be held; note those that only describe."""
        for keyword in schema:
            if keyword in UNHELD:
                raise self.refusal(path, keyword, "this keyword cannot be held; describe the values without it")
            if keyword in ANNOTATIONS or keyword.startswith("x-"):
                self.note(path, keyword, "only describes; nothing is enforced")
            elif keyword not in _KNOWN:
                close = difflib.get_close_matches(keyword, sorted(_KNOWN), n=1)
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
