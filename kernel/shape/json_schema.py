"""Reads JSON Schemas into shapes: every constraint is held, or the schema is refused with tool, JSON path and keyword.

Three things are read more narrowly than the standard, and noted each time: an object that names its properties has no
others unless it says so, keys come in the order of their declaration, and each value has one text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel.canon import canonical
from kernel.errors import OpcodeError, short
from kernel.shape.containers import array_shape, object_shape
from kernel.shape.document import child, parent
from kernel.shape.keywords import ANNOTATIONS, BOUND, TYPES, Note, Report, pointer
from kernel.shape.limits import ALTERNATIVES, CONSTANTS, NESTING, SHORTEST
from kernel.shape.listing import Counter, texts
from kernel.shape.merge import Merger
from kernel.shape.numbers import number, spelled
from kernel.shape.objects import array, mapping
from kernel.shape.recogniser import Recogniser
from kernel.shape.scalars import decimal_shape, integer_shape, string_shape
from kernel.shape.shape import Alt, Ref, Shape, alt, inside_out, listed
from kernel.shape.strings import string

SMALL = 4096
"""Arrays and alternatives up to which all values are compared with each other."""


def read_value(tool: str, schema: Any) -> tuple[Shape, tuple[Note, ...]]:
    """Read the schema of any value; returns its shape and what was noted.

    Raises:
        OpcodeError: naming tool, JSON path and keyword of what cannot be held.
    """
    try:
        reader = Reader(tool, schema)
        shape = reader.shape(schema, "$")
        reader.check_size(shape, lambda: reader.shape(schema, "$"))
    except RecursionError as error:
        raise OpcodeError(f"{tool}: $: type: the schema is too deep to be read") from error
    return shape, reader.report.notes


@dataclass
class Reader:
    """Reads the schemas of one tool; `root` is what `$ref` refers to."""

    tool: str
    root: Any
    rules: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.report = Report(self.tool, self.root)
        self.report.check_document()
        self.merger = Merger(self.report, self.resolve)
        self.count = Counter()
        self._open: list[str] = []
        self._recursive: set[str] = set()
        self._depth = 0
        self._tracing = False

    def check_size(self, shape: Shape, again: Callable[[], object]) -> None:
        """Raise OpcodeError if a shape has no value of finite and of bearable size; `again` reads its schema again."""
        if why := self._fault(shape):
            self._tracing, self.rules = True, {}
            again()  # now with a look at each part
            raise self.report.refusal("$", "required", why)

    @staticmethod
    def _fault(shape: Shape) -> str:
        """Return why no model can write a value of a shape, "" where one can or where not all of it is read yet."""
        if _is_unread(shape):
            return ""
        found = Recogniser(shape)
        if found.size(shape) is None or found.endless():
            return "no value of finite size satisfies the schema"
        most = found.longest_minimum()
        return f"the shortest value has {most} bytes, more than {SHORTEST}" if most > SHORTEST else ""

    def resolve(self, ref: Any, path: str) -> Any:
        """Return what a `$ref` points to; only places in the same document are known."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise self.report.refusal(path, "$ref", f"{short(ref)} is not in this document; put it under $defs")
        found = self.root
        for key in pointer(ref):
            if isinstance(found, list) and isinstance(key, int) and key < len(found):
                found = found[key]
            elif isinstance(found, Mapping) and str(key) in found:
                found = found[str(key)]
            else:
                raise self.report.refusal(path, "$ref", f"{short(ref)} leads nowhere: there is no {short(key)}")
        return found

    # -- schemas of any kind -------------------------------------------------------------------------------------

    def shape(self, schema: Any, path: str) -> Shape:
        """Return the shape of the values of a schema."""
        if schema is True or schema == {}:
            return self._anything()
        if not isinstance(schema, Mapping):
            why = "False allows nothing" if schema is False else f"{short(schema)} is no schema"
            raise self.report.refusal(*parent(path), why)
        keyword = next((k for k in schema if k not in ANNOTATIONS), "type")
        self.report.spend(path, keyword)
        nested = list(schema) != ["$ref"]
        if nested and self._depth >= NESTING:
            raise self.report.refusal(path, keyword, f"more than {NESTING} schemas are inside each other")
        self._depth += nested
        shape = self._read(dict(schema), path)
        self._depth -= nested
        if self._tracing and (why := self._fault(shape)):
            keyword = next((k for k in ("minLength", "minItems", "required", "$ref") if k in schema), keyword)
            raise self.report.refusal(path, keyword, why)
        return shape

    def _read(self, schema: dict[str, Any], path: str) -> Shape:
        self.report.check(schema, path)
        binding = {k: v for k, v in schema.items() if k not in ANNOTATIONS and not k.startswith(("x-", "$defs"))}
        binding.pop("definitions", None)
        nullable = binding.pop("nullable", False)
        if not binding:
            return self._anything()
        if nullable:
            return alt(self.shape(binding, path), listed(("null",)))
        if list(binding) == ["$ref"]:
            return self._reference(schema["$ref"], path)
        if "$ref" in binding or "allOf" in binding:
            return self.shape(self.merger.flat(binding, path), path)
        for keyword in ("anyOf", "oneOf"):
            if keyword in binding:
                whole = self.merged(keyword, binding, path)
                shapes = [self.shape(part, place) for part, place in whole]
                if keyword == "oneOf":
                    self.tell_apart([part for part, _ in whole], shapes, path)
                return alt(*shapes)
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
            target = self.resolve(ref, path)
            if len(self._open) >= NESTING:
                raise self.report.refusal(path, "$ref", f"{short(ref)} leads through more than {NESTING} others")
            self._open.append(ref)
            self.rules[ref] = self.shape(target, child("$", *pointer(ref)))
            self._open.pop()
        return Ref(ref, self.rules) if ref in self._recursive else self.rules[ref]

    def merged(self, keyword: str, schema: dict[str, Any], path: str) -> list[tuple[Any, str]]:
        """Return the alternatives of a schema with their paths, each merged with what stands beside them."""
        rest = {k: v for k, v in schema.items() if k != keyword}
        parts = schema[keyword]
        if keyword == "oneOf":
            parts = _one_of_names(parts) or parts
        places = [child(path, keyword, n) for n in range(len(parts))]
        return [(self.merger.merge(rest, part, place), place) for part, place in zip(parts, places, strict=True)]

    def tell_apart(self, whole: Sequence[Any], shapes: Sequence[Shape], path: str) -> None:
        """Raise OpcodeError where a value may be one of two alternatives of a oneOf."""
        if len(whole) > ALTERNATIVES:
            raise self.report.refusal(path, "oneOf", f"{len(whole)} alternatives are more than {ALTERNATIVES}")
        few = [set(texts(shape)) if self.count(shape) <= SMALL else None for shape in shapes]
        for b in range(len(whole)):
            for a in range(b):
                one, other = few[a], few[b]
                apart = one is not None and other is not None and not one & other
                if not apart and not self.merger.exclude(whole[a], whole[b], path):
                    why = f"nothing tells alternatives {a} and {b} apart; anyOf would do"
                    raise self.report.refusal(path, "oneOf", why)

    def _constants(self, keyword: str, values: list[Any], rest: dict[str, Any], path: str) -> Shape:
        if len(values) > CONSTANTS:
            raise self.report.refusal(path, keyword, f"{len(values)} values are more than {CONSTANTS}")
        written = [canonical(_tidy(value)) for value in values]
        kept = written
        if rest:
            shape = self.shape(rest, path)
            if _is_unread(shape):
                raise self.report.refusal(path, keyword, "stands in a schema that leads back to what is around it")
            reader = Recogniser(shape)
            kept = [text for value in values if (text := _fitting(reader, _tidy(value))) is not None]
            lost = [text for text, value in zip(written, values, strict=True) if _fitting(reader, _tidy(value)) is None]
            if not kept:
                names = ", ".join(map(short, values[:5]))
                raise self.report.refusal(path, keyword, f"none of {names} satisfies the rest: {short(rest)}")
            if lost:
                why = f"left out, since the rest of the schema excludes it: {', '.join(map(short, lost[:5]))}"
                self.report.note(path, keyword, why)
        return listed(tuple(kept))

    def types(self, schema: Mapping[str, Any], path: str) -> list[str]:
        """Return the types that a schema allows; a missing `type` follows from the other keywords."""
        if "type" not in schema:
            kinds = [k for k, words in BOUND.items() if any(w in schema for w in words if w != "format")]
            kinds = kinds or ["string"]  # it has a `format`, and nothing else
            self.report.note(path, "type", f"is missing and read as {' or '.join(kinds)}")
            return kinds
        given = schema["type"]
        kinds = given if isinstance(given, list) else [given]
        for kind in kinds:
            if kind not in TYPES:
                raise self.report.refusal(path, "type", f"{short(kind)} is not a type; there is: {', '.join(TYPES)}")
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
                return array_shape(self.report, self.shape, self.count, schema, path)
        return object_shape(self.report, self.shape, schema, path)

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


def _is_unread(shape: Shape) -> bool:
    """Whether a shape refers to a schema that is still being read."""
    return any(isinstance(part, Ref) and part.name not in part.rules for part in inside_out(shape))


def _fitting(reader: Recogniser, value: Any) -> str | None:
    """Return the text of a constant that a shape accepts: as it is, without an exponent, or 1.0 as 1."""
    some = [canonical(value), spelled(value)]
    if isinstance(value, float) and value.is_integer():
        some.append(str(int(value)))
    return next((text for text in some if reader.accepts(text)), None)


def _one_of_names(parts: list[Any]) -> list[Any] | None:
    """Return alternatives that only require one name each so that they exclude each other; None for any others."""
    if any(not isinstance(part, Mapping) or list(part) != ["required"] or len(part["required"]) != 1 for part in parts):
        return None
    names = [part["required"][0] for part in parts]
    if len(set(names)) < len(names):
        return None
    return [{"required": [name], "properties": {n: False for n in names if n != name}} for name in names]


def _tidy(value: Any) -> Any:
    """Return a constant as its text will be read: a whole float stays a float, containers are rebuilt."""
    if isinstance(value, Mapping):
        return {str(k): _tidy(v) for k, v in value.items()}
    return [_tidy(v) for v in value] if isinstance(value, list | tuple) else value
