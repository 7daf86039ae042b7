"""Durations that stand in a request, and the unit in which an argument wants one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kernel.tools.quantities import Found

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
SHORT = {"sec": "second", "min": "minute", "hr": "hour"}
UNIT = r"(?P<unit>second|sec|minute|min|hour|hr|day|week)s?\b"
NAMED = re.compile(rf"\b{UNIT}", re.IGNORECASE)
BEHIND = re.compile(rf"(?P<half>\s+and\s+a\s+half)?[\s-]?{UNIT}(?P<later>\s+and\s+a\s+half\b)?", re.IGNORECASE)
SPOKEN = re.compile(
    rf"\b(?:(?P<part>half|quarter|three quarters)\s+(?:of\s+)?)?an?\s+{UNIT}(?P<later>\s+and\s+a\s+half\b)?",
    re.IGNORECASE,
)
PARTS = {"half": 0.5, "quarter": 0.25, "three quarters": 0.75}


def unit_of(name: str, told: str) -> int | None:
    """Return the seconds of the unit that an argument's name says, or else the only one that its description does.

    >>> unit_of("minutes", ""), unit_of("length", "How many hours it takes."), unit_of("length", "hours or days")
    (60, 3600, None)
    """
    for text in (name, told):
        if units := {_seconds(found["unit"]) for found in NAMED.finditer(text)}:
            return units.pop() if len(units) == 1 else None
    return None


def durations(text: str, numbers: Sequence[Found]) -> list[tuple[int, int, float]]:
    """Return the durations of a text as (begin, end, seconds), given its numbers.

    >>> from kernel.tools.quantities import numbers
    >>> def seconds(text): return [found[2] for found in durations(text, numbers(text))]
    >>> seconds("half an hour, 90 minutes, an hour and a half, 1 hour and 30 minutes, or 2 days")
    [1800.0, 5400.0, 5400.0, 5400.0, 172800.0]
    """
    found: list[tuple[int, int, float]] = []
    for match in SPOKEN.finditer(text):
        part = PARTS[match["part"].lower()] if match["part"] else 1.0
        found.append((*match.span(), (part + (0.5 if match["later"] else 0.0)) * _seconds(match["unit"])))
    for number in numbers:
        behind = BEHIND.match(text, number.end)
        if behind is not None and not number.share and not inside(number.begin, number.end, found):
            halves = 0.5 if behind["half"] or behind["later"] else 0.0
            found.append((number.begin, behind.end(), (number.value + halves) * _seconds(behind["unit"])))
    found.sort()
    together: list[tuple[int, int, float]] = []
    for each in found:
        if together and re.fullmatch(r"\s*(?:and)?\s*", text[together[-1][1] : each[0]]):
            begin, _, before = together.pop()
            together.append((begin, each[1], before + each[2]))
        else:
            together.append(each)
    return together


def inside(begin: int, end: int, spans: Sequence[tuple[int, int, float]]) -> bool:
    """Return whether what stands at `[begin:end]` is a part of one of some durations."""
    return any(first <= begin and end <= last for first, last, _ in spans)


def _seconds(unit: str) -> int:
    return SECONDS[SHORT.get(unit.lower(), unit.lower())]
