"""Schemas of any size: held, or refused with tool, path and keyword; the other tools stay, and nothing crashes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from kernel.errors import OpcodeError
from kernel.opcode.tools import read_tools
from kernel.shape.document import child, places
from kernel.shape.json_schema import read_value
from kernel.shape.parameters import read_parameters
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def vocabulary(load: Callable[[str], Vocabulary]) -> Vocabulary:
    """A real tokenizer."""
    return load("gpt-2")


def doubling(last: int, keyword: str) -> Schema:
    """Each schema refers to the next one twice."""
    defs: Schema = {f"d{last}": {"enum": [1, 2]}}
    for n in range(last):
        ref = {"$ref": f"#/$defs/d{n + 1}"}
        inner = {"type": "object", "properties": {"a": ref, "b": ref}, "required": ["a", "b"]}
        defs[f"d{n}"] = inner if keyword == "properties" else {keyword: [ref, ref], "title": "t"}
    return {"properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"], "$defs": defs}


def nested(depth: int) -> Schema:
    """Arrays inside each other."""
    inner: Schema = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    return inner


def argument(**schema: Any) -> Schema:
    return {"properties": {"x": schema}, "required": ["x"]}


HOSTILE: dict[str, Schema] = {
    "references that double": doubling(16, "properties"),
    "references that double for long": doubling(60, "properties"),
    "allOf that doubles": doubling(20, "allOf"),
    "anyOf that doubles": doubling(20, "anyOf"),
    "oneOf that doubles": doubling(20, "oneOf"),
    "arrays 200 deep": argument(**nested(200)),
    "a chain of references": {
        "properties": {"x": {"$ref": "#/$defs/0"}},
        "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(3000)},
    },
    "a reference to itself": {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}},
    "allOf of itself": {"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    "groups 5000 deep": argument(type="string", pattern="(" * 5000 + "a" + ")" * 5000),
    "groups 4000 deep": argument(type="string", pattern="(" * 4000 + "a" + ")" * 4000),
    "repetitions of repetitions": argument(type="string", pattern="^(a{0,4096}){0,4096}$"),
    "a pattern of many ways": argument(type="string", pattern="^((a|b|ab)*c?){90}$", minLength=200),
    "a pattern of 50,000 words": argument(type="string", pattern="|".join(f"w{n}" for n in range(50_000))),
    "numbers from 1e300 on": argument(type="number", minimum=1e300, maximum=1e301),
    "a maximum of 4,000 digits": argument(type="integer", maximum=10**4000),
    "a step of 1e-300": argument(type="number", minimum=0, maximum=1, multipleOf=1e-300),
    "no double in between": argument(type="number", exclusiveMinimum=0, exclusiveMaximum=5e-324),
    "a format that is no text": argument(type="string", format={"a": 1}),
    "a type that is no text": argument(type={"a": 1}),
    "a reference that is no text": argument(**{"$ref": ["#"]}),
    "half a character in an enum": argument(enum=["\ud800"]),
    "half a character in a const": argument(const={"k": "\ud800"}),
    "half a character in a default": argument(type="string", default="\ud800"),
    "half a character in a description": argument(type="string", description="\udfff"),
    "half a character in a key": {"properties": {"\ud800": {}}},
    "infinity": argument(enum=[float("inf")]),
    "ten thousand million characters": argument(type="string", minLength=1e10),
    "ten million items": argument(type="array", items={"type": "string"}, minItems=10**7),
    "an enum of a million": argument(enum=list(range(10**6))),
    "an enum of 20,000": argument(enum=list(range(20_000))),
    "five thousand places": argument(type="array", prefixItems=[{"const": 1}] * 5000),
    "counted keys": argument(properties={f"p{n}": {} for n in range(500)}, minProperties=200),
}

CHILD = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from kernel.opcode.tools import read_tools
for name, schema in json.load(sys.stdin).items():
    found = read_tools([{"name": "fine"}, {"name": "odd", "inputSchema": schema}])
    assert [opcode.method for opcode in found.opcodes][0] == "fine", name
    reason = found.refusals[0].reason if found.refusals else "held"
    print(json.dumps([name, reason]))
"""


def test_hostile_schemas_end_in_a_sentence() -> None:
    """The kind: depth, time or memory is set by the input. In a process of its own with bounded memory and time."""
    sent = json.dumps(HOSTILE)
    done = subprocess.run([sys.executable, "-c", CHILD], input=sent, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    reasons = dict(map(json.loads, done.stdout.splitlines()))
    assert reasons.keys() == HOSTILE.keys()
    held = {name for name, reason in reasons.items() if reason == "held"}
    assert held == {"allOf that doubles", "anyOf that doubles"}
    for name in reasons.keys() - held:
        tool, path, keyword, why = reasons[name].split(": ", 3)
        assert tool == "odd"
        assert path.startswith("$")
        assert keyword
        assert why


WIDE = {
    "optional": {"properties": {f"p{n}": {"type": "boolean"} for n in range(1000)}},
    "required": {"properties": {f"p{n}": {"type": "boolean"} for n in range(1000)}, "required": ["p0", "p999"]},
    "texts": {"properties": {f"p{n}": {"type": "string", "maxLength": 5} for n in range(1000)}},
    "below": {"properties": {"o": {"type": "object", "properties": {f"p{n}": {"const": n} for n in range(1000)}}}},
}


@pytest.mark.parametrize("name", list(WIDE))
def test_a_thousand_properties_are_held(name: str, vocabulary: Vocabulary) -> None:
    """The kind: the depth of a shape was the number of its keys. Calls of wide objects validate."""
    schema = WIDE[name]
    opcode = read_tools([{"name": "wide", "inputSchema": schema}]).opcodes[0]
    stages = Stages([seq("<|call|>", opcode.arguments_shape(), "\n")], vocabulary)
    matcher = Matcher(stages, 5000)
    for token in matcher.ending():
        matcher.consume(token)
    text = matcher.text.decode().removeprefix("<|call|>").strip()
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    some = {f"p{n}": value for n, value in ((0, True), (500, False), (999, True))}
    some = {"texts": dict.fromkeys(some, "x"), "below": {"o": {"p3": 3, "p999": 999}}}.get(name, some)
    assert opcode.from_arguments(json.dumps(some))
    assert Recogniser(opcode.arguments_shape()).accepts(json.dumps(some, separators=(",", ":")))


FAULTS: list[tuple[Schema, str, str]] = [
    ({"type": "string", "maxlenght": 3}, "", "maxlenght"),
    ({"minLength": 5, "anyOf": [{"type": "string", "maxLength": 3}]}, "", "minLength"),
    ({"$ref": "#/$defs/f", "minLength": 9}, "", "minLength"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "", "required"),
    ({"type": "object", "required": ["a"], "additionalProperties": False}, "", "required"),
    ({"type": "integer", "format": "int8", "minimum": 500}, "", "minimum"),
    ({"type": "array", "items": False, "minItems": 2}, "", "minItems"),
    ({"type": "array", "items": {"type": "string"}, "minItems": 10**6}, "", "minItems"),
    (
        {"type": "object", "properties": {"a": {}}, "minProperties": 2, "additionalProperties": False},
        "",
        "minProperties",
    ),
    ({"allOf": [{"type": "string"}, {"pattern": "("}]}, ".allOf[1]", "pattern"),
    ({"type": "object", "properties": {"odd name": {"enum": []}}}, '.properties["odd name"]', "enum"),
]


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize(("schema", "below", "keyword"), FAULTS)
def test_path_and_keyword_lead_to_the_fault(schema: Schema, below: str, keyword: str, depth: int) -> None:
    """The kind: the path stops above the fault, or names a keyword that does not stand there."""
    path = "$"
    for _ in range(depth):
        path = child(path, "properties", "in")
    root = schema
    for _ in range(depth):
        root = {"type": "object", "properties": {"in": root}, "required": ["in"]}
    root = {**root, "$defs": {"f": {"type": "string", "maxLength": 3}}}
    with pytest.raises(OpcodeError) as caught:
        read_value("tool", root)
    tool, said, word, _ = str(caught.value).split(": ", 3)
    assert (tool, word) == ("tool", keyword), str(caught.value)
    place, value = next(places(root, said))
    assert place == said
    assert keyword in value
    assert said == path + below or said == "$.$defs.f"


@pytest.mark.parametrize("closed", [True, False])
def test_an_object_that_requires_what_it_cannot_hold_is_refused_at_both_levels(closed: bool) -> None:
    """The kind: rules for arguments differ from those of objects below."""
    water: Schema = {"type": "object", "properties": {"zone": {"enum": ["front"]}}, "required": ["zone", "depth"]}
    if closed:
        water["additionalProperties"] = False
        for read in (lambda: read_parameters("t", water), lambda: read_parameters("t", argument(**water))):
            with pytest.raises(OpcodeError, match="required: 'depth' is no property and no others are allowed"):
                read()
    else:
        for found in (read_parameters("t", water), read_parameters("t", argument(**water))):
            assert any("'depth' is no property; read as one of any kind" in note.text for note in found.notes)
