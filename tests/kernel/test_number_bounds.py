"""Numbers within bounds: mask, recogniser, parser and jsonschema say the same of each bound and of its neighbours."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from kernel.errors import OpcodeError
from kernel.opcode import Opcode
from kernel.shape.numbers import spelled
from kernel.shape.shape import NOTHING, Repeat, Text, alt, repeat, seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.grammar import grammar
from kernel.write.slots import Grammar

BOUNDS = (-180, -1, -0.5, 0, 0.25, 1, 180)
KEYWORDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


@pytest.fixture(scope="module", params=["gpt-2", "llama-spm"])
def vocabulary(request: pytest.FixtureRequest, load: Callable[[str], Vocabulary]) -> Vocabulary:
    """Two real tokenizers: one cuts digits in groups, the other one by one."""
    return load(request.param)


def ranges() -> list[dict[str, float]]:
    """Every bound in every keyword, and every pair of a lower and an upper one that leaves something."""
    single = [{keyword: bound} for keyword in KEYWORDS for bound in BOUNDS]
    pairs = [
        {low: a, high: b}
        for (low, high), (a, b) in itertools.product(
            itertools.product(KEYWORDS[:2], KEYWORDS[2:]), itertools.combinations(BOUNDS, 2)
        )
    ]
    return single + pairs


def masked(compiled: Grammar, text: str) -> bool:
    """Whether the mask lets a text through to its end, one byte at a time."""
    vocabulary = compiled.vocabulary
    single = {piece: n for n, piece in enumerate(vocabulary.pieces) if len(piece) == 1 and vocabulary.is_text[n]}
    slot = compiled.start()
    for byte in text.encode() + b";":
        token = single[bytes([byte])]
        if token not in slot.legal():
            return False
        slot.take(token)
    return slot.ended


@pytest.mark.parametrize("part", [pytest.param(n, marks=[pytest.mark.slow] if n else []) for n in range(6)])
def test_mask_recogniser_parser_and_jsonschema_agree_on_bounds(vocabulary: Vocabulary, part: int) -> None:
    """The kind: mask and parser read one shape in two ways, so that a bound that is left out was written."""
    near = (0, 0.25, -0.25, 1, -1, 1e-05, -1e-05, 0.3, -0.3)
    for schema in ranges()[part::6]:
        opcode = Opcode.from_json_schema("f", {"properties": {"v": {"type": "number", **schema}}, "required": ["v"]})
        argument = opcode.arguments()[0]
        compiled = Grammar(seq(argument.shape, ";"), vocabulary)
        judge = jsonschema.Draft202012Validator(schema)
        for value in sorted({bound + d for bound in schema.values() for d in near}):
            text = spelled(value)
            right = judge.is_valid(value)
            assert argument.recogniser.accepts(text) == right, (schema, text)
            assert masked(compiled, text) == right, (schema, text)
            assert parsed(opcode, text) == right, (schema, text)


def parsed(opcode: type[Opcode], text: str) -> bool:
    try:
        found = opcode.from_arguments(f'{{"v":{text}}}')
    except OpcodeError:
        return False
    return opcode.from_arguments(found.instruction("x").arguments) == found  # as it is read back from a log


@pytest.mark.parametrize("schema", [{"exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"exclusiveMinimum": 0}])
def test_two_exclusive_bounds_can_be_ended(schema: dict[str, Any], vocabulary: Vocabulary) -> None:
    """The kind: a mask that begins what nothing ends."""
    shape = Opcode.from_json_schema("f", {"properties": {"v": {"type": "number", **schema}}}).arguments()[0].shape
    compiled = Grammar(seq(shape, ";"), vocabulary)
    assert masked(compiled, "0.5")
    assert not masked(compiled, "0")
    assert not masked(compiled, "0.0")
    assert masked(compiled, "1") == ("exclusiveMaximum" not in schema)


def test_a_text_that_a_double_rounds_up_to_the_bound_is_not_written() -> None:
    """The kind: bounds of decimals, though what is written is read as a double."""
    opcode = Opcode.from_json_schema("f", {"properties": {"v": {"type": "number", "exclusiveMaximum": 1}}})
    reader = opcode.arguments()[0].recogniser
    assert not reader.accepts("0.99999999999999999")
    assert reader.accepts("0.9999999999999999")
    assert float("0.99999999999999999") == 1.0


def test_nothing_stays_nothing_wherever_it_stands() -> None:
    """The kind: an empty union became the empty text inside a sequence or a repetition."""
    assert alt() is NOTHING
    assert seq("1", NOTHING) is NOTHING
    assert repeat(NOTHING, 1, None) is NOTHING
    assert isinstance(repeat(NOTHING, 0, 3), Text)
    assert isinstance(alt(NOTHING, Text("a"), NOTHING), Text)
    source = grammar(alt(seq("a", Repeat(NOTHING, 0, 2)), seq("b", Repeat(NOTHING, 1, 2))))
    assert '"b"' not in source


@pytest.mark.parametrize("value", [0.00001, 1e-17, 123456789012345680.0, 1e16, -0.5, 3])
def test_a_number_is_read_back_from_its_own_text(value: float) -> None:
    """The kind: a double that Python writes with an exponent, which no mask writes, was refused when it was parsed."""
    for schema in ({}, {"minimum": -1}, {"minimum": -1e17 * 2, "maximum": 1e18}):
        opcode = Opcode.from_json_schema("f", {"properties": {"v": {"type": "number", **schema}}, "required": ["v"]})
        for text in (json.dumps(value), spelled(value)):
            assert parsed(opcode, text), (schema, text)
