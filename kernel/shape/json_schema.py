"""Reads JSON Schemas into shapes: every constraint is held, or the schema is refused with tool, JSON path and keyword.

Three things are read more narrowly than the standard, and noted each time: an object that names its properties has no
others unless it says so, keys come in the order of their declaration, and each value has one text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.canon import canonical
from kernel.shape.keywords import ANNOTATIONS, BOUND, TYPES, Note, Report
from kernel.shape.listing import Counter, texts
from kernel.shape.merge import Merger
from kernel.shape.numbers import number
from kernel.shape.objects import Member, array, mapping
from kernel.shape.recogniser import Recogniser
from kernel.shape.scalars import decimal_shape, integer_shape, size, string_shape
from kernel.shape.shape import Alt, Ref, Shape, alt, listed
from kernel.shape.strings import string

SMALL = 4096
"""Arrays and alternatives up to which all values are compared with each other."""


def read_value(tool: str, schema: Any) -> tuple[Shape, tuple[Note, ...]]:
    """Read the schema of any value; returns its shape and what was noted.

    Raises:
        OpcodeError: naming tool, JSON path and keyword of what cannot be held.
    """
    reader = Reader(tool, schema)
    return reader.finish(reader.shape(schema, "$")), tuple(reader.report.notes)


@dataclass
class Reader:
    """Reads the schemas of one tool; `root` is what `$ref` refers to."""

    tool: str
    root: Any
    rules: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.report = Report(self.tool)
        self.merger = Merger(self.report, self.resolve)
        self._count = Counter()
        self._open: list[str] = []
        self._recursive: set[str] = set()

    def finish(self, shape: Shape) -> Shape:
        """Return the shape of the whole, if it has a value of finite size."""
        if Recogniser(shape).minimal(shape) is None:
            raise self.report.refusal("$", "$ref", "no value of finite size satisfies the schema")
        return shape

    def resolve(self, ref: Any, path: str) -> Any:
        """Return what a `$ref` points to; only places in the same document are known."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise self.report.refusal(path, "$ref", f"{ref!r} is not in this document; put it under $defs")
        found = self.root
        for key in ref[1:].split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~").replace("%25", "%")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise self.report.refusal(path, "$ref", f"{ref!r} leads nowhere: there is no {key!r}")
        return found

    # -- schemas of any kind -------------------------------------------------------------------------------------

    def shape(self, schema: Any, path: str) -> Shape:
        """Return the shape of the values of a schema."""
        if schema is True or schema == {}:
            return self._anything()
        if not isinstance(schema, Mapping):
            raise self.report.refusal(path, "schema", f"{schema!r} allows nothing" if schema is False else repr(schema))
        schema = dict(schema)
        self.report.check(schema, path)
        binding = {k: v for k, v in schema.items() if k not in ANNOTATIONS and not k.startswith(("x-", "$defs"))}
        binding.pop("definitions", None)
        if not binding:
            return self._anything()
        if binding.pop("nullable", False):
            return alt(self.shape(binding, path), listed(("null",)))
        if list(binding) == ["$ref"]:
            return self._reference(schema["$ref"], path)
        if "$ref" in binding or "allOf" in binding:
            return self.shape(self.merger.flat(binding, path), path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in binding:
                return self._union(keyword, binding, path)
        if "const" in binding:
            return self._constants("const", [binding.pop("const")], binding, path)
        if "enum" in binding:
            return self._constants("enum", binding.pop("enum"), binding, path)
        kinds = self.types(binding, path)
        self.report.check_types(binding, kinds, path)
        return alt(*(self._typed(kind, binding, path) for kind in kinds))

    def _reference(self, ref: str, path: str) -> Shape:
        if ref in self._open:
            self._recursive.add(ref)
            return Ref(ref, self.rules)
        if ref not in self.rules:
            self._open.append(ref)
            self.rules[ref] = self.shape(self.resolve(ref, path), f"${ref[1:].replace('/', '.')}")
            self._open.pop()
        return Ref(ref, self.rules) if ref in self._recursive else self.rules[ref]

    def _union(self, keyword: str, schema: dict[str, Any], path: str) -> Shape:
        parts = schema.pop(keyword)
        if not isinstance(parts, list) or not parts:
            raise self.report.refusal(path, keyword, f"{parts!r} is not a list of schemas")
        whole = [self.merger.merge(schema, part, f"{path}.{keyword}[{n}]") for n, part in enumerate(parts)]
        shapes = [self.shape(part, f"{path}.{keyword}[{n}]") for n, part in enumerate(whole)]
        if keyword == "oneOf":
            for a in range(len(whole)):
                for b in range(a + 1, len(whole)):
                    if not self._apart(whole[a], whole[b], shapes[a], shapes[b], path):
                        raise self.report.refusal(
                            path, keyword, f"nothing tells alternatives {a} and {b} apart; anyOf would do"
                        )
        return alt(*shapes)

    def _apart(self, first: Any, second: Any, a: Shape, b: Shape, path: str) -> bool:
        if self.merger.exclude(first, second, path):
            return True
        if self._count(a) > SMALL or self._count(b) > SMALL:
            return False
        return not set(texts(a)) & set(texts(b))

    def _constants(self, keyword: str, values: Any, rest: dict[str, Any], path: str) -> Shape:
        if not isinstance(values, list) or not values:
            raise self.report.refusal(path, keyword, f"{values!r} is not a list of values")
        written = []
        for value in values:
            try:
                written.append(canonical(_tidy(value)))
            except ValueError as error:
                raise self.report.refusal(path, keyword, f"{value!r}: {error}") from error
        kept = written
        if rest:
            shape = self.shape(rest, path)
            reader = Recogniser(shape)
            kept = [text for text in written if reader.accepts(text)]
            if not kept:
                raise self.report.refusal(path, keyword, f"none of {', '.join(written)} satisfies the rest: {rest}")
            if len(kept) < len(written):
                lost = ", ".join(text for text in written if text not in kept)
                self.report.note(path, keyword, f"left out, since the rest of the schema excludes it: {lost}")
        return listed(tuple(kept))

    def types(self, schema: Mapping[str, Any], path: str) -> list[str]:
        """Return the types that a schema allows; a missing `type` follows from the other keywords."""
        if "type" not in schema:
            kinds = [k for k, words in BOUND.items() if any(w in schema for w in words if w != "format")]
            kinds = kinds or (["string"] if "format" in schema else [])
            self.report.note(path, "type", f"is missing and read as {' or '.join(kinds)}")
            return kinds
        given = schema["type"]
        kinds = given if isinstance(given, list) else [given]
        for kind in kinds:
            if kind not in TYPES:
                raise self.report.refusal(path, "type", f"{kind!r} is not a type; there is: {', '.join(TYPES)}")
        if not kinds:
            raise self.report.refusal(path, "type", "no type satisfies all that is said")
        return [kind for kind in dict.fromkeys(kinds) if kind != "integer" or "number" not in kinds]

    def _typed(self, kind: str, schema: dict[str, Any], path: str) -> Shape:
        match kind:
            case "null":
                return listed(("null",))
            case "boolean":
                return listed(("true", "false"))
            case "string":
                return string_shape(self.report, schema, path)
            case "integer":
                return integer_shape(self.report, schema, path)
            case "number":
                return decimal_shape(self.report, schema, path)
            case "array":
                return self._array(schema, path)
        return self._object(schema, path)

    def _anything(self) -> Shape:
        """Return the shape of any JSON value; arrays and objects of anything to any depth."""
        if "any" not in self.rules:
            value = Ref("any", self.rules)
            self.rules["any"] = Alt(
                (
                    listed(("null",)),
                    listed(("true", "false")),
                    number(None, None),
                    string(),
                    array((), value, 0, None),
                    mapping((), value),
                )
            )
        return Ref("any", self.rules)

    # -- one type ------------------------------------------------------------------------------------------------

    def _array(self, schema: Mapping[str, Any], path: str) -> Shape:
        low, high = size(self.report, schema, "minItems", "maxItems", path)
        items = schema.get("items", True)
        first = schema.get("prefixItems", [])
        if isinstance(items, list):  # as in draft 4
            first, items = items, schema.get("additionalItems", True)
        if not isinstance(first, list):
            raise self.report.refusal(path, "prefixItems", f"{first!r} is not a list of schemas")
        lead = [self.shape(part, f"{path}.prefixItems[{n}]") for n, part in enumerate(first)]
        rest = None if items is False or high == 0 else self.shape(items, f"{path}.items")
        unique = schema.get("uniqueItems", False)
        if unique and rest is not None:  # there are no more items than values, and no more than those in front
            most = len(lead) + self._count(rest)
            high = most if high is None else min(high, most)
        shape = array(lead, rest, low, high)
        if unique and (high is None or high > 1):
            if self._count(shape) > SMALL:
                raise self.report.refusal(
                    path,
                    "uniqueItems",
                    f"can be held for at most {SMALL} arrays in all; bound the items and their number",
                )
            return self._without_repeats(shape, path)
        return shape

    def _without_repeats(self, shape: Shape, path: str) -> Shape:
        kept = []
        for text in texts(shape):
            items = [canonical(item) for item in json.loads(text)]
            if len(set(items)) == len(items):
                kept.append(text)
        if not kept:
            raise self.report.refusal(path, "uniqueItems", "no array without repeated items is left")
        return listed(tuple(kept))

    def properties(self, schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return the schemas of an object's keys, those that are only required included."""
        found = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(found, Mapping):
            raise self.report.refusal(path, "properties", f"{found!r} is not an object of schemas")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise self.report.refusal(path, "required", f"{required!r} is not a list of names")
        out = dict(found)
        for name in required:
            if name not in out:
                extra = schema.get("additionalProperties", True)
                if extra is False and "additionalProperties" in schema and path != "$":
                    raise self.report.refusal(path, "required", f"{name!r} is no property and no others are allowed")
                self.report.note(path, "required", f"{name!r} is no property; read as one of any kind")
                out[name] = {} if extra is False else extra
        return out

    def _object(self, schema: Mapping[str, Any], path: str) -> Shape:
        low, high = size(self.report, schema, "minProperties", "maxProperties", path)
        found = self.properties(schema, path)
        required = set(schema.get("required", ()))
        members = [Member(n, self.shape(part, f"{path}.properties.{n}"), n in required) for n, part in found.items()]
        extra = schema.get("additionalProperties")
        if extra is None:
            if found and path != "$":
                self.report.note(path, "additionalProperties", "is missing and read as false")
            extra = not found
        shape = None if extra is False else self.shape(extra, f"{path}.additionalProperties")
        if shape is not None and low > max(1, len(required)):
            # a key that comes twice counts once, and no grammar here can tell
            raise self.report.refusal(path, "minProperties", f"{low} can be held for named properties only")
        return mapping(members, shape, low, high)


def _tidy(value: Any) -> Any:
    """Return a constant as its text will be read: a whole float stays a float, containers are rebuilt."""
    if isinstance(value, Mapping):
        return {str(k): _tidy(v) for k, v in value.items()}
    return [_tidy(v) for v in value] if isinstance(value, list | tuple) else value
