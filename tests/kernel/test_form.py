"""Forms of options that are shown as a set: what they write, and how one becomes another."""

from __future__ import annotations

import pytest

from kernel.errors import UsageError
from kernel.form import FORM, FORMS, Form
from kernel.prompt import Lines, Part, Prompt

ASK = (Part("The door is open.\n"), Part("Best move:", trusted=True))


def text(parts: object) -> str:
    assert isinstance(parts, tuple)
    return "".join(part.text for part in parts)


def test_the_null_prompt_reads_the_same_lines_with_none_marked() -> None:
    """All but the best one's line are those of the prompt, so they are read once."""
    prompt = FORM.prompt(["stop", "go", "turn"], 1, ASK)
    shown, blank = prompt.parts[1], prompt.nulls[0][1]
    assert isinstance(shown, Lines)
    assert isinstance(blank, Lines)
    assert set(shown.texts) - set(blank.texts) == {"- best: go\n"}
    assert set(blank.texts) - set(shown.texts) == {"- good: go\n"}
    assert (prompt.parts[0], prompt.parts[2:]) == (prompt.nulls[0][0], prompt.nulls[0][2:])


def test_no_option_is_only_the_question() -> None:
    """There is no list to begin."""
    assert FORM.prompt([], -1, ASK).parts == ASK


@pytest.mark.parametrize("form", FORMS)
def test_a_prompt_becomes_any_form_and_comes_back(form: Form) -> None:
    """An option that another one ends in is told apart; what stands before the lead stays."""
    options = (" go", " let go", " turn")
    whole = FORM.prompt(["go", "let go", "turn"], 1, ASK)
    before = Part("Play well.\n\n")
    prompt = Prompt((before, *whole.parts), tuple((before, *null) for null in whole.nulls))
    made = form.of(prompt, options)
    assert text(made.parts).startswith(f"Play well.\n\n{form.head.text}- {form.other}: go\n- {form.best}: let go\n")
    assert text(made.parts).endswith("The door is open.\nBest move:")
    assert FORM.of(made, options) == prompt


def test_a_prompt_that_shows_no_set_stays() -> None:
    """So does one whose lines end in no option."""
    plain = Prompt((Part("Say:"),), ((Part("N/A:"),),))
    assert FORM.of(plain, (" go",)) is plain
    other = FORM.prompt(["stop"], 0, ASK)
    assert FORM.of(other, (" go",)) is other


def test_marks_that_are_the_same_are_no_form() -> None:
    """Then nothing would be marked."""
    with pytest.raises(UsageError, match="two marks that differ"):
        Form("Options:\n", "best", "best")
