"""Schemas as ordinary tools write them: what only describes refuses nothing, what binds is held."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from dispatch.wire.form import form
from kernel.errors import OpcodeError
from kernel.opcode import Opcode
from kernel.shape.json_schema import read_value
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages

Schema = dict[str, Any]
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


@pytest.fixture(scope="module")
def vocabulary(load: Callable[[str], Vocabulary]) -> Vocabulary:
    """A real tokenizer."""
    return load("gpt-2")


def calls(stages: Stages, count: int) -> list[str]:
    """Random calls under the mask."""
    rng = random.Random(1)
    out = []
    for _ in range(count):
        matcher = Matcher(stages, 200)
        steps = rng.randint(3, 30)
        while not matcher.ended:
            token = int(rng.choice(matcher.legal()))
            instead = matcher.ending() if len(matcher.ids) > steps else matcher.ending_instead(token)
            for each in [token] if instead is None else instead:
                matcher.consume(each)
        out.append(matcher.text.decode())
    return out


TWO = {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"type": "boolean"}}
ORDINARY: dict[str, tuple[Schema, str]] = {
    **{
        name: ({"properties": {"x": {"type": "string", "format": name}}, "required": ["x"]}, "is not enforced")
        for name in ("uri", "uri-reference", "ipv6", "byte", "binary", "password", "regex", "json-pointer", "idn-email")
    },
    "days": ({"properties": {"d": {"type": "array", "items": {"enum": DAYS}, "uniqueItems": True}}}, ""),
    "few days": (
        {"properties": {"d": {"type": "array", "items": {"enum": DAYS}, "uniqueItems": True, "maxItems": 3}}},
        "",
    ),
    "PHP": ({"type": "object", "properties": []}, "[] is read as no properties"),
    "one of two or both": ({"properties": TWO, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ""),
    "one of two": ({"properties": TWO, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, ""),
    "at least one": ({"properties": TWO, "minProperties": 1}, ""),
    "words that describe": (
        {
            "title": "T",
            "$comment": "c",
            "x-vendor": {"any": 1},
            "properties": {"x": {"type": "integer", "example": 1, "deprecated": True, "title": "X", "x-order": 1}},
        },
        "only describes",
    ),
    "a forbidden key": ({"properties": {**TWO, "c": False}}, ""),
    "a number as text": ({"properties": {"n": {"type": "string", "format": "int64"}}}, "binds numbers only"),
}  # fmt: skip


@pytest.mark.parametrize("wire", ["tagged", "compact"])
@pytest.mark.parametrize("name", list(ORDINARY))
def test_random_calls_of_an_ordinary_tool_validate(name: str, wire: str, vocabulary: Vocabulary) -> None:
    """The kind: words that have one meaning, or only describe, are taken for constraints that cannot be held."""
    schema, note = ORDINARY[name]
    opcode = Opcode.from_json_schema("f", schema)
    noted = " ".join(str(each) for each in opcode.notes())  # type: ignore[attr-defined]
    assert note in noted
    plain = schema if schema.get("properties") != [] else {"type": "object"}
    judge = jsonschema.Draft202012Validator(plain)
    said = form(wire)
    stages = Stages([said.shape("t", opcode)], vocabulary)
    for text in calls(stages, 15):
        found = said.match(text)
        assert found is not None
        arguments = said.arguments(found[2], opcode)
        judge.validate(json.loads(arguments))
        opcode.from_arguments(arguments)


def test_alternatives_of_arguments_are_held_by_the_parser_and_the_list() -> None:
    """The kind: rules for arguments differ from those of objects below."""
    both = Opcode.from_json_schema("f", {"properties": TWO, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})
    one = Opcode.from_json_schema("f", {"properties": TWO, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})
    assert both.from_arguments('{"a":1,"b":true}')
    for opcode, wrong in ((both, "{}"), (one, "{}"), (one, '{"a":1,"b":true}')):
        with pytest.raises(OpcodeError, match="do not go together"):
            opcode.from_arguments(wrong)
    assert len(list(both.instances())) == 10 * 3 + 2
    assert len(list(one.instances())) == 10 + 2


def test_an_array_without_repeats_is_held_up_to_ten_values() -> None:
    """1 and 1.0 are one value, and true is another."""
    reader = Recogniser(read_value("t", {"items": {"enum": [1, 1.0, True, "1"]}, "uniqueItems": True})[0])
    assert [text for text in ("[]", "[1]", '[1,true,"1"]', "[1.0,true]") if not reader.accepts(text)] == []
    assert [text for text in ("[1,1]", "[1,1.0]", "[true,true]") if reader.accepts(text)] == []
    with pytest.raises(OpcodeError, match=r"\$: uniqueItems: can be held for items of at most 10 values"):
        read_value("t", {"items": {"type": "integer", "minimum": 0, "maximum": 10}, "uniqueItems": True})


RECURSIVE: list[Schema] = [
    {"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"kids": {"$ref": "#/$defs/n"}}}}},
    {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["v"]},
    {"type": "array", "items": {"$ref": "#"}},
    {"type": "string", "maxLength": 4},
    {"type": "number", "exclusiveMinimum": 0},
    {},
]


@pytest.mark.parametrize("schema", RECURSIVE)
def test_a_value_is_written_from_its_first_id(schema: Schema, vocabulary: Vocabulary) -> None:
    """The kind: what begins with no fixed text had an empty opcode in front of it."""
    stages = Stages([seq(read_value("write", schema)[0], "\n")], vocabulary)
    for text in calls(stages, 10):
        jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    matcher = Matcher(stages, 50)
    before = matcher.legal().tolist()
    matcher.consume(before[0])
    matcher.rollback(1)
    assert matcher.legal().tolist() == before


def test_recursion_at_the_root_of_arguments_is_that_of_an_object_below() -> None:
    """`$ref: #` in an argument is the object of the arguments."""
    opcode = Opcode.from_json_schema("f", RECURSIVE[1])
    assert opcode.from_arguments('{"v":1,"next":{"v":2,"next":{"v":3}}}')
    with pytest.raises(OpcodeError, match=r"f\.next"):
        opcode.from_arguments('{"v":1,"next":{"next":{"v":3}}}')


@pytest.mark.parametrize("name", ["urri", "shelf-id"])
def test_a_format_that_nobody_knows_is_refused(name: str) -> None:
    """What is misspelt must not become a free string."""
    with pytest.raises(OpcodeError, match=f"format: format '{name}' cannot be held"):
        read_value("t", {"type": "string", "format": name})


def test_a_union_of_a_map_and_an_object_is_held(vocabulary: Vocabulary) -> None:
    """The kind: one alternative goes on freely where another one begins with the same text."""
    schema: Schema = {
        "properties": {
            "x": {
                "anyOf": [
                    {"type": "object", "properties": {"k": {"enum": [1, 2]}}, "required": ["k"]},
                    {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
                ]
            }
        },
        "required": ["x"],
    }
    opcode = Opcode.from_json_schema("f", schema)
    stages = Stages([form("tagged").shape("t", opcode)], vocabulary)
    for text in calls(stages, 20):
        arguments = text.removeprefix("<|call|>t.f ").removesuffix("<|/call|>\n")
        jsonschema.Draft202012Validator(schema).validate(json.loads(arguments))
