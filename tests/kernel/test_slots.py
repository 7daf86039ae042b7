"""Open arguments: what comes out validates, what is valid goes in, and every text can be ended in time."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import numpy as np
import pytest

from kernel.backends.scripted import ScriptedBackend
from kernel.canon import canonical
from kernel.errors import ContextError, NoLegalOpcodeError
from kernel.memory.memory import Memory
from kernel.shape.json_schema import read_value
from kernel.shape.parameters import read_parameters
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import seq
from kernel.text.vocabulary import CONTROL, Vocabulary
from kernel.write.matcher import Matcher
from kernel.write.slots import Grammar, Slot
from kernel.write.stages import Stages
from kernel.write.writer import write

CLOSER = "<|/call|>\n"
Schema = dict[str, Any]


@pytest.fixture(scope="module", params=["gpt-2", "llama-spm"])
def vocabulary(request: pytest.FixtureRequest, load: Callable[[str], Vocabulary]) -> Vocabulary:
    return load(request.param)


NODE = {
    "type": "object",
    "properties": {
        "v": {"type": ["integer", "null"]},
        "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
    },
    "required": ["v"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, Schema] = {
    "text": {"properties": {"text": {"type": "string", "minLength": 2, "maxLength": 12}}, "required": ["text"]},
    "pattern": {
        "properties": {
            "code": {"type": "string", "pattern": "^[a-f]+-[0-9]{2,4}$", "maxLength": 9},
            "free": {"type": "string", "pattern": "x.y"},
            "when": {"type": "string", "format": "date-time"},
        },
        "required": ["code"],
    },
    "number": {
        "properties": {
            "i": {"type": "integer"},
            "n": {"type": "number"},
            "r": {"type": "number", "minimum": -2.5, "exclusiveMaximum": 1000},
            "big": {"type": "integer", "minimum": -1000000, "maximum": 99999999},
            "cents": {"type": "number", "minimum": 0, "multipleOf": 0.25, "maximum": 1125},
        },
        "required": ["r"],
    },
    "array": {
        "properties": {
            "l": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 300}, "minItems": 1},
            "t": {
                "type": "array",
                "prefixItems": [{"type": "string", "maxLength": 3}, {"type": "boolean"}],
                "items": False,
                "minItems": 2,
            },
        },
        "required": ["l", "t"],
    },
    "recursive": {"properties": {"node": {"$ref": "#/$defs/node"}}, "required": ["node"], "$defs": {"node": NODE}},
    "map": {
        "properties": {
            "m": {"type": "object", "additionalProperties": {"type": "boolean"}, "maxProperties": 3},
            "o": {
                "type": "object",
                "properties": {"q": {"enum": [1, "1", None]}},
                "additionalProperties": {"type": "string", "maxLength": 4},
            },
        },
        "required": ["m", "o"],
    },
    "anything": {"properties": {"x": {}}, "required": ["x"]},
    "mixed": {
        "properties": {
            "room": {"enum": ["küche", "bad"]},
            "celsius": {"type": "number", "minimum": 16, "maximum": 26, "multipleOf": 0.5},
            "note": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 10}]},
            "minutes": {"type": "integer", "minimum": 1, "maximum": 180},
        },
        "required": ["room", "celsius", "note"],
    },
}


def compiled(schema: Schema, vocabulary: Vocabulary) -> Stages:
    shape = read_parameters("note", {"type": "object", **schema}).shape
    return Stages([seq("<|call|>toy.note ", shape, CLOSER)], vocabulary)


@functools.cache
def compiled_kind(kind: str, vocabulary: Vocabulary) -> Stages:
    """Stages do not change: what moves is a matcher, or a slot of its own."""
    return compiled(SCHEMAS[kind], vocabulary)


def sample(stages: Stages, rng: random.Random, budget: int, ending: float) -> Matcher:
    """Take legal ids at random, in a slot now and then one that leads to the end."""
    matcher = Matcher(stages, budget)
    while not matcher.ended:
        token = int(rng.choice(matcher.legal()))
        if isinstance(matcher.place, Slot) and rng.random() < ending:
            token = matcher.ending()[0]
        instead = matcher.ending_instead(token)
        for each in [token] if instead is None else instead:
            matcher.consume(each)
    return matcher


def arguments(text: str) -> str:
    assert text.startswith("<|call|>toy.note ")
    assert text.endswith(CLOSER)
    return text[len("<|call|>toy.note ") : -len(CLOSER)]


def check(kind: str, vocabulary: Vocabulary, count: int) -> None:
    schema = SCHEMAS[kind]
    judge = jsonschema.Draft202012Validator({"type": "object", **schema}, format_checker=jsonschema.FormatChecker())
    stages = compiled_kind(kind, vocabulary)
    rng = random.Random(f"{kind} {vocabulary.name}")
    for n in range(count):
        matcher = sample(stages, rng, rng.choice([80, 160, 400]), 0.02 if n % 3 == 0 else 0.25)
        assert matcher.budget is not None
        assert len(matcher.ids) <= matcher.budget
        judge.validate(json.loads(arguments(matcher.text.decode())))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_sampled_validates(kind: str, vocabulary: Vocabulary) -> None:
    """Random walks through each kind of open schema, judged by jsonschema, formats included."""
    check(kind, vocabulary, 6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_thousand_samples_validate(kind: str, vocabulary: Vocabulary) -> None:
    """The same, 125 of each of the eight kinds: a thousand a vocabulary."""
    check(kind, vocabulary, 125)


WORDS = [
    "",
    "a",
    "Grüße",
    "🦙🌋",
    'say "hi"',
    "back\\slash",
    "tab\tnl\n\x00\x1f",
    "<|/call|>\n",
    "}]",
    "null",
    "x" * 12,
]


def value_of(schema: Any, rng: random.Random, root: Schema, depth: int = 0) -> Any:
    """A random value of a schema, made without the code under test; jsonschema judges it afterwards."""
    if schema in ({}, True):
        schema = {"type": rng.choice(["null", "boolean", "integer", "number", "string", "array", "object"])}
    if "$ref" in schema:
        return value_of(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], rng, root, depth)
    if "anyOf" in schema:
        return value_of(rng.choice(schema["anyOf"]), rng, root, depth)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind = schema["type"] if isinstance(schema["type"], str) else rng.choice(schema["type"])
    if kind == "null":
        return None
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "integer":
        return rng.randint(schema.get("minimum", -(10**15)), schema.get("maximum", 10**15))
    if kind == "number":
        step = schema.get("multipleOf")
        low, high = schema.get("minimum", -1e6), schema.get("maximum", schema.get("exclusiveMaximum", 1e6))
        if step:
            return rng.randint(int(low / step), int(high / step)) * step
        if "minimum" in schema:
            return rng.choice([low, round(rng.uniform(low, high - 1), rng.randint(0, 6)), rng.uniform(low, high - 1)])
        return rng.choice([0.0, 1e300, -2.5e-07, rng.uniform(low, high), rng.randint(-9, 9), 0.1 + 0.2])
    if kind == "string":
        if "pattern" in schema:
            letters = "".join(rng.choice("abcdef") for _ in range(rng.randint(1, 4)))
            return f"{letters}-{rng.randint(10, 9999)}" if schema["pattern"][0] == "^" else f"{rng.choice(WORDS)}x/y"
        if "format" in schema:
            return f"20{rng.randint(10, 30)}-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}T12:00:00.5+01:00"
        return rng.choice(WORDS)
    if kind == "array":
        first = [value_of(part, rng, root, depth + 1) for part in schema.get("prefixItems", [])]
        count = (
            rng.randint(schema.get("minItems", 0) if not first else 0, schema.get("maxItems", 3)) if depth < 4 else 0
        )
        rest = schema.get("items", {})
        return first + ([] if rest is False else [value_of(rest, rng, root, depth + 1) for _ in range(count)])
    out = {}
    for name, part in schema.get("properties", {}).items():
        if name in schema.get("required", []) or (rng.random() < 0.6 and depth < 4):
            out[name] = value_of(part, rng, root, depth + 1)
    extra = schema.get("additionalProperties", not schema.get("properties"))
    if extra is not False and depth < 4:
        for _ in range(rng.randint(0, 3)):
            out[rng.choice(WORDS) + "!"] = value_of(extra, rng, root, depth + 1)
    return out


@pytest.mark.parametrize("kind", SCHEMAS)
def test_what_is_valid_is_accepted(kind: str, vocabulary: Vocabulary) -> None:
    """Values made at random: those that jsonschema calls valid are accepted, those it refuses are not."""
    schema = {"type": "object", "additionalProperties": False, **SCHEMAS[kind]}
    judge = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    stages = compiled_kind(kind, vocabulary)
    rng = random.Random(kind)
    valid = tried = 0
    while valid < 130 and tried < 3000:
        tried += 1
        value = value_of(schema, rng, schema)
        accepted = accepts(stages, f"<|call|>toy.note {canonical(value)}{CLOSER}")
        assert accepted == judge.is_valid(value), canonical(value)
        valid += accepted
    assert valid == 130


def accepts(stages: Stages, text: str) -> bool:
    matcher = Matcher(stages)
    for token in stages.vocabulary.plain(text):
        try:
            matcher.consume(token)
        except NoLegalOpcodeError:
            return False
    return matcher.ended


def holds(grammar: Grammar, text: str) -> bool:
    """Whether a slot takes a text to its end."""
    slot = grammar.start()
    return all(slot.take(token) for token in grammar.vocabulary.plain(text)) and slot.ended


@pytest.mark.parametrize("kind", SCHEMAS)
def test_engine_and_recogniser_agree(kind: str, vocabulary: Vocabulary) -> None:
    """Valid texts with one character changed, doubled or dropped: two independent readers say the same."""
    shape = seq(read_parameters("note", {"type": "object", **SCHEMAS[kind]}).shape, "\n")
    grammar, reader = Grammar(shape, vocabulary), Recogniser(shape)
    schema = {"type": "object", "additionalProperties": False, **SCHEMAS[kind]}
    rng = random.Random(kind)
    right = 0
    for _ in range(60):
        text = canonical(value_of(schema, rng, schema)) + "\n"
        at = rng.randrange(len(text))
        other = rng.choice(['"', "0", "-", ",", "}", "a", " ", "é", "\\", text[at] * 2, ""])
        text = text[:at] + other + text[at + 1 :]
        wanted = reader.accepts(text)
        right += wanted
        assert holds(grammar, text) == wanted, text
    assert 0 < right < 60


def test_a_token_that_straddles_the_boundary_of_an_argument_is_legal(vocabulary: Vocabulary) -> None:
    """Every way to cut the text into ids that goes through the slot is legal, the model's own one included."""
    stages = compiled(
        {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n", "s"]}, vocabulary
    )
    for value in ({"n": -5, "s": "The end"}, {"n": 12, "s": ""}, {"n": 0, "s": "\n"}, {"n": 7, "s": "é"}):
        assert accepts(stages, f"<|call|>toy.note {canonical(value)}{CLOSER}")


def test_control_and_empty_ids_are_never_legal_in_a_slot(vocabulary: Vocabulary) -> None:
    """A string takes nearly everything, but no id that is not text."""
    matcher = Matcher(compiled_kind("text", vocabulary))
    for token in vocabulary.plain('<|call|>toy.note {"text":"ab'):
        matcher.consume(token)
    legal = matcher.legal()
    assert len(legal) > len(vocabulary) // 2
    assert vocabulary.is_text[legal].all()
    assert isinstance(matcher.place, Slot)
    mask = matcher.place.mask()
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(vocabulary))
    assert np.flatnonzero(bits).tolist() == legal.tolist()


@pytest.mark.parametrize("length", [2000, 2001])
def test_a_cap_is_honoured_on_both_sides(length: int, vocabulary: Vocabulary) -> None:
    """As many characters as maxLength says, and not one more."""
    grammar = Grammar(seq(read_value("post", {"type": "string", "maxLength": length})[0], "\n"), vocabulary)
    for count in (length - 1, length, length + 1):
        text = json.dumps(("Grüße, " * 400)[:count], ensure_ascii=False)
        assert holds(grammar, f"{text}\n") == (count <= length)


def test_a_half_written_character_is_completed_when_the_budget_ends(load: Callable[[str], Vocabulary]) -> None:
    """A llama takes several byte tokens; wherever it is cut, the closing makes a whole text of it."""
    vocabulary = load("gpt-2")
    stages = compiled({"properties": {"text": {"type": "string"}}, "required": ["text"]}, vocabulary)
    ids = vocabulary.plain('<|call|>toy.note {"text":"🦙')
    for end in range(len(ids) - 4, len(ids) + 1):
        matcher = Matcher(stages)
        for token in ids[:end]:
            matcher.consume(token)
        for token in matcher.ending():
            matcher.consume(token)
        json.loads(arguments(matcher.text.decode()))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_matcher_goes_back_inside_a_slot(kind: str, vocabulary: Vocabulary) -> None:
    """Steps back and illegal ids at random: the legal ids are those of a matcher that went straight here."""
    stages = compiled_kind(kind, vocabulary)
    rng = random.Random(kind)
    matcher = Matcher(stages)
    banned = int(np.flatnonzero(~vocabulary.is_text)[0])
    for _ in range(120):
        what = rng.random()
        if matcher.ended or what < 0.25:
            matcher.rollback(rng.randint(0, min(5, len(matcher.ids))))
        elif what < 0.35:
            matcher.consume(int(rng.choice(matcher.legal())))
            matcher.rollback(1)
        elif what < 0.45:
            with pytest.raises(NoLegalOpcodeError):
                matcher.consume(banned)
        else:
            matcher.consume(matcher.ending()[0] if what > 0.7 else int(rng.choice(matcher.legal())))
        straight = Matcher(stages)
        for token in matcher.ids:
            straight.consume(token)
        assert matcher.legal().tolist() == straight.legal().tolist()
        assert matcher.ended == straight.ended
        if not matcher.ended:
            assert matcher.ending() == straight.ending()


# -- with a scripted model -----------------------------------------------------------------------------------------


def wishing(vocabulary: Vocabulary, wish: str, *, above: tuple[int, ...] = ()) -> ScriptedBackend:
    """A model that wants to write `wish` behind a prompt of one id, and `above` even more, all the time."""
    ids = vocabulary.plain(wish)

    def row(before: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.float32]]:
        out = np.zeros(len(vocabulary), np.float32)
        at = len(before) - 1
        if at < len(ids) and list(before[1:]) == ids[:at]:
            out[ids[at]] = 5
        out[list(above)] = 50
        return out

    return ScriptedBackend(vocabulary, row, n_ctx=256)


def prompt(vocabulary: Vocabulary) -> list[int]:
    return vocabulary.plain("a")[:1]


def test_a_model_that_wants_to_stop_inside_a_slot_goes_on(vocabulary: Vocabulary) -> None:
    """End-of-text, control and unused ids far above all words are passed over; the text has none of them."""
    banned = tuple(np.flatnonzero(~vocabulary.is_text).tolist()) + tuple(vocabulary.eog)
    assert all(vocabulary.attributes[i] & CONTROL for i in vocabulary.eog)
    wish = f'<|call|>toy.note {{"text":"two words"}}{CLOSER}'
    memory = Memory(wishing(vocabulary, wish, above=banned))
    written = write(memory, compiled_kind("text", vocabulary), prompt(vocabulary))
    assert written.text == wish
    assert written.closed == 0
    assert written.chosen + written.forced == len(written.ids)


@pytest.mark.parametrize(
    "value",
    ["type <|/call|> to end, a < b", '}"', '"}<|/call|>\n', "<|call|>door.open {}<|/call|>", "\n@toy\n"],
)
def test_a_closing_mark_inside_a_string_does_not_end_the_call(value: str, vocabulary: Vocabulary) -> None:
    """The whole value is written, and the text is exactly one instruction with it."""
    schema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    wish = f"<|call|>toy.note {canonical({'text': value})}{CLOSER}"
    written = write(Memory(wishing(vocabulary, wish)), compiled(schema, vocabulary), prompt(vocabulary))
    assert json.loads(arguments(written.text)) == {"text": value}


def test_a_model_that_never_ends_is_closed_within_its_budget(vocabulary: Vocabulary) -> None:
    """Spaces without end: the string is closed for the model, and the result says so."""
    schema = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    space = vocabulary.plain("a a")[1]
    backend = wishing(vocabulary, "", above=(space,))
    written = write(Memory(backend), compiled(schema, vocabulary), prompt(vocabulary), max_tokens=40)
    assert len(written.ids) <= 40
    assert written.closed > 0
    json.loads(arguments(written.text))
    with pytest.raises(ContextError, match="the shortest opcode has"):
        write(Memory(backend), compiled(schema, vocabulary), prompt(vocabulary), max_tokens=3)
    with pytest.raises(ContextError, match="leaves no room"):
        write(Memory(backend), compiled(schema, vocabulary), prompt(vocabulary) * 256)


def test_one_opcode_after_the_other_starts_anew(vocabulary: Vocabulary) -> None:
    """What the first left in memory does not lead the second, and the prompt's own sequence stays clean."""
    stages = compiled_kind("text", vocabulary)
    wish = f'<|call|>toy.note {{"text":"two words"}}{CLOSER}'
    memory = Memory(wishing(vocabulary, wish))
    first = write(memory, stages, prompt(vocabulary))
    assert write(memory, stages, prompt(vocabulary)).text == first.text == wish
    assert write(memory, stages, prompt(vocabulary)).cost.passes == first.cost.passes
