"""Random schemas: what the mask completes validates by jsonschema, and what is valid is refused by nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import ContextError
from kernel.opcode import Opcode
from kernel.shape.numbers import spelled
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.slots import Grammar
from kernel.write.stages import Stages
from tests.fuzz.schema_cases import document

FORMATS = jsonschema.FormatChecker(("date", "email", "ipv4", "uuid"))
"""The formats that jsonschema checks by their standards; its `time` is another one, without an offset."""
OPENER, CLOSER = "<|call|>", "<|/call|>"


@pytest.fixture(scope="module")
def vocabulary(load: Callable[[str], Vocabulary]) -> Vocabulary:
    """A real tokenizer."""
    return load("gpt-2")


def differ(seed: int, vocabulary: Vocabulary) -> None:
    """Compare mask, recogniser, parser and jsonschema on one schema."""
    rng = random.Random(seed)
    schema, values = document(rng)
    opcode = Opcode.from_json_schema("f", schema)
    judge = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    shape = opcode.arguments_shape()
    stages = Stages([seq(OPENER, shape, CLOSER)], vocabulary)
    for _ in range(3):
        text = walked(stages, rng)
        if text is not None:
            judge.validate(json.loads(text))
            found = opcode.from_arguments(text)
            assert opcode.from_arguments(found.instruction("x").arguments) == found
    compiled = Grammar(seq(shape, CLOSER), vocabulary)
    for value in values:
        if judge.is_valid(value):
            ordered = {name: value[name] for name in schema["properties"] if name in value}
            opcode.from_arguments(json.dumps(ordered))
            slot = compiled.start()
            for token in vocabulary.plain(spelled(ordered) + CLOSER):
                assert token in slot.legal(), (schema, ordered)
                assert slot.take(token)
            assert slot.ended


def walked(stages: Stages, rng: random.Random) -> str | None:
    """Return what a random walk under the mask writes; None where nothing fits into the budget."""
    try:
        matcher = Matcher(stages, 300)
    except ContextError:
        return None
    steps = rng.randint(3, 40)
    while not matcher.ended:
        token = int(rng.choice(matcher.legal()))
        instead = matcher.ending() if len(matcher.ids) > steps else matcher.ending_instead(token)
        for each in [token] if instead is None else instead:
            matcher.consume(each)
    return matcher.text.decode().removeprefix(OPENER).removesuffix(CLOSER)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 32))
def test_mask_parser_and_jsonschema_agree(vocabulary: Vocabulary, seed: int) -> None:
    """The kind: mask, recogniser and parser are not one language."""
    differ(seed, vocabulary)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_mask_parser_and_jsonschema_agree_at_length(vocabulary: Vocabulary, seed: int) -> None:
    """The same for many more schemas, others each time."""
    differ(seed, vocabulary)
