"""Spans of a request that a value may be copied from: runs of words, what stands in quotes, clauses to their end.

A span begins and ends at words, without the punctuation around them. Knows no model and no schema.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass

WORDS = 8
"""Words of a span; what stands in quotes and clauses that end a sentence may be longer."""

LONGEST = 400
"""Characters of a span."""

_LITTLE = (
    "a an the of in on at to for from with and or by is are was were be been as that this these those it its my your "
    "his her their our i you he she we they me him us them what which who whom how when where why do does did can "
    "could would should will shall may might must please if then so but not into about between than over under using "
    "have has had there per up out i'm i'd i'll let let's"
)
LITTLE = frozenset(_LITTLE.split())
"""Words that no value begins or ends with, unless a name does (`The Hague`)."""

QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|\u201c([^\u201d\n]{1,400})\u201d|\u2018([^\u2019\n]{1,400})\u2019|(?<![A-Za-z0-9])'([^'\n]{1,400})'(?![A-Za-z0-9])|`([^`\n]{1,400})`|\u00ab([^\u00bb\n]{1,400})\u00bb"
)
OPENING = "\"'([{<\u201c\u2018`*\u00ab¿¡"
CLOSING = ".,;:!?)]}>\"'\u201d\u2019`*\u00bb\u2026\u3002\uff0c\uff01\uff1f\u3001"
BREAK = re.compile(
    r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bSt)(?<!\bvs)(?<!\bNo)[.!?;:][\"')\]]*\s"
    r"|\n|[\u3002\uff01\uff1f]"
)
"""The end of a sentence or a clause; `St. John` has none inside."""

SAYING = "saying|says|say|reading|reads|text|message|content|body"
NAMING = "called|named|titled|labelled|labeled|title|subject|label|name"
INTRODUCED = re.compile(rf"\b(?:{SAYING}|{NAMING}|that|to|about|for|up|search|find|down):? +(?=\S)", re.IGNORECASE)
"""Words behind which a text begins that somebody would write or look for."""
CUT = re.compile(rf"[,;]|\s(?:and\s|with\s|that\s|the\s|a\s|its\s)*(?:{SAYING}|{NAMING})\b", re.IGNORECASE)
"""Where such a text breaks off: at a comma, or where the next one is introduced."""

_LITTLE_INSIDE = re.compile(rf"(?<=\s)(?:{'|'.join(map(re.escape, sorted(LITTLE - {'of'})))})(?=\s)", re.IGNORECASE)


class Source(enum.StrEnum):
    """Where a candidate comes from."""

    QUOTE = "quote"
    """It stands in quotes."""
    NAME = "name"
    """It is written as names are: with capitals, or with digits or signs in it."""
    WORDS = "words"
    """A run of words."""
    CLAUSE = "clause"
    """Everything to the end of a sentence."""
    NUMBER = "number"
    """A number, a date or a time, in digits or in words."""
    LIST = "list"
    """Several of these together."""
    LISTED = "listed"
    """The schema lists it."""
    EXAMPLE = "example"
    """The schema gives it as an example or as the default."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a request: `request[begin:end]`."""

    begin: int
    end: int
    source: Source


def words(text: str) -> list[tuple[int, int]]:
    """Return where each word begins and ends, without quotes, brackets and marks around it.

    >>> [("(Is it 21.5 C, in St. Ives?)")[a:b] for a, b in words("(Is it 21.5 C, in St. Ives?)")]
    ['Is', 'it', '21.5', 'C', 'in', 'St', 'Ives']
    """
    found = []
    for match in re.finditer(r"[^\s\u3002\uff0c\uff01\uff1f\u3001]+", text):
        begin, end = match.span()
        while begin < end and text[begin] in OPENING:
            begin += 1
        while end > begin and text[end - 1] in CLOSING:
            end -= 1
        if begin < end:
            found.append((begin, end))
    return found


def quotes(text: str) -> list[tuple[int, int]]:
    """Return what stands in quotes, without them.

    >>> text = "call it 'My List', not \\"Bob's\\""
    >>> [text[a:b] for a, b in quotes(text)]
    ['My List', "Bob's"]
    """
    return [next(match.span(n) for n in range(1, 7) if match[n] is not None) for match in QUOTED.finditer(text)]


def spans(text: str) -> list[Span]:
    """Return the spans of a request, each once, in the order in which they stand there.

    A run of words that are no names has no little word in it (`table for four`), unless it is a clause.

    >>> text = "Play 'So What' by Miles Davis for me"
    >>> [(text[s.begin : s.end], s.source.value) for s in spans(text) if s.source in (Source.QUOTE, Source.NAME)]
    [('So What', 'quote'), ('Miles', 'name'), ('Miles Davis', 'name'), ('Davis', 'name')]
    """
    inside = quotes(text)
    found: dict[tuple[int, int], Source] = {}
    for begin, end in _runs(text):
        if all(quote[0] <= begin and end <= quote[1] for quote in inside if begin < quote[1] and quote[0] < end):
            named = _is_name(text[begin:end]) and not (_starts_sentence(text, begin) and text[begin:end].isalpha())
            if named or not _LITTLE_INSIDE.search(text, begin, end):
                found.setdefault((begin, end), Source.NAME if named else Source.WORDS)
    for begin, end in _clauses(text):
        found.setdefault((begin, end), Source.CLAUSE)
    found |= dict.fromkeys(inside, Source.QUOTE)
    return [Span(begin, end, source) for (begin, end), source in sorted(found.items()) if end - begin <= LONGEST]


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield runs of words within a sentence that a value may be."""
    places = words(text)
    for first, (begin, word_end) in enumerate(places):
        opens = text[begin:word_end]
        if opens.lower() in LITTLE and not (opens[0].isupper() and not _starts_sentence(text, begin)):
            continue
        for last in range(first, min(len(places), first + WORDS)):
            end = places[last][1]
            if BREAK.search(text, places[last - 1][1] if last > first else end, places[last][0]):
                break
            closes = text[places[last][0] : end]
            if closes.lower() not in LITTLE:
                yield begin, end
                if closes.endswith(("'s", "\u2019s")):
                    yield begin, end - 2


def _starts_sentence(text: str, begin: int) -> bool:
    before = text[:begin].rstrip(OPENING + " \n")
    return not before or before[-1] in ".!?:"


def _is_name(text: str) -> bool:
    """Return whether all words but little ones have a capital, a digit or a sign in them."""
    parts = [part for part in text.split() if part.lower() not in LITTLE]
    return all(re.search(r"[A-Z0-9@/\\_.\-]", part) for part in parts)


def _clauses(text: str) -> Iterator[tuple[int, int]]:
    """Yield what a word introduces, to the end of the sentence and to where it breaks off, and whole sentences."""
    begin = 0
    ends = [(match.start(), match.end()) for match in BREAK.finditer(text)]
    for stop, following in [*ends, (len(text), len(text))]:
        parts = [(begin, stop)]
        for match in INTRODUCED.finditer(text, begin, stop):
            cut = CUT.search(text, match.end(), stop)
            parts += [(match.end(), stop), (match.end(), cut.start() if cut else stop)]
        for start, end in parts:
            inner = words(text[start:end])
            if len(inner) > 1:
                yield start + inner[0][0], start + inner[-1][1]
        begin = following
