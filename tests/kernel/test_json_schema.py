"""JSON Schema held exactly or refused: path sets against brute force, refusals by tool, path and keyword."""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.canon import canonical
from kernel.errors import OpcodeError
from kernel.shape.dialect import translate
from kernel.shape.json_schema import read_value
from kernel.shape.keywords import Report
from kernel.shape.listing import texts
from kernel.shape.parameters import read_parameters
from kernel.shape.recogniser import Recogniser

Values = list[Any]
Schema = dict[str, Any]
Drawn = tuple[Schema, Values]
"""A schema, and every value that can be a candidate for it, in an order of its own."""

constants = st.sampled_from([1, "1", True, None, "küche", "a b", 0.5, "on", -3, "", '"', "\n"])


@st.composite
def scalars(draw: st.DrawFn) -> Drawn:
    kind = draw(st.sampled_from(["enum", "const", "boolean", "null", "integer", "step", "decimal", "typed enum"]))
    low = draw(st.integers(-12, 12))
    high = low + draw(st.integers(0, 14))
    if kind == "enum":
        chosen = draw(st.lists(constants, min_size=1, max_size=4, unique_by=canonical))
        return {"enum": chosen}, chosen
    if kind == "typed enum":
        chosen = draw(st.lists(constants, min_size=1, max_size=4, unique_by=canonical))
        if not any(isinstance(value, str) for value in chosen):
            chosen.append("x")
        return {"enum": chosen, "type": ["string", "null"]}, chosen
    if kind == "const":
        value = draw(constants)
        return {"const": value}, [value]
    if kind in ("boolean", "null"):
        return {"type": kind}, [True, False, None]
    numbers: Values = list(range(-21, 28))
    if kind == "integer":
        lower = draw(st.sampled_from([{"minimum": low}, {"exclusiveMinimum": low - 1}, {"minimum": low - 0.5}]))
        upper = draw(st.sampled_from([{"maximum": high}, {"exclusiveMaximum": high + 1}]))
        return {"type": "integer", **lower, **upper}, numbers
    if kind == "step":
        return {"type": "integer", "minimum": -20, "maximum": 20, "multipleOf": draw(st.integers(1, 7))}, numbers
    high = max(high, low + 3)  # a multiple of 2.5 is in it: a part that nothing satisfies is refused, optional or not
    bounds = draw(st.sampled_from([{"minimum": low, "maximum": high}, {"exclusiveMinimum": low - 1, "maximum": high}]))
    return {"type": "number", "multipleOf": draw(st.sampled_from([0.25, 0.5, 2.5])), **bounds}, [
        n / 4 for n in range(-52, 106)
    ]


def _few(part: Schema, values: Values, most: int) -> Drawn:
    """Allow no more values than that, so that all combinations of a few members are some thousands."""
    fitting = [v for v in values if fits(part, v)]
    return (part, values) if len(fitting) <= most else ({"enum": fitting[:most]}, fitting[:most])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Drawn]) -> Drawn:
    names = draw(st.lists(st.sampled_from(["a", "b", "room", "größe", 'q"']), min_size=1, max_size=3, unique=True))
    members = {name: _few(*draw(inner), {1: 1000, 2: 40, 3: 12}[len(names)]) for name in names}
    schema: Schema = {
        "type": "object",
        "properties": {name: member[0] for name, member in members.items()},
        "required": draw(st.lists(st.sampled_from(names), unique=True)),
        "additionalProperties": False,
    }
    if draw(st.booleans()):
        schema["minProperties"] = draw(st.integers(0, len(names)))
    fitting = [[v for v in values if fits(part, v)] for part, values in members.values()]
    candidates: Values = []
    for present in itertools.product([True, False], repeat=len(names)):
        chosen = [(name, values) for name, values, there in zip(names, fitting, present, strict=True) if there]
        for combination in itertools.product(*(values for _, values in chosen)):
            candidates.append(dict(zip((name for name, _ in chosen), combination, strict=True)))
    return schema, candidates


@st.composite
def arrays(draw: st.DrawFn) -> Drawn:
    part, values = draw(scalars())
    fitting = [v for v in values if fits(part, v)][:4]
    if len(fitting) < len([v for v in values if fits(part, v)]):
        part = {"enum": fitting}
    low = draw(st.integers(0, 2))
    schema: Schema = {"type": "array", "items": part, "minItems": low, "maxItems": low + draw(st.integers(0, 2))}
    if draw(st.booleans()):
        schema["uniqueItems"] = True
    return schema, [list(items) for size in range(5) for items in itertools.product(fitting, repeat=size)]


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Drawn]) -> Drawn:
    parts = [draw(inner) for _ in range(draw(st.integers(1, 3)))]
    return {"anyOf": [part for part, _ in parts]}, [v for _, values in parts for v in values]


def fits(schema: Schema, value: Any) -> bool:
    """The judge: the reference implementation of JSON Schema."""
    return bool(judge(canonical(schema)).is_valid(value))


@functools.lru_cache(512)
def judge(schema: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads(schema))


def same(value: Any) -> str:
    """The text of a value with whole floats as integers: JSON has one number 1."""
    if isinstance(value, dict):
        return canonical({name: same(v) for name, v in value.items()})
    if isinstance(value, list):
        return canonical([same(v) for v in value])
    return canonical(int(value)) if isinstance(value, float) and value.is_integer() else canonical(value)


small = scalars() | unions(scalars())
finite = small | arrays() | objects(small) | unions(small | objects(scalars()))


@settings(max_examples=60, deadline=None)
@given(finite)
def test_the_texts_of_a_finite_schema_are_those_of_brute_force(drawn: Drawn) -> None:
    """Every candidate that jsonschema accepts has its text, and there is no other text."""
    schema, candidates = drawn
    wanted = {same(value) for value in candidates if fits(schema, value)}
    try:
        shape, _ = read_value("tool", schema)
    except OpcodeError:
        assert wanted == set()
        return
    found = set(texts(shape))
    for text in found:
        assert fits(schema, json.loads(text)), text
        assert canonical(json.loads(text)) == text
    assert {same(json.loads(text)) for text in found} == wanted
    reader = Recogniser(shape)
    assert all(reader.accepts(text) for text in found)


@pytest.mark.parametrize(
    ("schema", "numbers"),
    [
        ({"minimum": -12, "maximum": 3}, range(-12, 4)),
        ({"exclusiveMinimum": 0, "maximum": 9}, range(1, 10)),
        ({"minimum": -20, "maximum": 20, "multipleOf": 5}, range(-20, 21, 5)),
        ({"minimum": 0, "maximum": 120}, range(121)),
        ({"minimum": 7, "maximum": 7}, [7]),
    ],
)
def test_ranges_of_integers_are_exact(schema: Schema, numbers: range | list[int]) -> None:
    """The ranges of the public reports: signs, exclusive bounds, steps, a single number."""
    shape, notes = read_value("tool", {"type": "integer", **schema})
    assert list(texts(shape)) == [str(n) for n in numbers]
    assert notes == ()


@pytest.mark.parametrize(
    ("schema", "keyword", "reason"),
    [
        ({"type": "integer", "minimum": 9, "maximum": 2}, "minimum", "the range 9..2 is empty"),
        ({"type": "integer", "minimum": 0, "multipleOf": 3}, "multipleOf", "needs bounds on both sides"),
        ({"type": "string", "pattern": "^(?!tmp)[a-z]{2,4}$", "maxLength": 3}, "pattern", "lookaround"),
        ({"type": "string", "format": "shelf-id"}, "format", "'shelf-id' cannot be held"),
        ({"type": "string", "maxlenght": 4}, "maxlenght", "did you mean 'maxLength'?"),
        ({"type": "string", "pattern": "^a{5}$", "maxLength": 3}, "pattern", "no string satisfies"),
        ({"type": "string", "minLength": 4, "maxLength": 3}, "minLength", "4 is above maxLength 3"),
        ({"type": "strng"}, "type", "'strng' is not a type"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems", "at most 4096 arrays"),
        ({"not": {"type": "null"}}, "not", "cannot be held"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "patternProperties", "cannot be held"),
        ({"$ref": "other.json"}, "$ref", "not in this document"),
        ({"$ref": "#/$defs/gone"}, "$ref", "leads nowhere"),
        ({"enum": []}, "enum", "not a list of values"),
        ({"enum": ["a"], "type": "integer"}, "enum", "satisfies the rest"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf", "nothing tells alternatives 0 and 1 apart"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"}, "pattern", "demanded twice"),
        ({"type": "integer", "minimum": "1"}, "minimum", "'1' is not a number"),
        ({"type": "string", "maxLength": -1}, "maxLength", "-1 is not a whole number"),
    ],
)
def test_what_cannot_be_held_is_refused_by_tool_path_and_keyword(schema: Schema, keyword: str, reason: str) -> None:
    """The error names all three; nothing becomes a free string."""
    with pytest.raises(OpcodeError) as caught:
        read_parameters("shelf", {"type": "object", "properties": {"code": schema}})
    where, why = str(caught.value).split(f": {keyword}: ", 1)
    assert where.startswith("shelf: $.properties.code")
    assert reason in why


def test_a_minimum_alone_is_an_open_range() -> None:
    """An open side leaves eighteen digits; the closed side is exact."""
    reader = Recogniser(read_value("tool", {"type": "integer", "minimum": -5})[0])
    assert [n for n in (-6, -5, 0, 10**17) if reader.accepts(str(n))] == [-5, 0, 10**17]


def test_annotations_are_listed_and_not_enforced() -> None:
    """Each note names tool, path and keyword."""
    found = read_parameters(
        "lamp", {"properties": {"level": {"type": "integer", "minimum": 0, "maximum": 3, "maxLength": 2, "title": "L"}}}
    )
    assert [str(note) for note in found.notes] == [
        "lamp: $.properties.level: title: only describes; nothing is enforced",
        "lamp: $.properties.level: maxLength: binds values of type string only, here is integer",
    ]


def test_a_tool_without_arguments_takes_the_empty_object() -> None:
    """No schema, an empty one, and one without properties are the same."""
    for schema in (None, {}, {"type": "object"}, {"type": "object", "properties": {}}):
        assert list(texts(read_parameters("ping", schema).shape)) == ["{}"]


def test_one_and_its_text_are_two_values() -> None:
    """Types survive: a number, a string, a boolean, null."""
    shape, _ = read_value("tool", {"enum": [1, "1", True, "true", None, "null", 1.0]})
    assert list(texts(shape)) == ["1", '"1"', "true", '"true"', "null", '"null"', "1.0"]


def test_references_and_siblings_hold_together() -> None:
    """`$ref` beside a bound, allOf of two ranges, nullable, a reference used twice."""
    schema = {
        "$defs": {"small": {"type": "integer", "minimum": 0, "maximum": 9}},
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/small", "minimum": 7},
            "b": {"allOf": [{"$ref": "#/$defs/small"}, {"maximum": 1}]},
            "c": {"$ref": "#/$defs/small", "nullable": True, "maximum": 0},
        },
        "required": ["a", "b", "c"],
    }
    found = read_parameters("tool", schema)
    assert [list(texts(argument.shape)) for argument in found.arguments] == [["7", "8", "9"], ["0", "1"], ["0", "null"]]


def test_alternatives_with_a_discriminator_may_be_one_of() -> None:
    """Objects that a required constant tells apart exclude each other."""
    schema = {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": k}, k: {"enum": [1, 2]}}, "required": ["kind", k]}
            for k in ("x", "y")
        ]
    }
    shape, _ = read_value("tool", schema)
    assert set(texts(shape)) == {f'{{"kind":"{k}","{k}":{n}}}' for k in "xy" for n in (1, 2)}


def test_a_schema_that_holds_itself_ends_or_is_refused() -> None:
    """A list may hold itself, because it can be empty; an object that must hold itself has no value."""
    node: Schema = {"$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}}
    shape, _ = read_value("tool", {**node, "$ref": "#/$defs/n"})
    assert Recogniser(shape).accepts('{"next":{"next":{}}}')
    node["$defs"]["n"]["required"] = ["next"]
    with pytest.raises(OpcodeError, match="no value of finite size"):
        read_value("tool", {**node, "$ref": "#/$defs/n"})


def test_a_schema_in_a_dialect_is_translated_and_noted() -> None:
    """Type names of Python and Java, `optional`, values beside a type that none of them has."""
    report = Report("tool")
    schema = {
        "type": "dict",
        "properties": {
            "x": {"type": "float", "optional": True},
            "l": {"type": "ArrayList", "items": {"type": "String"}, "enum": ["a", "b"]},
            "f": {"type": "boolean", "enum": ["True", "dontcare"]},
            "any": {"type": "any"},
        },
        "required": ["x", "l"],
    }
    assert translate(schema, report) == {
        "type": "object",
        "properties": {
            "x": {"type": "number"},
            "l": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "f": {"enum": ["True", "dontcare"]},
            "any": {},
        },
        "required": ["l"],
    }
    assert len(report.notes) == 8
    with pytest.raises(OpcodeError, match="'float' is not a type"):
        read_parameters("tool", {"properties": {"x": {"type": "float"}}})


def test_a_map_takes_other_keys_than_the_named_ones() -> None:
    """A named key keeps its own schema; others have that of additionalProperties."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}}
    reader = Recogniser(read_value("tool", schema)[0])
    right = ['{"n":1}', '{"n":1,"m":true}', '{"nn":false,"":true}', "{}"]
    wrong = ['{"n":true}', '{"m":1}', '{"m":true,"n":true}', '{"n":1,}']
    assert [text for text in right if not reader.accepts(text)] == []
    assert [text for text in wrong if reader.accepts(text)] == []
