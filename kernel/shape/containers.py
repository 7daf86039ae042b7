"""Reads the JSON Schemas of arrays and objects into shapes; `read` turns the schema of a part into its shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel.canon import canonical
from kernel.errors import short
from kernel.shape.document import child
from kernel.shape.keywords import Report
from kernel.shape.limits import KEYS_COUNTED, TUPLE, UNIQUE
from kernel.shape.listing import Counter, texts
from kernel.shape.objects import Member, array, distinct, mapping
from kernel.shape.scalars import size
from kernel.shape.shape import NOTHING, Shape, listed

Read = Callable[[Any, str], Shape]
Schema = Mapping[str, Any]
SMALL = 4096
"""Arrays up to which those without repeated items are listed."""


def array_shape(report: Report, read: Read, count: Counter, schema: Schema, path: str) -> Shape:
    """Return the shape of arrays."""
    low, high = size(report, schema, "minItems", "maxItems", path)
    items, first, where = schema.get("items", True), schema.get("prefixItems", []), "prefixItems"
    if isinstance(items, list):  # as in draft 4
        first, items, where = items, schema.get("additionalItems", True), "items"
    if len(first) > TUPLE:
        raise report.refusal(path, where, f"{len(first)} schemas are more than {TUPLE}")
    lead = [read(part, child(path, where, n)) for n, part in enumerate(first)]
    rest = None
    if items is not False and (high is None or high > len(lead)):
        rest = read(items, child(path, "items" if where == "prefixItems" else "additionalItems"))
    if rest is None and low > len(lead):
        raise report.refusal(path, "minItems", f"{low} is more than the {len(lead)} items that there are")
    if not schema.get("uniqueItems", False) or (high is not None and high < 2) or (rest is None and len(lead) < 2):
        return array(lead, rest, low, high)
    if not lead and rest is not None and count(rest) <= UNIQUE:
        shape = distinct(_by_value(texts(rest)), low, high)
    else:
        most = len(lead) + (0 if rest is None else count(rest))  # no more items than values, and those in front
        shape = array(lead, rest, low, most if high is None else min(high, most))
        if count(shape) > SMALL:
            why = f"can be held for items of at most {UNIQUE} values, or at most {SMALL} arrays in all"
            raise report.refusal(path, "uniqueItems", f"{why}; list the values of the items, or leave it out")
        whole = [text for text in texts(shape) if len(_by_value(map(canonical, json.loads(text)))) == _length(text)]
        shape = listed(tuple(whole)) if whole else NOTHING
    if shape is NOTHING:
        raise report.refusal(path, "uniqueItems", "no array without repeated items is left")
    return shape


def _length(text: str) -> int:
    return len(json.loads(text))


def _by_value(some: Any) -> list[list[str]]:
    """Return JSON texts, those of one value together: 1 and 1.0 are one."""
    found: dict[str, list[str]] = {}
    for text in some:
        group = found.setdefault(canonical(_value(json.loads(text))), [])
        if text not in group:
            group.append(text)
    return list(found.values())


def _value(value: Any) -> Any:
    """Return a value so that equal ones have one canonical text."""
    if isinstance(value, dict):
        return {key: _value(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_value(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def object_shape(report: Report, read: Read, schema: Schema, path: str) -> Shape:
    """Return the shape of objects."""
    members = members_of(report, read, schema, path)
    return shape_of(report, read, schema, members, path)


def members_of(report: Report, read: Read, schema: Schema, path: str) -> list[Member]:
    """Return the keys of an object with their shapes, those that are only required included.

    A key whose schema is `false` may not be there: its shape is NOTHING.
    """
    found: dict[str, Any] = dict(schema.get("properties") or {})
    required: Sequence[str] = schema.get("required", [])
    extra = schema.get("additionalProperties", True)
    if schema.get("properties") == []:
        report.note(path, "properties", "[] is read as no properties")
    for name in required:
        if found.get(name, extra) is False:
            no = "no property and no others are allowed" if name not in found else "allowed no value"
            raise report.refusal(path, "required", f"{short(name)} is {no}")
        if name not in found:
            report.note(path, "required", f"{short(name)} is no property; read as one of any kind")
            found[name] = extra
    must = set(required)
    where = {name: child(path, "properties", name) for name in found}
    return [Member(n, NOTHING if s is False else read(s, where[n]), n in must) for n, s in found.items()]


def shape_of(report: Report, read: Read, schema: Schema, members: Sequence[Member], path: str) -> Shape:
    """Return the shape of objects whose keys are known."""
    low, high = size(report, schema, "minProperties", "maxProperties", path)
    required = sum(member.required for member in members)
    extra = schema.get("additionalProperties")
    if extra is None:
        if members:
            report.note(path, "additionalProperties", "is missing and read as false")
        extra = not members
    others = None if extra is False else read(extra, child(path, "additionalProperties"))
    if others is not None and low > max(1, required):
        # a key that comes twice counts once, and no grammar here can tell
        raise report.refusal(path, "minProperties", f"{low} can be held for named properties only")
    if high is not None and others is None and high >= len(members):
        high = None
    if (high is not None or low > max(1, required)) and len(members) > KEYS_COUNTED:
        keyword = "minProperties" if high is None else "maxProperties"
        raise report.refusal(path, keyword, f"can be held beside at most {KEYS_COUNTED} properties")
    shape = mapping(members, others, low, high)
    if shape is NOTHING:
        keyword = "minProperties" if "minProperties" in schema and low > required else "maxProperties"
        raise report.refusal(path, keyword, f"no object has {low} to {high} of its keys")
    return shape
