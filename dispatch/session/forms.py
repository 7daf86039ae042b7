"""Tries forms of the options on labelled states, so that lead and marks are found and not guessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from dispatch.session.evaluate import evaluate
from kernel.api import Kernel
from kernel.choose.rule import Rule
from kernel.contract import Case
from kernel.errors import UsageError
from kernel.form import FORM, FORMS


class FormResult(BaseModel):
    """What one form did on one split of one set of cases with one model, under the rule `calibrated`."""

    model_config = ConfigDict(frozen=True)

    model: str
    set: str
    split: str
    lead: str
    best: str
    other: str
    kept: bool
    """Whether it is the form of our own cartridges."""
    cases: int
    correct: int
    accuracy: float
    chance: float
    tokens: float
    """Mean tokens evaluated a decision."""


def try_forms(
    kernel: Kernel,
    cases: Sequence[Case],
    *,
    model: str,
    name: str,
    split: str = "dev",
    most: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[FormResult]:
    """Decide the cases of a split in every form; the form with the most right answers comes first.

    Args:
        most: so many of the cases at most; 0 is all.

    Raises:
        UsageError: no case of the split shows its options as lines without an order.
    """
    chosen = [case for case in cases if split in ("all", case.split)]
    chosen = chosen[:most] if most else chosen
    made = {
        form: [replace(c, prompt=form.of(c.prompt, c.options)) for c in chosen]
        for form in dict.fromkeys((FORM, *FORMS))
    }
    if len({case.prompt for cases_of in made.values() for case in cases_of}) <= len({case.prompt for case in chosen}):
        raise UsageError(f"{name}: no prompt shows options as lines without an order, one of them marked as the best")
    found = []
    for number, (form, several) in enumerate(made.items()):

        def told(done: int, total: int, before: int = number) -> None:
            progress(before * total + done, len(made) * total)

        result = evaluate(kernel, several, Rule(), model=model, name=name, split="all", progress=told)
        found.append(
            FormResult(
                model=model,
                set=name,
                split=split,
                lead=form.lead,
                best=form.best,
                other=form.other,
                kept=form == FORM,
                cases=result.cases,
                correct=result.correct,
                accuracy=result.accuracy,
                chance=result.chance,
                tokens=result.tokens,
            )
        )
    return sorted(found, key=lambda row: -row.correct)
