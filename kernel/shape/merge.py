"""Merges two JSON Schemas that hold at once into one, and tells whether two schemas exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kernel.canon import canonical
from kernel.errors import short
from kernel.shape.document import child
from kernel.shape.keywords import ANNOTATIONS, TYPES, Report, pointer
from kernel.shape.limits import NESTING

Schema = dict[str, Any]
COMPARED = 4
"""Objects inside each other up to which alternatives are told apart."""
_LARGER = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
_SMALLER = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}


class Merger:
    """Merges schemas of one tool; `resolve` follows a `$ref`."""

    def __init__(self, report: Report, resolve: Callable[[str, str], Any]) -> None:
        self.report = report
        self.resolve = resolve
        self._flat: dict[str, Schema] = {}
        self._open: list[str] = []

    def merge(self, first: Any, second: Any, path: str) -> Any:
        """Return a schema of the values that both hold; raises OpcodeError when there is no such schema here."""
        if first is True or first == {}:
            return second
        if second is True or second == {}:
            return first
        if first is False or second is False:
            return False
        self.report.spend(path, "allOf")
        out = self.flat(first, path)
        for keyword, value in self.flat(second, path).items():
            out[keyword] = self._keyword(keyword, out, value, path) if keyword in out else value
        self._closed(first, second, path)
        return out

    def flat(self, schema: Schema, path: str) -> Schema:
        """Return a schema without a `$ref` or an allOf of its own; raises OpcodeError where nothing can satisfy it."""
        self.report.check_forms(schema, path)
        out = dict(schema)
        if "$ref" in out:
            out = self._both("$ref", self._target(out.pop("$ref"), path), out, path)
        for part in out.pop("allOf", ()):
            out = self._both("allOf", out, part, path)
        return out

    def _both(self, keyword: str, first: Any, second: Any, path: str) -> Schema:
        both = self.merge(first, second, path)
        if both is False:
            raise self.report.refusal(path, keyword, "false allows nothing")
        return {} if both is True else dict(both)

    def _target(self, ref: str, path: str) -> Any:
        """Return what a `$ref` points to, flat; each is made flat once."""
        if ref not in self._flat:
            target = self.resolve(ref, path)
            if isinstance(target, bool):
                return target
            if not isinstance(target, dict):
                raise self.report.refusal(path, "$ref", f"{short(target)} is no schema")
            if ref in self._open or len(self._open) >= NESTING:
                why = "leads back to itself" if ref in self._open else f"leads through more than {NESTING} others"
                raise self.report.refusal(path, "$ref", f"{short(ref)} {why}")
            self._open.append(ref)
            self._flat[ref] = self.flat(target, child("$", *pointer(ref)))
            self._open.pop()
        return self._flat[ref]

    def _keyword(self, keyword: str, out: Schema, value: Any, path: str) -> Any:
        held = out[keyword]
        if held == value or keyword in ANNOTATIONS:
            return value
        if keyword in _LARGER and not isinstance(held, bool) and not isinstance(value, bool):
            return max(held, value)
        if keyword in _SMALLER and not isinstance(held, bool) and not isinstance(value, bool):
            return min(held, value)
        if keyword == "type":
            return self._types(held, value)
        if keyword == "required":
            return list(dict.fromkeys([*held, *value]))
        if keyword in ("properties", "$defs", "definitions"):
            both = dict(held or {})
            for name, schema in dict(value or {}).items():
                both[name] = self.merge(both[name], schema, child(path, keyword, name)) if name in both else schema
            return both
        if keyword in ("items", "additionalProperties") and not isinstance(held, list):
            return self.merge(held, value, child(path, keyword))
        if keyword == "enum":
            kept = {canonical(v) for v in value}
            return [v for v in held if canonical(v) in kept]
        raise self.report.refusal(path, keyword, "is demanded twice in different ways; say it in one schema")

    @staticmethod
    def _types(first: Any, second: Any) -> list[str]:
        def named(value: Any) -> list[str]:
            return [value] if isinstance(value, str) else list(value)

        a, b = named(first), named(second)
        both = [kind for kind in a if kind in b]
        if "integer" in a + b and "number" in a + b and "integer" not in both:
            both.append("integer")
        return both

    def _closed(self, first: Schema, second: Schema, path: str) -> None:
        for one, other in ((first, second), (second, first)):
            if one.get("additionalProperties") is False:
                alien = {name for name, part in (other.get("properties") or {}).items() if part is not False}
                alien -= set(one.get("properties") or {})
                if alien:
                    names = ", ".join(sorted(alien))
                    raise self.report.refusal(
                        path, "additionalProperties", f"closes the object to {names}, which is declared beside it"
                    )

    def exclude(self, first: Any, second: Any, path: str, depth: int = 0) -> bool:
        """Whether no value can satisfy both schemas, as far as types, constants and closed objects tell."""
        if not (isinstance(first, dict) and isinstance(second, dict)) or depth > COMPARED:
            return False
        a, b = self.flat(first, path), self.flat(second, path)
        kinds_a, kinds_b = _kinds(a), _kinds(b)
        if not kinds_a & kinds_b:
            return True
        values_a, values_b = _constants(a), _constants(b)
        if values_a is not None and values_b is not None:
            return not values_a & values_b
        if kinds_a != {"object"} or kinds_b != {"object"}:
            return False
        named_a, named_b = a.get("properties") or {}, b.get("properties") or {}
        both = set(a.get("required", ())) & set(b.get("required", ())) & set(named_a) & set(named_b)
        if any(named_b.get(name) is False for name in a.get("required", ())):
            return True
        if any(named_a.get(name) is False for name in b.get("required", ())):
            return True
        if any(self.exclude(named_a[name], named_b[name], path, depth + 1) for name in sorted(both)):
            return True
        return _lacks(a, named_b, b) or _lacks(b, named_a, a)


def _lacks(schema: Schema, other_names: Iterable[str], other: Schema) -> bool:
    """Whether one schema requires a key that the other, closed, does not have."""
    return other.get("additionalProperties") is False and not set(schema.get("required", ())) <= set(other_names)


def _kinds(schema: Schema) -> set[str]:
    kinds = schema.get("type", TYPES)
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    return found | {"integer"} if "number" in found else found


def _constants(schema: Schema) -> set[str] | None:
    if "const" in schema:
        return {canonical(schema["const"])}
    return {canonical(value) for value in schema["enum"]} if "enum" in schema else None
