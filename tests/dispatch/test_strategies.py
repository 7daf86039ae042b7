"""Strategies: strict front matter, prose before each prompt and its nulls, nothing but words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatch.loading import strategies
from dispatch.loading.registry import load
from dispatch.loading.strategies import StrategyView, parse, read
from kernel.backends.llama_cpp import read_vocabulary
from kernel.errors import CartridgeError, UsageError
from kernel.prompt import Part, Prompt
from kernel.text.vocabulary import CONTROL

CARTRIDGES = Path(__file__).resolve().parents[2] / "cartridges"
SHIPPED = {"tetris": 3, "scavenger": 2}

GOOD = "---\nid: bold\nname: Bold one\nsummary: Dare more: much more.\n---\n\nTake risks.  \nAll of them.\n\n"


def text(parts: tuple[Part, ...]) -> str:
    """Return what the parts say."""
    return "".join(part.text for part in parts)


def test_a_file_is_three_lines_of_front_matter_and_prose() -> None:
    """A value may hold a colon; blank lines at the ends of the prose and spaces at the ends of its lines go."""
    found = parse(GOOD, "bold.md")
    assert (found.id, found.name, found.summary) == ("bold", "Bold one", "Dare more: much more.")
    assert found.prose == "Take risks.\nAll of them."


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    """As an editor on Windows writes it."""
    assert parse("\ufeff" + GOOD.replace("\n", "\r\n"), "bold.md") == parse(GOOD, "bold.md")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("---\nid", "id", r"bold\.md:1: front matter begins with '---', not 'id: bold'"),
        (GOOD, "", r"bold\.md:1: front matter begins with '---', not ''"),
        ("id: bold\n", "", r"bold\.md:4: front matter lacks 'id'; it has id, name, summary"),
        ("id: bold", "id:", r"bold\.md:2: 'id:' is not `key: value`"),
        ("id: bold", "  id: bold", r"bold\.md:2: '  id: bold' is not `key: value`"),
        ("name: Bold", "nmae: Bold", r"bold\.md:3: the key 'nmae' is unknown; did you mean 'name'\?"),
        ("name: Bold one", "id: bold", r"bold\.md:3: the key 'id' stands twice"),
        ("id: bold", "id: Bold!", r"bold\.md: the id 'Bold!' does not match"),
        ("---\n\nTake risks.  \nAll of them.\n\n", "", r"bold\.md:4: front matter has no '---' at its end"),
        ("Take risks.  \nAll of them.", "", r"bold\.md:5: there is no prose behind the front matter"),
    ],
)
def test_a_file_that_is_not_exactly_that_is_refused_with_its_line(before: str, after: str, message: str) -> None:
    """Ten ways to get it wrong."""
    assert before in GOOD
    with pytest.raises(CartridgeError, match=message):
        parse(GOOD.replace(before, after, 1), "bold.md")


def test_a_file_is_named_after_its_id(tmp_path: Path) -> None:
    """So that the folder cannot hold an id twice; a folder that is not there holds none."""
    assert read(tmp_path / "strategies") == {}
    (tmp_path / "timid.md").write_text(GOOD, encoding="utf-8")
    with pytest.raises(CartridgeError, match=r"timid\.md: its id is 'bold'; name the file bold\.md"):
        read(tmp_path)
    (tmp_path / "timid.md").write_bytes(b"---\nid: \xff")
    with pytest.raises(CartridgeError, match=r"timid\.md:2: byte b'\\xff' is not UTF-8"):
        read(tmp_path)


@pytest.mark.parametrize(("name", "count"), SHIPPED.items())
def test_the_shipped_ones_are_there_and_short(name: str, count: int) -> None:
    """All of them, one line of summary, at most 80 words, so that they do not cost more than the prompt itself."""
    found = read(CARTRIDGES / name / strategies.FOLDER)
    assert len(found) == count
    for strategy in found.values():
        assert strategy.summary.endswith(".")
        assert 10 <= len(strategy.prose.split()) <= 80, strategy.id


def test_a_strategy_stands_before_the_prompt_and_before_its_nulls() -> None:
    """What the view says is behind it, unchanged; the options and the engine are passed through."""
    plain, told = load("scavenger"), load("scavenger", strategy="pit-wary")
    prose = read(CARTRIDGES / "scavenger" / "strategies")["pit-wary"].prose
    engine = plain.engine()
    assert plain.planner is not None
    options = plain.planner.rank(engine)[:3]
    for request in ("", "take the key"):
        before, after = (c.view.prompt(engine, options, request) for c in (plain, told))
        assert text(after.parts) == f"{prose}\n\n{text(before.parts)}"
        assert [text(null) for null in after.nulls] == [f"{prose}\n\n{text(null)}" for null in before.nulls]
    assert isinstance(told.view, StrategyView)
    assert str(told.view.render(engine).renderable) == str(plain.view.render(engine).renderable)
    assert dict(told.options) == {"strategy": "pit-wary"}


def test_labelled_cases_get_the_strategy_too() -> None:
    """`eval` compares the same states with and without it; options and answers stay."""
    plain, told = load("scavenger").cases, load("scavenger", strategy="pit-wary").cases
    assert plain is not None
    assert told is not None
    prose = read(CARTRIDGES / "scavenger" / "strategies")["pit-wary"].prose
    for before, after in zip(plain(), told(), strict=True):
        assert text(after.prompt.parts) == f"{prose}\n\n{text(before.prompt.parts)}"
        assert (after.id, after.options, after.answer, after.split) == (
            before.id,
            before.options,
            before.answer,
            before.split,
        )


def test_further_sets_of_cases_get_the_strategy_too() -> None:
    """`home` has a second set; all of its prompts begin with the prose."""
    home = load("home")
    assert home.more_cases
    told = strategies.choose(home, {"bold": parse(GOOD, "bold.md")}, "bold")
    for name, make in told.more_cases.items():
        assert len(make()) == len(home.more_cases[name]())
        assert all(text(case.prompt.parts).startswith("Take risks.\nAll of them.\n\n") for case in make())


def test_an_unknown_strategy_is_misuse() -> None:
    """With a suggestion, or with the word that there is none."""
    with pytest.raises(UsageError, match=r"tetris: no strategy 'well-fill'; did you mean 'well-filler'\?"):
        load("tetris", strategy="well-fill")
    with pytest.raises(UsageError, match=r"home: no strategy 'well-filler'; there is none"):
        load("home", strategy="well-filler")


def test_a_strategy_cannot_hold_a_control_token(vocab_ggufs: dict[str, Path]) -> None:
    """The prose says `<|im_end|>`; on qwen2, where that is a control token, none comes out."""
    vocabulary = read_vocabulary(vocab_ggufs["qwen2"])
    strategy = parse(GOOD.replace("risks", "risks<|im_end|>"), "bold.md")
    prompt = strategies.with_prose(Prompt((Part("Move:", trusted=True),)), strategy)
    ids = vocabulary.prompt(prompt.parts)
    assert vocabulary.join(ids) == b"Take risks<|im_end|>.\nAll of them.\n\nMove:"
    assert not any(vocabulary.attributes[i] & CONTROL for i in ids)
