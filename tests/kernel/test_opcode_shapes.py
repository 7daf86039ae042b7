"""Shapes of numbers and strings against values worked out one by one."""

from __future__ import annotations

import datetime
import functools
import json
import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import OpcodeError
from kernel.shape.listing import TOO_MANY, Counter, texts
from kernel.shape.numbers import integer, number
from kernel.shape.pattern import parse
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Chars, Except, Ref, Repeat, Scalar, Shape, Text, alt, seq
from kernel.shape.strings import FORMATS, string

whole = st.integers(-1500, 1500)


@given(whole | st.none(), whole | st.none(), st.lists(st.integers(-2000, 2000), min_size=20, max_size=20))
def test_an_integer_shape_accepts_exactly_the_range(low: int | None, high: int | None, tried: list[int]) -> None:
    """Compared with `low <= n <= high` at the bounds, around them, and at random."""
    if low is not None and high is not None and low > high:
        low, high = high, low
    reader = Recogniser(integer(low, high))
    near = [bound + d for bound in (low, high) if bound is not None for d in (-10, -1, 0, 1, 9)]
    for n in [*tried, *near]:
        fits = (low is None or n >= low) and (high is None or n <= high)
        assert reader.accepts(str(n)) == fits, n
    for wrong in ("-0", "00", "01", "-01", "-", "", "+1", "1.0"):
        assert not reader.accepts(wrong)


@pytest.mark.parametrize(("low", "high"), [(-12, 3), (0, 120), (7, 7), (995, 1005), (-1, 0)])
def test_an_integer_shape_lists_each_number_once(low: int, high: int) -> None:
    """The list is the range itself."""
    assert sorted(map(int, texts(integer(low, high)))) == list(range(low, high + 1))


bounds = st.decimals(-200, 200, places=2)


@given(bounds | st.none(), bounds | st.none(), st.booleans(), st.booleans(), st.lists(bounds, min_size=15, max_size=15))
def test_a_number_shape_accepts_exactly_the_range(
    low: Decimal | None, high: Decimal | None, above: bool, below: bool, tried: list[Decimal]
) -> None:
    """Compared with the order of decimals; the bounds themselves and their neighbours are always tried."""
    if low is not None and high is not None and low >= high:
        low, high = high, low + 1
    reader = Recogniser(number(low, high, above=above, below=below))
    near = [bound + Decimal(d) for bound in (low, high) if bound is not None for d in ("0", "-0.001", "0.001", "1")]
    for value in [*tried, *near]:
        text = f"{value.normalize():f}"
        if text == "-0":
            text = "0"
        fits = (low is None or value > low or (value == low and not above)) and (
            high is None or value < high or (value == high and not below)
        )
        assert reader.accepts(text) == fits, (text, low, high)
    assert not reader.accepts("-0")
    assert not reader.accepts("-0.0")
    assert not reader.accepts("007.5")


@settings(max_examples=40)
@given(st.text() | st.characters(categories=["Cc", "So", "Zs", "Po"]), st.integers(0, 6), st.integers(0, 6))
def test_a_string_shape_accepts_the_text_that_json_writes(value: str, low: int, more: int) -> None:
    """The length is counted in code points, whatever an escape takes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return  # a lone surrogate is no text
    reader = Recogniser(string(low, low + more))
    assert reader.accepts(json.dumps(value, ensure_ascii=False)) == (low <= len(value) <= low + more)


def test_a_string_has_one_text() -> None:
    """What JSON could also write in another way is not accepted that way."""
    reader = Recogniser(string())
    for other in ('"\\/"', '"\\u0041"', '"\\u001F"', '"\\ud83d\\ude00"', '"\n"', '"a', "'a'"):
        assert not reader.accepts(other)


PATTERNS = [
    r"^[a-z]{2,4}$", r"colou?r", r"^(foo|ba[rz])+$", r"^\d{3}-\d{4}$", r"^$", r"a|b$", r"^\w+@\w+\.com$",
    r"^[^aeiou\s]*$", r"^(?:x{2}){1,3}$", r'^"\\\n$', r"^.{3}$", r"[.]{2}", r"^\x41\u0042$", r"^(?<year>\d\d)$",
]  # fmt: skip


@functools.cache
def _texts_near(pattern: str) -> tuple[Recogniser, re.Pattern[str], st.SearchStrategy[str]]:
    """Return two readers of a pattern, and texts near it and at random (ASCII, so that engines agree)."""
    plain = re.compile(pattern.replace("(?<year>", "(?P<year>"))
    near = st.from_regex(plain, alphabet=st.characters(max_codepoint=127))
    ascii_text = st.text(st.characters(max_codepoint=126, min_codepoint=32))
    return Recogniser(parse(pattern, Chars)), plain, near | near.map(lambda t: t + "q") | ascii_text


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_pattern_means_what_re_means(pattern: str, data: st.DataObject) -> None:
    """Compared with Python's `re.search`."""
    reader, plain, texts_near = _texts_near(pattern)
    text = data.draw(texts_near)
    if "\n" in text and pattern.endswith("$") and not plain.fullmatch(text):
        return  # Python's `$` also stands before a last newline, that of JSON Schema does not
    if any(c in text for c in "\r\x1c\x1d\x1e\x1f\x85\u2028"):
        return  # what `.` and `\s` say of these differs between engines
    assert reader.accepts(text) == bool(plain.search(text)), text


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^(?!tmp)[a-z]{2,4}$", "lookaround"),
        (r"(a)\1", r"'\1'"),
        (r"\bword\b", r"'\b'"),
        ("a^b", "an anchor '^' inside"),
        ("(a", "without its"),
        ("a)", "unbalanced"),
        ("*a", "nothing before"),
        ("a{3,1}", "inverted"),
        ("a{99999}", "more than 4096"),
        ("[z-a]", "without two ends"),
        ("a{", "counts nothing"),
    ],
)
def test_a_pattern_that_cannot_be_held_is_refused(pattern: str, reason: str) -> None:
    """The error repeats the pattern and says what is wrong with it."""
    with pytest.raises(OpcodeError) as caught:
        parse(pattern, Chars)
    assert reason in str(caught.value)
    assert repr(pattern) in str(caught.value)


def test_a_date_is_a_day_of_the_calendar() -> None:
    """All days around two century years, and some that never were."""
    reader = Recogniser(FORMATS["date"])
    for start in (datetime.date(1899, 1, 1), datetime.date(1999, 12, 1)):
        for day in range(500):
            assert reader.accepts((start + datetime.timedelta(day)).isoformat())
    for never in ("1900-02-29", "2023-02-29", "0000-01-01", "2024-13-01", "2024-04-31", "2024-1-1", "24-01-01"):
        assert not reader.accepts(never)
    assert reader.accepts("2000-02-29")


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("time", ["00:00:00Z", "23:59:59.123456+01:30"], ["24:00:00Z", "1:00:00Z", "10:00:00"]),
        ("date-time", ["2024-02-29T12:00:00Z"], ["2024-02-29 12:00:00Z", "2023-02-29T12:00:00Z"]),
        ("uuid", ["01234567-89ab-CDEF-0123-456789abcdef"], ["0123456789abcdef0123456789abcdef"]),
        ("ipv4", ["0.0.0.0", "255.249.100.9"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
        ("hostname", ["a", "a-b.example.com"], ["-a", "a-", "a..b", "a_b"]),
        ("email", ["a.b+c@example.com"], ["a@b", "@example.com", "a b@example.com"]),
        ("duration", ["P1Y2M3DT4H5M6S", "PT5M", "P3W", "P1Y"], ["P", "PT", "P1S", "P1YT", "1Y"]),
    ],
)
def test_a_format_is_held(name: str, right: list[str], wrong: list[str]) -> None:
    """A few strings that are of the format, a few that nearly are."""
    reader = Recogniser(FORMATS[name])
    assert [text for text in right if not reader.accepts(text)] == []
    assert [text for text in wrong if reader.accepts(text)] == []


def test_a_count_stops_at_what_nobody_can_list() -> None:
    """A product is counted, an endless repetition and a shape that holds itself are TOO_MANY."""
    count = Counter()
    rules: dict[str, Shape] = {}
    rules["list"] = alt(Text("."), seq("x", Ref("list", rules)))
    assert count(seq(integer(0, 9), integer(0, 99))) == 1000
    assert count(Repeat(Text("a"), 0, 3)) == 4
    assert count(Repeat(Text("a"), 0, None)) == TOO_MANY
    assert count(Ref("list", rules)) == TOO_MANY


def test_what_is_begun_is_ended_in_the_fewest_bytes() -> None:
    """The shortest rest of a number, a string, a list that needs items, and a shape that holds itself."""
    rules: dict[str, Shape] = {}
    rules["node"] = seq('{"next":', alt(Ref("node", rules), Text("null")), "}")
    reader = Recogniser(Ref("node", rules))
    assert reader.minimal(reader.shape) == '{"next":null}'
    assert reader.shortest(reader.read('{"next":{"ne')) == 'xt":null}}'
    items = Recogniser(seq("[", Scalar(string(3, 9)), Repeat(seq(",", integer(10, 20)), 2, None), "]"))
    assert items.shortest(items.read('["a')) == 'aa",10,10]'
    assert items.shortest(items.read('["abc",1')) == "0,10]"
    assert items.shortest(items.read("[1")) is None


def test_what_is_left_out_can_still_be_passed_through() -> None:
    """`Except` bars whole texts, not their beginnings."""
    reader = Recogniser(Except(Repeat(Chars(((97, 122),)), 0, None), frozenset({"ab", ""})))
    assert [reader.accepts(text) for text in ("", "a", "ab", "abc", "b")] == [False, True, False, True, True]
    assert reader.shortest(reader.read("ab")) in set("abcdefghijklmnopqrstuvwxyz")
