"""What the value of an argument may be: what its schema names, and what stands in the request.

Every candidate is a value that the argument accepts; which of them is meant is the model's to say.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel.canon import canonical
from kernel.tools.durations import durations, inside, unit_of
from kernel.tools.fields import Field
from kernel.tools.quantities import as_written, days, numbers, times
from kernel.tools.spans import Source, spans

SPOKEN = re.compile(r"[\"'\u2018\u201c`]([^\"'\u2019\u201d`\n]{1,60})[\"'\u2019\u201d`]")
"""A value that a description names in quotes."""
APART = re.compile(r"(?:\s*[,;]\s*(?:and|or)?\s*|\s+(?:and|or|&)\s+|\s*\n\s*[-*]?\s*)")
BETWEEN = re.compile(r"\s*(?:[,;]|and|or|&|[\[\](){}<>\s])*\s*")
"""What may stand between two numbers of one list."""
BRACKETS = re.compile(r"\[[^\[\]]*\]")
MOST, MOST_CHARACTERS = 64, 2_000
"""Candidates of a field, and their characters in all; beyond that runs of words are left out first."""
ORDER = (
    Source.LISTED, Source.NUMBER, Source.QUOTE, Source.NAME, Source.EXAMPLE, Source.LIST, Source.CLAUSE, Source.WORDS
)  # fmt: skip
ITEMS = 30
"""Items of a list that is copied."""
ITEM_WORDS = 4
"""Words of the first and the last item of a list that nothing else delimits."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that an argument may have.

    Attributes:
        text: the value as JSON.
        begin, end: where it stands in the request; -1 where it does not.
    """

    text: str
    source: Source
    begin: int = -1
    end: int = -1

    @property
    def value(self) -> Any:
        """The value."""
        return json.loads(self.text)


class Reader:
    """Finds the candidates of arguments in one request."""

    def __init__(self, request: str) -> None:
        self.request = request
        self.spans = spans(request)
        self.numbers = numbers(request)
        self.durations = durations(request, self.numbers)

    def candidates(self, field: Field) -> list[Candidate]:
        """Return the candidates of a field, each value once, the likelier kinds first.

        The default of one that may be left out is none: it is left out.
        """
        found: dict[str, Candidate] = {}
        spoken = list(self._durations(field))
        others = self._of(field.schema, field.argument.description)
        if spoken:  # the 2 of "2 hours" is no number of minutes
            others = (o for o in others if o.source is not Source.NUMBER or not inside(o.begin, o.end, self.durations))
        for each in itertools.chain(spoken, others):
            if each.text not in found and field.argument.accepts(each.value):
                found[each.text] = each
        if not field.required and field.schema.get("default") is not None and "enum" not in field.schema:
            default = found.get(canonical(field.schema["default"]))
            if default is not None and default.source is Source.EXAMPLE:
                del found[default.text]
        room = MOST_CHARACTERS
        kept: list[Candidate] = []
        for each in sorted(found.values(), key=lambda each: ORDER.index(each.source)):
            room -= len(each.text)
            if each.source is Source.LISTED or (len(kept) < MOST and (room > 0 or not kept)):
                kept.append(each)
        return kept

    def _durations(self, field: Field) -> Iterator[Candidate]:
        """Yield the durations of the request in the unit that an argument names: half an hour is 30 minutes."""
        if (unit := unit_of(field.name, field.argument.description)) is not None:
            for begin, end, seconds in self.durations:
                value = round(seconds / unit, 6)
                yield Candidate(canonical(int(value) if value.is_integer() else value), Source.NUMBER, begin, end)

    def _of(self, schema: Mapping[str, Any], told: str) -> Iterator[Candidate]:
        listed = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(listed, list):
            yield from (Candidate(canonical(value), Source.LISTED) for value in listed)
            return
        for keyword in ("anyOf", "oneOf"):
            for part in schema.get(keyword) or ():
                if isinstance(part, Mapping):
                    yield from self._of(part, told)
        kinds = schema.get("type", [] if {"anyOf", "oneOf"} & schema.keys() else ["string", "number"])
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            match kind:
                case "boolean":
                    yield from (Candidate(text, Source.LISTED) for text in ("true", "false"))
                case "integer" | "number":
                    yield from self._numbers(kind, told)
                case "string":
                    yield from self._strings(schema, told)
                case "array":
                    yield from self._lists(schema.get("items") or {}, told)
        yield from self._named(schema)

    def _named(self, schema: Mapping[str, Any]) -> Iterator[Candidate]:
        if schema.get("default") is not None:
            yield Candidate(canonical(schema["default"]), Source.EXAMPLE)
        examples = schema.get("examples")
        yield from (Candidate(canonical(e), Source.EXAMPLE) for e in (examples if isinstance(examples, list) else ()))

    def _numbers(self, kind: str, told: str) -> Iterator[Candidate]:
        """Yield the numbers; a percentage is a share of 1 where the value may have a fraction and is no percentage."""
        shares = kind == "number" and not re.search(r"percent|%", told, re.IGNORECASE)
        whole = {found.begin for found in self.numbers if found.share}
        for found in self.numbers:
            if found.begin not in whole or found.share is shares:
                yield Candidate(canonical(found.value), Source.NUMBER, found.begin, found.end)

    def _strings(self, schema: Mapping[str, Any], told: str) -> Iterator[Candidate]:
        for day in days(self.request):
            for text in as_written(day.value, f"{told} {schema.get('format', '')}"):
                yield Candidate(canonical(text), Source.NUMBER, day.begin, day.end)
        for begin, end, time in times(self.request):
            yield Candidate(canonical(time), Source.NUMBER, begin, end)
        for span in self.spans:
            yield Candidate(canonical(self.request[span.begin : span.end]), span.source, span.begin, span.end)
        for match in SPOKEN.finditer(told):
            yield Candidate(canonical(match[1].rstrip(".,")), Source.EXAMPLE)

    def _lists(self, items: Mapping[str, Any], told: str) -> Iterator[Candidate]:
        for match in BRACKETS.finditer(self.request):
            try:
                found = json.loads(match[0].replace("'", '"'))
            except ValueError:
                continue
            yield Candidate(canonical(found), Source.LIST, *match.span())
        if isinstance(listed := items.get("enum"), list):
            yield from self._chosen(listed)
        elif items.get("type") in ("integer", "number"):
            yield from self._rows()
        elif items.get("type") in ("string", None):
            yield from self._enumerations()
            for each in self._strings(items, told):
                if each.source in (Source.NAME, Source.QUOTE, Source.WORDS):
                    yield Candidate(f"[{each.text}]", each.source, each.begin, each.end)

    def _chosen(self, listed: Sequence[Any]) -> Iterator[Candidate]:
        """Yield the values of an enumeration that the request names, together and each alone."""
        lowered = self.request.lower()
        said = [value for value in listed if isinstance(value, str) and value.lower() in lowered]
        for some in [said, *([value] for value in listed)]:
            if some:
                yield Candidate(canonical(some), Source.LIST)

    def _rows(self) -> Iterator[Candidate]:
        """Yield numbers that stand beside each other, as long as nothing but separators stands between them."""
        row: list[Any] = []
        for before, found in itertools.pairwise([None, *self.numbers, None]):
            if before is not None and (found is None or not BETWEEN.fullmatch(self.request, before.end, found.begin)):
                if row:
                    yield Candidate(canonical([each.value for each in row]), Source.LIST, row[0].begin, row[-1].end)
                row = []
            if found is not None:
                row.append(found)
        for count in range(2, 5):
            for at in range(len(self.numbers) - count + 1):
                some = self.numbers[at : at + count]
                yield Candidate(canonical([each.value for each in some]), Source.LIST, some[0].begin, some[-1].end)

    def _enumerations(self) -> Iterator[Candidate]:
        """Yield `A, B and C` as lists; the first and the last item come in several lengths, as their ends are open."""
        text = self.request
        for begin, end in _sentences(text):
            cuts = [match.span() for match in APART.finditer(text, begin, end)]
            for first, last in itertools.combinations(range(len(cuts) + 1), 2):
                if last - first >= ITEMS:
                    continue
                middle = [text[cuts[n][1] : cuts[n + 1][0]].strip("\"'`") for n in range(first, last - 1)]
                if any(len(item.split()) > ITEM_WORDS or not item for item in middle):
                    continue
                before = text[cuts[first - 1][1] if first else begin : cuts[first][0]]
                behind = text[cuts[last - 1][1] : cuts[last][0] if last < len(cuts) else end]
                yield from self._joined(before, middle, behind, cuts[first][0], cuts[last - 1][1])

    def _joined(self, before: str, middle: list[str], behind: str, left: int, right: int) -> Iterator[Candidate]:
        heads = {span.begin: span for span in self.spans if span.end == left or span.end == left - 1}
        tails = {span.end: span for span in self.spans if span.begin == right or span.begin == right + 1}
        heads = {at: s for at, s in heads.items() if len(self.request[s.begin : s.end].split()) <= ITEM_WORDS}
        tails = {at: s for at, s in tails.items() if len(self.request[s.begin : s.end].split()) <= ITEM_WORDS}
        for head, tail in itertools.product(heads.values(), tails.values()):
            values = [self.request[head.begin : head.end], *middle, self.request[tail.begin : tail.end]]
            yield Candidate(canonical(values), Source.LIST, head.begin, tail.end)


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in re.finditer(r"[.!?]\s|$", text):
        if match.start() > begin:
            yield begin, match.start()
        begin = match.end()
