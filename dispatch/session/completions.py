"""Labelled completions for `eval choose`: short prompts, each with wrong options that are tempting by their surface.

`completions.md` describes the set. Nothing may be tuned on its `test` split.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from kernel.casefile import Row, read
from kernel.contract import Case
from kernel.errors import CartridgeError
from kernel.prompt import Part, Prompt

FILE = Path(__file__).with_name("completions.jsonl")


class Completion(Row):
    """A prompt, the same prompt without its content, and three to five ways to go on."""

    kind: str
    prompt: str
    null: str
    options: list[str] = Field(min_length=3, max_length=5)
    answer: str


def cases() -> list[Case]:
    """Return the cases in file order; each option begins with a space and follows the prompt as it is.

    An option may begin another one (` water`, ` watermelon`), so a rule must say what it does about that.
    Raises CartridgeError when an answer is not among its options.
    """
    found = []
    for row in read(FILE, Completion):
        if row.answer not in row.options:
            raise CartridgeError(f"case {row.id}: the answer {row.answer!r} is not one of {row.options!r}")
        prompt = Prompt((Part(row.prompt),), ((Part(row.null),),))
        found.append(Case(row.id, prompt, tuple(row.options), row.answer, row.split))
    return found
