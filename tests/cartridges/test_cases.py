"""The labelled case sets: whole, balanced, and free of doubles."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from cartridges.home import CASES as HOME_FILE
from cartridges.home import HINTS as HINTS_FILE
from cartridges.home import make as make_home
from cartridges.home.opcodes import COMMANDS, OPCODES, Room
from cartridges.kit.states import StateRow, made, states
from cartridges.scavenger import make as make_scavenger
from cartridges.tetris import make as make_tetris
from cartridges.tetris.cases import cases as tetris_cases
from cartridges.tetris.opcodes import OpcodeSet
from dispatch.session.completions import FILE as CHOOSE_FILE
from dispatch.session.completions import Completion
from dispatch.session.completions import cases as choose_cases
from dispatch.session.guides import asked_of_all, cases_of_all, guide_of
from kernel.casefile import RequestRow, Row, case, read
from kernel.contract import Case
from kernel.errors import CartridgeError, UsageError
from kernel.opcode import commands, words
from kernel.prompt import Prompt, explained


def plain(text: str) -> str:
    """Lower case letters and digits only, so that punctuation hides no double."""
    return "".join(c for c in text.lower() if c.isalnum() or c == " ")


HOME_SETS = pytest.mark.parametrize(
    ("file", "load", "each", "longest"),
    [(HOME_FILE, make_home().cases, 3, 9), (HINTS_FILE, make_home().more_cases["hints"], 4, 15)],
    ids=["cases", "hints"],
)
"""Both sets of the house: file, loader, requests of each command in each split, words of the longest request."""

Load = Callable[[], list[Case]]


@HOME_SETS
def test_home_sets_hold_every_command_equally_often_in_each_split(
    file: Path, load: Load, each: int, longest: int
) -> None:
    """24 commands: 3 requests each in dev and in test, 4 of the hints; ids count up from 001."""
    found = load()
    assert len(found) == 24 * 2 * each
    counts = Counter((c.answer, c.split) for c in found)
    assert counts == {(f" {words(c, OPCODES)}", split): each for c in COMMANDS for split in ("dev", "test")}
    name = {"cases": "home", "hints": "hints"}[file.stem]
    assert [c.id for c in found] == [f"{name}-{n:03}" for n in range(1, len(found) + 1)]


@HOME_SETS
def test_home_sets_offer_all_commands_and_hold_the_request(file: Path, load: Load, each: int, longest: int) -> None:
    """Each case: 24 options, the answer one of them, the request read as data."""
    options = tuple(f" {words(c, OPCODES)}" for c in COMMANDS)
    for row, found in zip(read(file, RequestRow), load(), strict=True):
        assert found.options == options
        assert found.answer in options
        assert found.prompt.parts[1].text == f" {row.request}"
        assert len(found.prompt.nulls) == len(options) * (1 + len(found.prompt.rotations))


@HOME_SETS
def test_home_requests_are_short(file: Path, load: Load, each: int, longest: int) -> None:
    """None is longer than 9 words, of the hints 15; none has blanks around it."""
    requests = [row.request for row in read(file, RequestRow)]
    assert max(len(r.split()) for r in requests) <= longest
    assert all(r == r.strip() for r in requests)


def test_home_everyday_requests_mostly_have_two_to_seven_words() -> None:
    """At most one in twenty is outside."""
    lengths = [len(row.request.split()) for row in read(HOME_FILE, RequestRow)]
    assert sum(not 2 <= n <= 7 for n in lengths) <= len(lengths) // 20


def test_home_requests_are_distinct_over_both_sets() -> None:
    """No two requests are the same apart from case and punctuation."""
    requests = [plain(row.request) for file in (HOME_FILE, HINTS_FILE) for row in read(file, RequestRow)]
    assert len(set(requests)) == len(requests) == 144 + 192


def test_home_everyday_requests_do_not_only_swap_the_room() -> None:
    """With every room blanked no two are the same sentence."""
    rooms = re.compile("|".join([*get_args(Room), "hallway", "bedside"]))
    requests = [rooms.sub("room", plain(row.request)) for row in read(HOME_FILE, RequestRow)]
    assert len(set(requests)) == len(requests)


def test_home_hints_mostly_avoid_the_words_of_the_command() -> None:
    """At most one hint in three repeats two words of its command; the rest must be understood."""
    repeats = sum(
        len(set(row.answer.split()) & set(plain(row.request).split())) >= 2 for row in read(HINTS_FILE, RequestRow)
    )
    assert repeats <= 192 // 3


def test_all_sets_of_home_are_reached_from_the_cartridge() -> None:
    """`cases` is the everyday set, `more_cases` names the others."""
    made = make_home()
    assert made.cases is not None
    assert made.cases()[0].id == "home-001"
    assert {name: load()[0].id for name, load in made.more_cases.items()} == {
        "hints": "hints-001",
        "more": "home-more-001",
        "fresh": "fresh-001",
        "none": "none-001",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id":"a","split":"train"}', r"cases\.jsonl:2: split: Input should be 'dev' or 'test'"),
        ('{"id":"a","split":"dev","extra":1}', r"cases\.jsonl:2: extra: Extra inputs"),
        ('{"id":"one","split":"dev"}', r"cases\.jsonl:2: the id 'one' stands twice"),
        ("", r"cases\.jsonl:2: the line: Invalid JSON"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: str, message: str) -> None:
    """The second line is wrong in one of four ways."""
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id":"one","split":"dev"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(CartridgeError, match=message):
        read(path, Row)


def test_a_missing_file_is_a_cartridge_error(tmp_path: Path) -> None:
    """No traceback of the operating system reaches the person."""
    with pytest.raises(CartridgeError, match=r"none\.jsonl cannot be read"):
        read(tmp_path / "none.jsonl", Row)


def test_an_answer_outside_the_options_is_refused() -> None:
    """The error names the case and the answer."""
    row = RequestRow(id="x-1", split="dev", request="?", answer="light attic on")
    with pytest.raises(CartridgeError, match=r"case x-1: the answer 'light attic on' is not one of the 2 options"):
        case(row, Prompt(()), ["light hall on", "light hall off"])


def choose_rows() -> list[Completion]:
    """Read the completions."""
    return read(CHOOSE_FILE, Completion)


def test_choose_has_cases_enough_and_halves_each_kind() -> None:
    """193 cases; in each of the eleven kinds dev and test differ by at most one."""
    assert len(choose_cases()) == 193
    kinds = Counter((row.kind, row.split) for row in choose_rows())
    names = {kind for kind, _ in kinds}
    assert len(names) == 11
    assert all(abs(kinds[kind, "dev"] - kinds[kind, "test"]) <= 1 for kind in names)
    assert (min(kinds.values()), max(kinds.values())) == (5, 12)


def test_choose_answers_stand_in_every_position_equally_often() -> None:
    """For each number of options and each split the positions differ by at most one."""
    places = Counter((len(c.options), c.split, c.options.index(c.answer)) for c in choose_cases())
    for options in (3, 4, 5):
        for split in ("dev", "test"):
            shares = [places[options, split, position] for position in range(options)]
            assert min(shares) >= 4
            assert max(shares) - min(shares) <= 1


def test_choose_prompts_and_options_are_distinct_and_spaced() -> None:
    """No prompt twice; options differ, begin with one space, end in none; a prompt ends in no space."""
    rows = choose_rows()
    assert len({plain(row.prompt) for row in rows}) == len(rows)
    for row in rows:
        assert len({plain(o) for o in row.options}) == len(row.options), row.id
        assert all(o == f" {o.strip()}" for o in row.options), row.id
        assert row.prompt == row.prompt.strip(), row.id
        assert row.null == row.null.strip(), row.id


def test_choose_null_prompts_hold_no_content() -> None:
    """A null is not the prompt, does not name the answer, and ends in a comma where the prompt does."""
    for row in choose_rows():
        assert row.null != row.prompt
        assert f" {plain(row.answer).strip()} " not in f" {plain(row.null)} "
        assert row.null.endswith(",") == row.prompt.endswith(",")


def test_choose_has_options_that_begin_with_the_answer() -> None:
    """The trap that whole-option scoring must have a rule for: 62 cases, such as water and watermelon."""
    assert sum(any(o.startswith(r.answer) and o != r.answer for o in r.options) for r in choose_rows()) == 62


@pytest.mark.parametrize(("name", "count"), [("robot", 36), ("scavenger", 28)])
def test_small_sets_cover_every_command_in_both_halves(name: str, count: int) -> None:
    """As many cases as README says; each command as often in dev as in test, distinct requests, all offered."""
    made = importlib.import_module(f"cartridges.{name}").make()
    options = tuple(f" {words(i, made.opcodes)}" for i in commands(made.name, made.opcodes))
    found = made.cases()
    assert len(found) == count
    halves = Counter((c.answer, c.split) for c in found)
    assert {answer for answer, _ in halves} == set(options)
    assert all(halves[o, "dev"] == halves[o, "test"] >= 1 for o in options)
    assert all(c.options == options for c in found)
    assert len({plain(c.prompt.parts[1].text) for c in found}) == len(found)


@pytest.mark.parametrize("name", ["home", "robot", "scavenger"])
def test_no_labelled_request_stands_in_a_guide(name: str) -> None:
    """The heads explain the commands in words of their own, and so do the requests of the null prompts."""
    made = importlib.import_module(f"cartridges.{name}").make()
    prompt = explained("", made.guide)
    said = {line.removeprefix("Request: ").lower() for parts in (prompt.parts, *prompt.rotations, *prompt.nulls)
            for line in "".join(part.text for part in parts).splitlines()}  # fmt: skip
    labelled = itertools.chain(made.cases(), *(more() for more in made.more_cases.values()))
    assert not said & {case.request.lower() for case in labelled if case.request}


@pytest.mark.parametrize("name", ["home", "robot", "scavenger"])
def test_a_guide_explains_every_command_once(name: str) -> None:
    """In declaration order, in words that differ; what it says of one stands nowhere for another."""
    made = importlib.import_module(f"cartridges.{name}").make()
    assert [each.words for each in made.guide] == [words(i, made.opcodes) for i in commands(made.name, made.opcodes)]
    for field in ("phrase", "request"):
        assert len({getattr(each, field) for each in made.guide}) == len(made.guide)


def test_requests_to_several_cartridges_choose_among_all_of_their_commands() -> None:
    """144 to the house, 28 to the scavenger, with 34 options each behind one guide; the answers are as they were."""
    several = [importlib.import_module(f"cartridges.{name}").make() for name in ("scavenger", "home")]
    found = cases_of_all(several)
    apart = [case for cartridge in several for case in cartridge.cases()]
    assert [(c.id, c.request, c.answer, c.split) for c in found] == [
        (c.id, c.request, c.answer, c.split) for c in apart
    ]
    assert Counter(len(c.options) for c in found) == {34: 172}
    assert {c.prompt.parts[0] for c in found} == {asked_of_all("", guide_of(several)).parts[0]}
    with pytest.raises(UsageError, match="'tetris' has no labelled requests"):
        cases_of_all([replace(make_tetris(), cases=lambda: tetris_set("syllables"))])
    with pytest.raises(UsageError, match="' light kitchen on' is a command of 'home' and of 'house'"):
        cases_of_all([make_home(), replace(make_home(), name="house")])


@functools.cache
def tetris_set(opcodes: OpcodeSet) -> list[Case]:
    """Make the states of one opcode set once."""
    return tetris_cases(opcodes)


@pytest.fixture(params=["moves", "syllables"])
def tetris(request: pytest.FixtureRequest) -> list[Case]:
    """Give the states of one opcode set."""
    return tetris_set(request.param)


def test_tetris_states_are_enough_and_the_best_stands_everywhere_equally(tetris: list[Case]) -> None:
    """156 states: 26 in each half with the best option first, second, third."""
    places = Counter((c.split, c.options.index(c.answer)) for c in tetris)
    assert places == {(split, n): 26 for split in ("dev", "test") for n in range(3)}
    assert len({c.id for c in tetris}) == len(tetris) == 156


def test_tetris_prompts_are_distinct_and_mark_the_answer(tetris: list[Case]) -> None:
    """The line of the prompt that says best is the answer's, at the answer's place; the null says it nowhere."""
    if "moves" not in tetris[0].id:
        assert len({c.prompt.parts for c in tetris}) == len(tetris)
    for found in tetris:
        lines = "".join(part.text for part in found.prompt.parts).splitlines()
        assert len(set(found.options)) == 3
        best, other = ("best", "good") if "-moves-" in found.id else ("Best", "Other")
        marks = [f"- {best}:" if option == found.answer else f"- {other}:" for option in found.options]
        head = ["Options:", f"- {other}: none"]
        if other == "Other":  # a question that is answered stands before the list of syllables
            head = [*head, "- Best: ru", "Best move: ru", *head]
        assert lines == [
            *head,
            *(mark + option for mark, option in zip(marks, found.options, strict=True)),
            "Best move:",
        ]
        null = "".join(part.text for part in found.prompt.nulls[0])
        assert null.splitlines() == [*head, *(f"- {other}:{option}" for option in found.options), "Best move:"]


@pytest.mark.slow
def test_tetris_states_are_the_same_each_time() -> None:
    """Two calls give equal cases; of the other opcodes the next test says so."""
    assert tetris_cases("moves") == tetris_set("moves")


def test_the_tetris_cartridge_has_the_states_of_its_own_opcodes() -> None:
    """Placements when it was made for placements, so that `eval` asks what the game would ask; made anew, the same."""
    made = make_tetris()
    assert made.cases is not None
    assert made.cases() == tetris_set("syllables")


STATE_SETS = pytest.mark.parametrize(("name", "other"), [("robot", "okay"), ("scavenger", "good")])


@STATE_SETS
def test_states_of_the_games_list_all_that_is_legal_with_the_best_marked(name: str, other: str) -> None:
    """40 in each half, prompts that differ; the lines are the options in their order, the answer's says best."""
    found = importlib.import_module(f"cartridges.{name}").make().more_cases["states"]()
    assert Counter(c.split for c in found) == {"dev": 40, "test": 40}
    assert len({c.id for c in found}) == len({c.prompt.parts for c in found}) == len(found)
    for each in found:
        lines = "".join(part.text for part in each.prompt.parts).splitlines()
        assert lines[:2] == ["Options:", f"- {other}: none"]
        listed = [line for line in lines[2:] if line.startswith(("- best: ", f"- {other}: "))]
        marks = ["- best:" if option == each.answer else f"- {other}:" for option in each.options]
        assert listed == [mark + option for mark, option in zip(marks, each.options, strict=True)]


def test_states_have_as_many_options_as_the_readmes_say() -> None:
    """The robot 10 to 14, the scavenger 2 to 5; the best stands in the first place no more often than chance has it."""
    for name, least, most in (("robot", 10, 14), ("scavenger", 2, 5)):
        found = importlib.import_module(f"cartridges.{name}").make().more_cases["states"]()
        counts = [len(c.options) for c in found]
        assert (min(counts), max(counts)) == (least, most)
        first, chance = sum(c.options[0] == c.answer for c in found), sum(1 / n for n in counts)
        spread = sum(1 / n * (1 - 1 / n) for n in counts) ** 0.5
        assert abs(first - chance) < 4 * spread


@pytest.mark.parametrize("name", [pytest.param("robot", marks=pytest.mark.slow), "scavenger"])
def test_the_file_of_states_is_what_its_planner_makes(name: str) -> None:
    """The rows made anew are those of the file; those of the scavenger take a second, the robot's ten."""
    module = importlib.import_module(f"cartridges.{name}")
    assert list(made(module.make())) == read(module.STATES, StateRow)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"moves": ["go up"]}, r"case x: 'go up' is not legal in the game of seed 1000"),
        ({"options": ["go south"]}, r"case x: its options or its answer are not what is legal: \['go"),
        ({"answer": "take key"}, r"case x: its options or its answer are not what is legal: \['go"),
    ],
)
def test_a_state_that_the_game_does_not_lead_to_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    """A row of another game, an option too few, an answer that is no option."""
    cartridge = make_scavenger()
    engine = cartridge.engine()
    engine.reset(1000)
    options = [words(instruction, cartridge.opcodes) for instruction in engine.legal()]
    row = {"id": "x", "split": "dev", "seed": 1000, "moves": [], "options": options, "answer": options[0]}
    file = tmp_path / "states.jsonl"
    file.write_text(json.dumps(row) + "\n")
    assert [case.options for case in states(file, cartridge)] == [tuple(f" {text}" for text in options)]
    file.write_text(json.dumps(row | change) + "\n")
    with pytest.raises(CartridgeError, match=said):
        states(file, cartridge)
