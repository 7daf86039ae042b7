"""Chains of tries: the same texts as the product, in the tokenizer's own ids, at the cost of the sum."""

from __future__ import annotations

import functools
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.canon import canonical
from kernel.errors import BuildError, ContextError, NoLegalOpcodeError
from kernel.shape.json_schema import read_value
from kernel.shape.listing import texts
from kernel.shape.parameters import read_parameters
from kernel.shape.shape import Scalar, Shape, Text, alt, seq
from kernel.text.vocabulary import Vocabulary
from kernel.write import builder as builder_module
from kernel.write.matcher import Matcher
from kernel.write.stages import Stages

CLOSER = "\n@toy\n"


@pytest.fixture(scope="module", params=["gpt-2", "llama-spm", pytest.param("qwen2", marks=pytest.mark.slow)])
def vocabulary(request: pytest.FixtureRequest, load: Callable[[str], Vocabulary]) -> Vocabulary:
    return load(request.param)


def place(**bounds: int) -> Shape:
    """`place {"x":..,"y":..}` with both between 0 and a bound."""
    properties = {name: {"type": "integer", "minimum": 0, "maximum": high} for name, high in bounds.items()}
    return seq(" place ", read_parameters("place", {"properties": properties, "required": list(bounds)}).shape, CLOSER)


def said(stages: Stages) -> list[str]:
    """The text of every path, for opcodes without open arguments; all ways to one place go on alike."""
    pieces = stages.vocabulary.pieces

    @functools.cache
    def rests(at: Any) -> list[bytes]:
        if at is None:
            return [b""]
        legal = stages.legal(at).tolist()
        return [pieces[token] + rest for token in legal for rest in rests(stages.advance(at, token))]

    return [text.decode() for text in rests(stages.start)]


scalar = st.one_of(
    st.lists(st.sampled_from([1, "1", True, None, "küche", "a b", 10, "on", -1]), min_size=1, max_size=4).map(
        lambda values: {"enum": values}
    ),
    st.tuples(st.integers(-11, 5), st.integers(0, 30)).map(
        lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]}
    ),
    st.just({"type": "boolean"}),
    st.just({"type": "number", "minimum": -1, "maximum": 1, "multipleOf": 0.5}),
)
nested = st.dictionaries(st.sampled_from(["p", "q"]), scalar, min_size=1).flatmap(
    lambda found: st.lists(st.sampled_from(sorted(found)), unique=True).map(
        lambda required: {"type": "object", "properties": found, "required": required, "additionalProperties": False}
    )
)
either = st.lists(scalar | nested, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts})
pairs = scalar.map(lambda part: {"type": "array", "items": part, "maxItems": 1})
whole = st.tuples(
    st.dictionaries(
        st.sampled_from(["x", "xy", "room", "k"]), scalar | nested | either | pairs, min_size=1, max_size=3
    ),
    st.sets(st.sampled_from(["x", "xy", "room"])),
)


@settings(max_examples=30, deadline=None)
@given(drawn=whole, limit=st.sampled_from([1, 6, 40]))
def test_the_paths_are_the_texts_of_the_shape(load: Callable[[str], Vocabulary], drawn: Any, limit: int) -> None:
    """Whatever is cut into stages, the set of texts is that of the product."""
    properties, required = drawn
    schema = {"properties": properties, "required": sorted(required & set(properties))}
    shape = seq(" do ", read_parameters("do", schema).shape, "\n")
    wanted = set(texts(shape))
    if len(wanted) > 4_000:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder_module, "WHOLE", limit)
        found = said(Stages([shape], load("gpt-2")))
    assert set(found) == wanted
    assert len(found) == len(wanted), "a text has two paths"


def test_a_product_costs_the_sum_of_its_arguments(vocabulary: Vocabulary) -> None:
    """10^8 combinations are two tries of 10^4 leaves."""
    stages = Stages([place(x=9999, y=9999)], vocabulary)
    assert [stage.trie.n_leaves for stage in stages.stages] == [10_000, 10_000]
    assert stages.grammars == []


def test_a_small_product_stays_one_trie(vocabulary: Vocabulary) -> None:
    """Up to 4096 texts nothing is cut, so that one pass scores them all."""
    stages = Stages([place(x=9, y=9)], vocabulary)
    assert [stage.trie.n_leaves for stage in stages.stages] == [100]


def test_a_staged_text_has_the_ids_of_the_tokenizer(vocabulary: Vocabulary) -> None:
    """The cuts fall where the tokenizer cuts anyway, also around signs, fractions and letters beyond ASCII."""
    schema = {
        "properties": {
            "x": {"type": "integer", "minimum": -100, "maximum": 9999},
            "y": {"type": "integer", "minimum": -50, "maximum": 999},
            "z": {"type": "number", "minimum": -1, "maximum": 300, "multipleOf": 0.5},
            "k": {"enum": ["küche", "bad", "a b", 7]},
        },
        "required": ["x", "y"],
    }
    stages = Stages([seq(" place ", read_parameters("place", schema).shape, CLOSER)], vocabulary)
    assert len(stages.stages) > 1
    rng = random.Random(5)
    for _ in range(300):
        value: dict[str, Any] = {"x": rng.randint(-100, 9999), "y": rng.randint(-50, 999)}
        if rng.random() < 0.5:
            value["z"] = rng.randint(-2, 600) / 2
        if rng.random() < 0.5:
            value["k"] = rng.choice(["küche", "bad", "a b", 7])
        walk(stages, vocabulary.plain(f" place {canonical(value)}{CLOSER}"))


def walk(stages: Stages, ids: list[int]) -> None:
    """Follow ids from the start; every one is legal and the last one ends the opcode."""
    place_ = stages.start
    for token in ids:
        assert token in stages.legal(place_), stages.vocabulary.pieces[token]
        place_ = stages.advance(place_, token)
    assert place_ is None


def test_after_a_digit_both_another_digit_and_the_end_may_follow(vocabulary: Vocabulary) -> None:
    """After `3` in 0..39, by whatever ids the vocabulary writes 3, 30 and 39."""
    shape = seq("at ", read_value("n", {"type": "integer", "minimum": 0, "maximum": 39})[0], "}\n")
    stages = Stages([shape], vocabulary)
    assert sorted(said(stages)) == sorted(f"at {n}}}\n" for n in range(40))


def test_a_key_that_begins_another_is_told_apart(vocabulary: Vocabulary) -> None:
    """`x` and `xy`, both left out or there, with more values than one trie takes."""
    number = {"type": "integer", "minimum": 0, "maximum": 99}
    schema = {"properties": {"x": number, "xy": number, "y": number}}
    stages = Stages([seq(" go ", read_parameters("go", schema).shape, CLOSER)], vocabulary)
    assert len(stages.stages) > 1
    for value in ({}, {"x": 1}, {"xy": 12}, {"y": 1}, {"x": 1, "xy": 99}, {"xy": 1, "y": 0}, {"x": 5, "xy": 6, "y": 7}):
        walk(stages, vocabulary.plain(f" go {canonical(value)}{CLOSER}"))


def test_the_same_text_from_two_alternatives_has_one_path(vocabulary: Vocabulary) -> None:
    """Alternatives that share values and beginnings meet again."""
    number = {"type": "integer", "minimum": 0, "maximum": 5000}
    a = {"type": "object", "properties": {"k": {"enum": [1, 2]}, "n": number}, "required": ["k", "n"]}
    b = {"type": "object", "properties": {"k": {"enum": [2, 3]}, "m": number}, "required": ["k", "m"]}
    stages = Stages([seq("x", read_value("u", {"anyOf": [a, b]})[0], "\n")], vocabulary)
    right = ['{"k":1,"n":7}', '{"k":2,"n":50}', '{"k":2,"m":5000}', '{"k":3,"m":0}']
    for text in right:
        walk(stages, vocabulary.plain(f"x{text}\n"))
    with pytest.raises(AssertionError):
        walk(stages, vocabulary.plain('x{"k":1,"m":7}\n'))


def test_opcodes_that_cannot_be_told_apart_are_refused(vocabulary: Vocabulary) -> None:
    """One text that begins another leaves no place to decide."""
    with pytest.raises(BuildError, match="' go' is complete, or goes on freely, where ' go north' begins too"):
        Stages([Text(" go"), Text(" go north")], vocabulary)
    with pytest.raises(BuildError, match="no opcodes"):
        Stages([], vocabulary)


def test_a_character_of_several_tokens_cannot_be_left_half_way(vocabulary: Vocabulary) -> None:
    """Lamps whose names share their first bytes: each is reached, and no path ends inside a character."""
    names = ["🦙", "🌋", "🌊", "門"]
    shape = seq(" lamp ", Scalar(alt(*map(Text, names))), "\n")
    assert sorted(said(Stages([shape], vocabulary))) == sorted(f" lamp {name}\n" for name in names)


def test_a_matcher_moves_forward_and_back(vocabulary: Vocabulary) -> None:
    """Consume, forced runs, rollback; an id that is not legal moves nothing."""
    stages = Stages([place(x=9999, y=9999), Text(f" halt{CLOSER}")], vocabulary)
    matcher = Matcher(stages)
    ids = vocabulary.plain(f' place {{"x":12,"y":7}}{CLOSER}')
    for token in ids[:5]:
        matcher.consume(token)
    with pytest.raises(NoLegalOpcodeError, match="is not legal after"):
        matcher.consume(vocabulary.plain("\x01")[0])
    for token in ids[5:]:
        matcher.consume(token)
    assert matcher.ended
    assert matcher.text.decode() == f' place {{"x":12,"y":7}}{CLOSER}'
    assert len(matcher.legal()) == 0
    matcher.rollback(len(ids))
    assert matcher.ids == []
    assert set(matcher.legal().tolist()) == {ids[0], vocabulary.plain(f" halt{CLOSER}")[0]}
    with pytest.raises(ValueError, match="cannot take back 1 of 0"):
        matcher.rollback(1)


def test_a_forced_run_ends_where_a_choice_begins(vocabulary: Vocabulary) -> None:
    """A single opcode is forced to its end; a budget that it does not fit is refused at once."""
    stages = Stages([Text(" only this\n")], vocabulary)
    matcher = Matcher(stages)
    assert matcher.forced() == vocabulary.plain(" only this\n")
    assert matcher.ending() == matcher.forced()
    with pytest.raises(ContextError, match="the shortest opcode has"):
        Matcher(stages, budget=1)


def test_a_budget_leads_to_the_shortest_end(vocabulary: Vocabulary) -> None:
    """When the id after next would be one too many, the shortest text is closed instead."""
    stages = Stages([place(x=9999, y=9999)], vocabulary)
    shortest = Matcher(stages).ending()
    assert len(shortest) == min(len(vocabulary.plain(f' place {{"x":{n},"y":{n}}}{CLOSER}')) for n in range(10))
    matcher = Matcher(stages, budget=len(shortest))
    rng = random.Random(2)
    while not matcher.ended:
        token = int(rng.choice(matcher.legal()))
        ending = matcher.ending_instead(token)
        for each in [token] if ending is None else ending:
            matcher.consume(each)
    assert len(matcher.ids) <= len(shortest)
    json.loads(matcher.text.decode().split(" ", 2)[2].split("\n")[0])


def test_a_step_through_a_trie_takes_microseconds(vocabulary: Vocabulary) -> None:
    """The median of `legal` stays under 5 us on nodes of up to ten thousand edges."""
    stages = Stages([place(x=9999, y=9999)], vocabulary)
    ids = vocabulary.plain(f' place {{"x":1234,"y":567}}{CLOSER}')
    took = []
    for _ in range(200):
        at = stages.start
        for token in ids:
            started = time.perf_counter()
            legal = stages.legal(at)
            took.append(time.perf_counter() - started)
            at = stages.advance(at, token)
    assert legal.dtype == np.int32
    assert statistics.median(took) < 5e-6
