"""Whether a request means a tool is told by its words, and whether it says what the tool needs. Worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kernel.opcode.opcode import SchemaOpcode
from kernel.tools.candidates import Candidate
from kernel.tools.evidence import Evidence, Kind
from kernel.tools.fields import fields_of
from kernel.tools.matching import matches
from kernel.tools.meant import Words, words_of
from kernel.tools.signs import NAMES, scores, signs
from kernel.tools.spans import Source, spans


def tool(name: str, about: str, needed: tuple[str, ...] = (), **properties: dict[str, Any]) -> type[SchemaOpcode]:
    """Return a tool as it is declared from a list."""
    return SchemaOpcode.declare(name, {"description": about, "properties": properties, "required": list(needed)})


BUS = tool(
    "find_bus", "Find a bus.", ("start", "seats"), start={"type": "string"}, seats={"type": "integer"}
)  # fmt: skip
LIGHTS = tool("lights_off", "Turn off all lights.")


def told(request: str, *tools: type[SchemaOpcode]) -> Words:
    """Return what the words of a request say."""
    return words_of(request, tools, matches(request, tools))


def test_a_request_that_says_nothing_of_what_a_tool_needs_hardly_means_it() -> None:
    """All words of the first are the tool's, and there is no number; the second has a place and a number."""
    empty, whole = told("Can you find me a bus?", BUS), told("Find a bus from Rome with 3 seats", BUS)
    assert (empty.numbers_missing, empty.texts_missing, empty.names) == (1, 1 / 2, 0)
    assert (whole.numbers_missing, whole.texts_missing, whole.names) == (0, 0, 3)  # Rome, 3, the run between them
    assert empty.needed == whole.needed == math.log1p(2)
    assert empty.log_odds < 0 < whole.log_odds


def test_a_tool_that_needs_nothing_is_meant_by_its_words() -> None:
    """The best match counts, wherever it stands in the list, and how far it is ahead of the next one."""
    said = told("Turn off all lights", BUS, LIGHTS)
    assert (said.of_name, said.of_about, said.ahead, said.needed, said.nothing) == (1, 1, 2, 0, 0)
    assert said.log_odds > 0 > told("What is the capital of France?", BUS, LIGHTS).log_odds


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["burger", "pizza"]},
        {"type": "string", "examples": ["a pizza"]},
        {"type": "string", "description": "What to eat ('pizza')."},
        {"type": "string", "description": "What to eat, such as pizza or bread."},
    ],
)
def test_a_value_that_an_argument_names_speaks_for_its_tool(schema: dict[str, Any]) -> None:
    """One of the two words of the request; nothing else is shared."""
    said = told("Bring pizza", tool("cha_fod", "Changes it.", ("dish",), dish=schema))
    assert (said.example, said.examples, said.short, said.of_name) == (1, 1 / 2, 1, 0)


def test_a_tool_for_an_address_is_not_meant_where_none_is_said() -> None:
    """What fetches pages needs to be told which."""
    get = tool("fetch_page", "Fetch a page.", ("url",), url={"type": "string"})
    said, unsaid = told("Fetch the page https://example.com/a", get), told("Fetch the page of our Rome office", get)
    assert (said.link_missing, unsaid.link_missing) == (0, 1)
    assert unsaid.log_odds < 0 < said.log_odds


def field(name: str, about: str = "") -> Any:
    """Return a field of one text."""
    (found,) = fields_of(tool("t", "", (name,), **{name: {"type": "string", "description": about}}))
    return found


def chosen(request: str, name: str, about: str = "") -> str:
    """Return what a field gets from a model that finds every candidate as likely."""
    candidates = tuple(
        Candidate(f'"{request[s.begin : s.end]}"', s.source, s.begin, s.end) for s in spans(request)
    )  # fmt: skip
    even = np.zeros(len(candidates))
    evidence = Evidence(Kind.STRING, candidates, even, even, np.zeros((0, len(candidates))))
    return candidates[int(np.argmax(scores(request, field(name, about), evidence)[:-1]))].value


@pytest.mark.parametrize(
    ("request_", "name", "value"),
    [
        ("Write to Ann saying the train is late", "body", "the train is late"),
        ("Write to Ann with the subject Trains and the text it is late", "subject", "Trains"),
        ("Write to Ann with the subject Trains and the text it is late", "body", "it is late"),
        ("Remember: feed the cat", "note", "feed the cat"),
        ("Make a list called Groceries", "title", "Groceries"),
        ("Go from Rome to Oslo", "origin", "Rome"),
        ("Go from Rome to Oslo", "destination", "Oslo"),
    ],
)
def test_what_a_word_introduces_is_taken_where_it_breaks_off(request_: str, name: str, value: str) -> None:
    """`saying`, `called`, a colon, `from` and `to` tell what follows, when the model does not care."""
    assert chosen(request_, name) == value


def test_a_value_is_written_as_its_description_asks() -> None:
    """A place with its state, a time of day: what stands in the request otherwise has no such sign."""
    request = "weather in Reno, NV at 20:00"
    several = (Candidate('"Reno"', Source.NAME, 11, 15), Candidate('"Reno, NV"', Source.NAME, 11, 19))
    times = (Candidate('"20:00"', Source.NUMBER, 23, 28), Candidate('"8 pm"', Source.WORDS, 23, 28))

    def formed(about: str, some: tuple[Candidate, ...]) -> list[float]:
        even = np.zeros(len(some))
        evidence = Evidence(Kind.STRING, some, even, even, np.zeros((0, len(some))))
        return signs(request, field("x", about), evidence)[:-1, NAMES.index("formed")].tolist()

    assert formed("The city, in the format `City, State`.", several) == [0, 1]
    assert formed("The city.", several) == [0, 0]
    assert formed("The time as HH:MM.", times) == [1, 0]
