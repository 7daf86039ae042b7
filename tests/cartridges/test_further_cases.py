"""The sets to learn from, the set kept apart, the requests that nothing should answer: whole, and no paraphrases."""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import cartridges
from cartridges.home import make as make_home
from cartridges.home.opcodes import COMMANDS, OPCODES
from dispatch.loading.registry import load
from dispatch.session.learning import own_cases
from kernel.casefile import NothingRow, RequestRow, read, requests
from kernel.contract import Case
from kernel.errors import CartridgeError
from kernel.opcode import words
from kernel.prompt import Explained

ROOT = Path(cartridges.__file__).parent
KINDS = {"nonsense", "beyond", "negated", "vague"}
FILLERS = frozenset(
    re.findall(
        r"\S+",
        "the a an please pls in of to it is are i i'm me my we us our you your and that this at for be can could would "
        "with here there some",
    )
)
"""Words that say nothing of what is asked for."""


@functools.cache
def said(text: str) -> list[str]:
    """Return the words of a request, in small letters.

    >>> said("Don't, it's 20!")
    ["don't", "it's", '20']
    """
    return re.findall(r"[a-z0-9']+", text.lower())


def alike(a: str, b: str) -> bool:
    """Whether two requests share 60 % of their words of content, or are the same up to a few letters.

    >>> alike("Please turn on the hall light", "Turn the hall light on"), alike("Hall lights on", "hall lights on!!")
    (True, True)
    >>> alike("Turn the hall light on", "I can't see my coat in here")
    False
    """
    mine, others = content(a), content(b)
    if len(mine & others) / len(mine | others) >= 0.6:
        return True
    matcher = difflib.SequenceMatcher(None, " ".join(said(a)), " ".join(said(b)), autojunk=False)
    return matcher.real_quick_ratio() >= 0.8 and matcher.quick_ratio() >= 0.8 and matcher.ratio() >= 0.8


@functools.cache
def content(text: str) -> frozenset[str]:
    """Return the words of a request that say something; all of them where none does."""
    return frozenset(w for w in said(text) if w not in FILLERS) or frozenset(said(text))


def pairs(new: Iterable[str], held_out: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what paraphrases what."""
    return ((a, b) for a, b in itertools.product(new, held_out) if alike(a, b))


def rows(name: str, file: str, split: str) -> list[str]:
    """Return the requests of one half of a file of positive cases."""
    return [row.request for row in read(ROOT / name / f"{file}.jsonl", RequestRow) if row.split == split]


@pytest.mark.parametrize(("name", "each"), [("home", 9), ("robot", 6), ("scavenger", 6)])
def test_what_is_learned_from_covers_every_command(name: str, each: int) -> None:
    """At least so many further requests each command, all of the half `dev`."""
    found = read(ROOT / name / "more.jsonl", RequestRow)
    guide = __import__(f"cartridges.{name}.guide", fromlist=["GUIDE"]).GUIDE
    counts = Counter(row.answer for row in found)
    assert set(counts) == {explained.words for explained in guide}
    assert min(counts.values()) >= each
    assert {row.split for row in found} == {"dev"}


@pytest.mark.parametrize("name", ["home", "robot", "scavenger"])
def test_what_is_learned_from_paraphrases_no_test_case(name: str) -> None:
    """Neither by its words nor letter by letter; `hints` and the set kept apart are held out as well."""
    held_out = rows(name, "cases", "test")
    if name == "home":
        held_out += rows(name, "hints", "test") + rows(name, "fresh", "test")
    assert list(pairs(rows(name, "more", "dev"), held_out)) == []


def test_nothing_that_several_learn_together_paraphrases_a_test_case() -> None:
    """What one cartridge adds to learn from, beside the held-out requests of the others."""
    names = ("home", "robot", "scavenger")
    for name, other in itertools.permutations(names, 2):
        assert list(pairs(rows(name, "more", "dev"), rows(other, "cases", "test"))) == [], (name, other)


def test_a_request_that_another_cartridge_answers_as_well_is_no_case_beside_it() -> None:
    """Such requests name other cartridges, are of the half `dev`, and are left out where one of these is there."""
    found = {name: own_cases([load(name)]) for name in ("home", "robot", "scavenger")}
    assert ("Open the door", "") in found["robot"]
    together = own_cases([load("home"), load("robot")])
    assert "Open the door" not in dict(together)
    assert "Jump" in dict(together)
    assert "Open the door" in dict(own_cases([load("robot"), load("scavenger")]))
    for name in found:
        cartridge = load(name)
        assert cartridge.cases is not None
        sets = [cartridge.cases(), *(make() for make in cartridge.more_cases.values())]
        marked = [case for each in sets for case in each if case.elsewhere]
        assert {case.split for case in marked} == {"dev"}
        assert {other for case in marked for other in case.elsewhere} <= found.keys() - {name}


def test_the_set_kept_apart_paraphrases_nothing() -> None:
    """53 requests, two or three a command: unlike every other request that is labelled."""
    fresh = read(ROOT / "home" / "fresh.jsonl", RequestRow)
    counts = Counter(row.answer for row in fresh)
    assert len(fresh) >= 50
    assert counts.keys() == {words(command, OPCODES) for command in COMMANDS}
    assert min(counts.values()) >= 2
    others = [text for file in ("cases", "hints") for half in ("dev", "test") for text in rows("home", file, half)]
    assert list(pairs([row.request for row in fresh], others + rows("home", "more", "dev"))) == []


NONE = pytest.mark.parametrize(
    ("file", "least"),
    [("home/none", 160), ("robot/none", 60), ("scavenger/none", 60), ("home/none-typed", 60)],
)
"""The files of requests that nothing should answer, and how many they have at least."""


@NONE
def test_requests_for_nothing_are_of_all_kinds_in_both_halves(file: str, least: int) -> None:
    """Each kind at least six times in each half; no request twice."""
    found = read(ROOT / f"{file}.jsonl", NothingRow)
    assert len(found) >= least
    counts = Counter((row.kind, row.split) for row in found)
    assert counts.keys() == set(itertools.product(KINDS, ("dev", "test")))
    assert min(counts.values()) >= 6
    assert len({" ".join(said(row.request)) or row.request for row in found}) == len(found)


@NONE
def test_no_request_for_nothing_paraphrases_the_other_half(file: str, least: int) -> None:
    """What is learned from says nothing of what is measured by."""
    found = read(ROOT / f"{file}.jsonl", NothingRow)
    dev, test = ([row.request for row in found if row.split == half] for half in ("dev", "test"))
    assert list(pairs(dev, test)) == []


def test_a_case_that_nothing_should_answer_has_a_kind_and_no_answer() -> None:
    """It has the options of the others, and the request stands behind the guide."""
    positive = make_home().more_cases["fresh"]()
    found = make_home().more_cases["none"]()
    assert {(case.answer, case.kind in KINDS, case.options) for case in found} == {("", True, positive[0].options)}
    assert found[0].prompt.parts[0] == positive[0].prompt.parts[0]
    assert found[0].prompt.parts[1].text == f" {found[0].request}"
    assert {case.kind for case in positive} == {""}


def test_the_typed_house_has_requests_for_nothing_among_all_that_it_can_say() -> None:
    """Its options are the 220 instructions that can be listed, and the beginning of a reminder."""
    cases: list[Case] = list(make_home("typed").more_cases["none"]())
    assert len(cases[0].options) == 221
    assert {" light hall true", " thermostat 19.5", " timer 180", " remind"} <= set(cases[0].options)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """The error names file, line and field."""
    path = tmp_path / "none.jsonl"
    path.write_text('{"id": "a", "split": "dev", "request": "Hm", "kind": "odd"}\n')
    with pytest.raises(CartridgeError, match=r"none\.jsonl:1: kind: Input should be 'nonsense', 'beyond'"):
        read(path, NothingRow)


def test_a_request_may_be_labelled_as_one_that_nothing_answers(tmp_path: Path) -> None:
    """The answer `none` beside commands; where a command is called so, it is that command."""
    file = tmp_path / "cases.jsonl"
    file.write_text('{"id":"a","split":"dev","request":"sing","answer":"none"}\n')
    guide = (Explained("rest", "do nothing", "all is well", "Sit down"),)
    (found,) = requests(file, guide)
    assert (found.answer, found.options, found.request) == ("", (" rest",), "sing")
    (found,) = requests(file, (*guide, Explained("none", "pick none", "none is ripe", "Leave them")))
    assert found.answer == " none"
