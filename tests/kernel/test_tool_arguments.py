"""Arguments are found in the request: what its candidates are, and that every call fits its schema."""

from __future__ import annotations

import datetime
import json
import random
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

from kernel import Kernel, Tools
from kernel.backends.scripted import ScriptedBackend
from kernel.opcode.opcode import SchemaOpcode
from kernel.text.vocabulary import NORMAL, Vocabulary
from kernel.tools import quantities
from kernel.tools.assigning import assign
from kernel.tools.candidates import Candidate, Reader
from kernel.tools.fields import fields_of
from kernel.tools.quantities import as_written, days, numbers, times
from kernel.tools.spans import Source, spans

spoken = pytest.mark.skipif(quantities.find_numbers is None, reason="text2num is not installed: run make setup")


@pytest.fixture(scope="module")
def kernel(tools: SimpleNamespace) -> Kernel:
    """A model over bytes that says what a hash of what stands before it says."""
    vocabulary = Vocabulary(
        [bytes([b]) for b in range(256)], np.full(256, NORMAL, np.int32), lambda text, special, parse: list(text)
    )
    return Kernel(ScriptedBackend(vocabulary, tools.hashed_row(256), n_ctx=16_384))


def found(schema: dict[str, Any], request: str, *, required: bool = True) -> list[Any]:
    """Return the values that come into question for one argument."""
    listed = {"properties": {"x": schema}, "required": ["x"] if required else []}
    (field,) = fields_of(SchemaOpcode.declare("tool", listed))
    return [each.value for each in Reader(request).candidates(field)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("between -5 and 12,500.75 at 20 %", [-5, 12500.75, 20, 0.2]),
        ("$3k or 2 million, 10m away", [3000, 3, 2000000, 10]),
        pytest.param("twenty-one of three hundred", [21, 300], marks=spoken),
        ("at 33.4 N, 112.07 W", [33.4, -112.07]),
        ("v2.0 of x86 has none", []),
        ("x=1 to x=3", [1, 3]),
    ],
)
def test_numbers_are_read_in_digits_and_in_words(text: str, values: list[float]) -> None:
    """Worked out by hand: signs, thousands, shares, scales; letters and digits in one word are a name."""
    assert [each.value for each in numbers(text)] == values
    assert all(text[each.begin : each.end].strip() for each in numbers(text))


@spoken
@pytest.mark.parametrize(
    ("told", "request_", "values"),
    [
        ("How many minutes it runs.", "half an hour from now", [30]),
        ("How many minutes it runs.", "2 hours, please", [120]),
        ("How many minutes it runs.", "1 hour and 20 minutes for 4 eggs", [80, 4]),
        ("In seconds.", "a minute and a half", [90]),
        ("In hours.", "in 90 minutes", []),
        ("In hours or in minutes.", "in 90 minutes", [90]),
        ("How many.", "2 hours", [2]),
    ],
)
def test_a_duration_is_told_in_the_unit_that_the_argument_names(told: str, request_: str, values: list[int]) -> None:
    """Whole numbers only, since the argument is one: an hour and a half is no whole number of hours."""
    assert found({"type": "integer", "description": told}, request_) == values


def test_dates_and_times_are_read_where_they_are_certain() -> None:
    """A month by its name or in ISO's order; half hours in words; the description says how a date is written."""
    assert [day.value for day in days("from 10th December 2022 to Dec 12, 2022 (2022-12-31)")] == [
        datetime.date(2022, 12, 10),
        datetime.date(2022, 12, 12),
        datetime.date(2022, 12, 31),
    ]
    assert as_written(datetime.date(2022, 12, 10), "as MM/DD/YYYY") == ["12/10/2022", "2022-12-10"]
    assert [time for *_, time in times("half past six, 7:05 pm, quarter to nine; 12am")] == [
        "06:30",
        "19:05",
        "08:45",
        "00:00",
    ]
    assert times("chapter 7") == []


def test_spans_end_at_words_and_never_inside_of_quotes() -> None:
    """What stands in quotes is whole; little words begin and end nothing; names may have them inside."""
    text = 'Send "see you at 5" to the University of Oslo, please.'
    said = {text[s.begin : s.end]: s.source for s in spans(text)}
    assert said["see you at 5"] is Source.QUOTE
    assert said["University of Oslo"] is Source.NAME
    assert "the University" not in said
    assert 'see you at 5" to' not in said
    assert all(piece == piece.strip(' .,"') for piece in said)


def test_a_clause_runs_to_the_end_of_its_sentence() -> None:
    """Behind words that introduce it."""
    text = "Tell Ann that I will be late, sorry. Thanks!"
    assert "I will be late, sorry" in {text[s.begin : s.end] for s in spans(text) if s.source is Source.CLAUSE}


def test_candidates_are_what_the_schema_allows() -> None:
    """Numbers within bounds, the listed values, lists out of enumerations, and no default of what may be left out."""
    request = "order 2 pizzas and 30 salads, with olives, red onions and feta"
    assert found({"type": "integer", "maximum": 10}, request) == [2]
    assert found({"type": "number"}, "5% of 30") == [0.05, 30]
    assert found({"type": "integer"}, "5% of 30") == [5, 30]
    assert found({"type": "number", "description": "A percentage."}, "5% of 30") == [5, 30]
    assert found({"enum": ["small", "large", 3]}, request) == ["small", "large", 3]
    assert found({"type": "boolean"}, request) == [True, False]
    assert ["olives", "red onions", "feta"] in found({"type": "array", "items": {"type": "string"}}, request)
    assert [2, 30] in found({"type": "array", "items": {"type": "integer"}}, request)
    assert 7 in found({"type": "integer", "default": 7}, request)
    assert 7 not in found({"type": "integer", "default": 7}, request, required=False)
    assert "2027-05-03" in found({"type": "string", "format": "date"}, "on 2027-05-03")


def test_members_of_an_object_are_fields() -> None:
    """Each by itself, through references too; put together they are the arguments again."""
    schema = {
        "properties": {"where": {"$ref": "#/$defs/Place"}, "note": {"type": "string"}},
        "required": ["where"],
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    }
    fields = fields_of(SchemaOpcode.declare("go", schema))
    assert [(".".join(f.path), f.required) for f in fields] == [("where.city", True), ("note", False)]


def test_one_place_serves_one_field() -> None:
    """Though both would rather have the first; where there is another place for the same value, both may have it."""
    one, two = Candidate('"Oslo"', Source.NAME, 5, 9), Candidate('"Bergen"', Source.NAME, 13, 19)
    both = np.log([0.6, 0.4])
    assert sorted(assign([[one, two], [one, two]], [both, np.log([0.9, 0.1])])) == [0, 1]
    assert assign([[one, two], [one, None]], [both, np.log([0.9, 0.1])]) in ([1, 0], [0, 1])


SHAPES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 3, "maxLength": 8},
    {"type": "string", "pattern": "^[a-z]{2,5}$"},
    {"type": "string", "format": "date"},
    {"type": "integer", "minimum": -3, "maximum": 40},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "boolean"},
    {"enum": ["red", "green", 7, None]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    {"type": ["string", "null"], "maxLength": 12},
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]},
]


def test_every_call_fits_its_schema(kernel: Kernel) -> None:
    """Tools of random arguments and requests of any kind, judged by jsonschema."""
    draw = random.Random(16)
    requests = [
        "add 12 and 30 for Ann in 'Green Street', on 3 May 2027",
        "",
        "red, green and blue; no numbers",
        '\u8bf7\u67e5 5 \u4e2a\n\x00\ud7ff odd \U0001f600 "',
    ]
    for number in range(24):
        properties = {f"p{n}": draw.choice(SHAPES) for n in range(draw.randint(0, 4))}
        required = [name for name in properties if draw.random() < 0.6]
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        listed = [{"name": "tool", "description": "Does it.", "parameters": schema}]
        call = kernel.call(Tools.openai(listed), requests[number % len(requests)], always=True)
        jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(
            json.loads(json.dumps(dict(call.arguments)))
        )
        assert call.name == "tool"


def test_values_that_do_not_go_together_are_written(kernel: Kernel) -> None:
    """An `anyOf` beside the properties holds, whatever each field would rather have."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "boolean"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    for request in ("nothing", "a 5", "b"):
        call = kernel.call(Tools.openai([{"name": "either", "parameters": schema}]), request, always=True)
        assert call.arguments.keys() & {"a", "b"}
