"""Numbers, dates and times of day that stand in a request, in digits or in words, with where they stand.

Words are read by text2num, dates by dateutil. What depends on the day of asking (`tomorrow`) is not read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

try:
    from dateutil import parser as dates
    from text_to_num import find_numbers
except ImportError:  # an environment from before they were needed: digits and ISO's dates are read all the same
    dates = find_numbers = None

NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.])(?P<sign>[-\u2212+]?)(?P<coin>[$\u20ac\u00a3\u00a5]\s?)?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:\s?(?P<scale>[kKmMB]|bn|thousand|million|billion|trillion)\b)?(?:\s?(?P<percent>%|percent\b|per cent\b))?"
)
SIDE = re.compile(r"\s?°?\s?([NESW])\b(?!\.?\s[A-Z])")
"""South and west of a coordinate are negative."""
SCALES = {"k": 3, "thousand": 3, "m": 6, "million": 6, "b": 9, "bn": 9, "billion": 9, "trillion": 12}
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
MONTH = rf"(?:{MONTHS})[a-z]*\.?"
DATE = re.compile(
    rf"\b(?:\d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{4}}"
    rf"|(?:\d{{4}},? )?{MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:(?:, ?| )\d{{4}})?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}(?:,? ?\d{{4}})?)(?![\w/-])",
    re.IGNORECASE,
)
TIME = re.compile(r"\b(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s?(?P<half>[ap]\.?m\b\.?)?", re.IGNORECASE)
PAST = re.compile(r"\b(?P<part>half|quarter|\w+(?: minutes)?)\s+(?P<side>past|to)\s+(?P<hour>\w+)\b", re.IGNORECASE)
PARTS = {"half": 30, "quarter": 15, "a quarter": 15}


class Found(NamedTuple):
    """A value that stands at `request[begin:end]`."""

    begin: int
    end: int
    value: int | float
    share: bool = False
    """Whether it is a percentage as a share of 1."""


@dataclass(frozen=True, slots=True)
class Day:
    """A date that stands at `request[begin:end]`."""

    begin: int
    end: int
    value: datetime.date


class _Word(str):
    """A word as text2num reads it."""

    __slots__ = ()

    def text(self) -> str:
        return str(self)

    def nt_separated(self, previous: _Word) -> bool:
        return False

    def not_a_number_part(self) -> bool:
        return False


def numbers(text: str) -> list[Found]:
    """Return the numbers of a text in the order in which they stand there; what can be meant in two ways comes twice.

    A percentage is its hundredth as well, `10k` is 10000, and an ordinal is a number.

    >>> [found.value for found in numbers("Lend $1,500.50, at 5% for 21 years; -3 or 2.5 million")]
    [1500.5, 5, 0.05, 21, -3, 2500000]
    """
    found: list[Found] = []
    for match in NUMBER.finditer(text):
        value = float(match["digits"].replace(",", ""))
        values = [value]
        if match["scale"]:
            scaled = round(value * 10 ** SCALES[match["scale"].lower()], 6)
            values = (
                [scaled]
                if match["scale"].lower() in ("thousand", "million", "billion", "trillion")
                else [scaled, value]
            )
            if match["scale"] in "mMB" and not match["coin"]:
                values = [value]  # metres, as likely as millions
        if match["percent"]:
            values = [value, value / 100]
        side = SIDE.match(text, match.end())
        sign = -1 if match["sign"] in ("-", "\u2212") or (side and side[1] in "SW") else 1
        found += [
            Found(match.start("digits"), match.end(), _plain(sign * each), bool(match["percent"]) and each != value)
            for each in values
        ]
    places = [match.span() for match in re.finditer(r"[^\W\d_]+", text)]
    for spoken in () if find_numbers is None else find_numbers([_Word(text[a:b].lower()) for a, b in places], "en", 0):
        begin, end = places[spoken.start][0], places[spoken.end - 1][1]
        if not any(begin < each.end and each.begin < end for each in found):  # `2.5 million` has been read
            found.append(Found(begin, end, _plain(spoken.value)))
    return sorted(dict.fromkeys(found), key=lambda each: each.begin)


def _plain(value: float) -> int | float:
    value = round(value, 10)
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def days(text: str) -> list[Day]:
    """Return the dates of a text that name a day and a month; without a year it is that of today.

    >>> [str(day.value) for day in days("from 2023-05-05 to 2023-06-01")]
    ['2023-05-05', '2023-06-01']
    """
    found = []
    for match in DATE.finditer(text):
        written = re.sub(r"(?<=\d)(st|nd|rd|th)\b|\bof\b", " ", match[0], flags=re.IGNORECASE)
        try:
            day = datetime.date.fromisoformat(written) if dates is None else dates.parse(written).date()
            found.append(Day(match.start(), match.end(), day))
        except (ValueError, OverflowError):
            continue
    return found


def as_written(day: datetime.date, told: str) -> list[str]:
    """Return the ways in which a date may be wanted; what a description says comes first.

    >>> as_written(datetime.date(2023, 5, 1), "in the format DD-MM-YYYY")[0]
    '01-05-2023'
    """
    forms = {
        "YYYY-MM-DD": "%Y-%m-%d", "DD-MM-YYYY": "%d-%m-%Y", "MM-DD-YYYY": "%m-%d-%Y", "YYYY/MM/DD": "%Y/%m/%d",
        "MM/DD/YYYY": "%m/%d/%Y", "DD/MM/YYYY": "%d/%m/%Y", "YYYY.MM.DD": "%Y.%m.%d", "YYYYMMDD": "%Y%m%d",
    }  # fmt: skip
    wanted = [form for name, form in forms.items() if name in told.upper()]
    return [day.strftime(form) for form in dict.fromkeys([*wanted, "%Y-%m-%d"])]


def times(text: str) -> list[tuple[int, int, str]]:
    """Return times of day as (begin, end, `HH:MM`).

    >>> [time for *_, time in times("at half past 7, 7:30 pm or 6am, and at quarter to 9")]
    ['07:30', '19:30', '06:00', '08:45']
    """
    found = []
    for match in TIME.finditer(text):
        hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()
        if (match["minute"] or half) and hour < 24 and minute < 60:
            hour = hour % 12 + (12 if half.startswith("p") else 0) if half else hour
            found.append((match.start(), match.end(), f"{hour:02}:{minute:02}"))
    for match in PAST.finditer(text):
        hours = [each.value for each in numbers(match["hour"])]
        minutes = [PARTS[match["part"].lower()]] if match["part"].lower() in PARTS else _values(match["part"])
        if hours and minutes and 0 <= hours[0] < 24 and 0 <= minutes[0] < 60:
            total = int(hours[0] * 60 + (minutes[0] if match["side"].lower() == "past" else -minutes[0])) % 1440
            found.append((match.start(), match.end(), f"{total // 60:02}:{total % 60:02}"))
    return sorted(found)


def _values(text: str) -> Sequence[int | float]:
    return [each.value for each in numbers(text)]
