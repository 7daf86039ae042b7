"""Hostile schemas: held or refused with tool, path and keyword in bounded work, and what is held writes valid values.

The seed is printed; FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import jsonschema
import pytest
import referencing.exceptions

from kernel.errors import BuildError, ContextError
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tools import read_tools
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages
from tests.fuzz.schema_cases import Schema, document, hostile

pytestmark = pytest.mark.filterwarnings("ignore")
"""The judge warns of each odd schema; thousands of warnings that are kept fill the memory."""

BUDGET = 400
SECONDS = 30
"""After so long one case counts as endless; it is far above what the slowest takes."""


@pytest.fixture(scope="module")
def vocabulary(load: Callable[[str], Vocabulary]) -> Vocabulary:
    """A real tokenizer."""
    return load("gpt-2")


@contextmanager
def bounded() -> Iterator[None]:
    """End what takes too long."""

    def late(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"{SECONDS} s are over")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def written(opcode: type[SchemaOpcode], vocabulary: Vocabulary, rng: random.Random) -> str | None:
    """Return the arguments that a random walk under the mask writes; None where they do not fit into the budget."""
    try:
        stages = Stages([seq("<|call|>", opcode.arguments_shape(), "<|/call|>")], vocabulary)
        matcher = Matcher(stages, BUDGET)
    except (BuildError, ContextError):
        return None
    steps = rng.randint(5, 60)
    while not matcher.ended:
        token = int(rng.choice(matcher.legal()))
        instead = matcher.ending_instead(token)
        if instead is None and len(matcher.ids) > steps:
            instead = matcher.ending()
        for each in [token] if instead is None else instead:
            matcher.consume(each)
    return matcher.text.decode().removeprefix("<|call|>").removesuffix("<|/call|>")


def judged(schema: Schema, text: str) -> None:
    """Hold a text against the reference implementation; nothing is said of schemas that it cannot read itself."""
    if len(schema.get("$defs", ())) > 8:  # it follows each reference anew, which doubles at every one
        return
    try:
        jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    except jsonschema.ValidationError:
        raise
    except (referencing.exceptions.Unresolvable, RecursionError, OverflowError, TypeError, AttributeError, KeyError):
        return
    except (jsonschema.exceptions.UnknownType, ValueError, ZeroDivisionError):
        return


def draft4(schema: Schema) -> bool:
    """Whether a schema says something that we read as draft 4 or OpenAPI do, and jsonschema's newest draft not."""
    text = json.dumps(schema)
    words = (
        '"nullable"',
        '"additionalItems"',
        '"exclusiveMinimum": true',
        '"exclusiveMaximum": true',
        '"properties": []',
    )
    return any(word in text for word in words) or '"items": [' in text


def hold(count: int, seed: str, vocabulary: Vocabulary) -> None:
    """Import so many hostile schemas, write a value of each that is held."""
    print(f"FUZZ_SEED={seed}")
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        schema = hostile(rng)
        where = f"FUZZ_SEED={seed}, schema {number}"
        with bounded():
            found = read_tools([{"name": "fine"}, {"name": "odd", "inputSchema": schema}])
            assert found.opcodes[0].method == "fine", where
            if found.refusals:
                assert found.refusals[0].reason.startswith("odd: $"), where
                assert len(found.refusals[0].reason.split(": ", 3)) == 4, (where, found.refusals[0].reason)
                found.refusals[0].reason.encode()
                continue
            opcode = found.opcodes[1]
            text = written(opcode, vocabulary, rng)
            if text is not None:
                opcode.from_arguments(text)
                if not draft4(schema):
                    judged(schema, text)


def test_hostile_schemas_are_held_or_refused(vocabulary: Vocabulary) -> None:
    """The kind: one schema ends the import of all, or what is held writes what it forbids."""
    hold(50, os.environ.get("FUZZ_SEED", "1"), vocabulary)


@pytest.mark.slow
def test_many_hostile_schemas_are_held_or_refused(vocabulary: Vocabulary) -> None:
    """Others each time; the seed is printed, and FUZZ_SEED repeats a run."""
    hold(5000, os.environ.get("FUZZ_SEED", str(random.SystemRandom().randrange(1 << 32))), vocabulary)


def test_documents_of_the_generator_are_held_whole(vocabulary: Vocabulary) -> None:
    """The generator makes what is held, so the hostile part of the test breaks something that worked."""
    for number in range(20):
        schema, values = document(random.Random(number))
        found = read_tools([{"name": "odd", "inputSchema": schema}])
        assert found.refusals == ()
        for value in values:
            found.opcodes[0].from_arguments(json.dumps(value))
