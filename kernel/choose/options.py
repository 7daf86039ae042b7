"""The texts that somebody only wants a choice among, as literals; errors speak of options, as they were given."""

from __future__ import annotations

from collections.abc import Sequence

from kernel.errors import BuildError, UsageError
from kernel.prompt import Lines, Part, Piece, Prompt
from kernel.trie.opcodes import Literal

LEAD = Part("Options:\n- none\n", trusted=True)
"""What stands before options that are shown as a set: a list that has begun (docs/choosing.md)."""


def option_literals(prompt: str, options: Sequence[str]) -> list[Literal]:
    """Return a literal for each option; a space stands before it where neither it nor the prompt brings one.

    Raises:
        UsageError: no list, or none of texts.
        BuildError: an empty option, or two that are one.

    >>> [literal.body for literal in option_literals("Do:", ["this", " that"])]
    [' this', ' that']
    """
    if isinstance(options, str) or not options:
        raise UsageError(f"options={options!r} are no options to choose among; give a list of at least one")
    all_texts("prompt", [prompt])
    all_texts("option", options)
    spaced = bool(prompt) and not prompt[-1].isspace()
    found: dict[str, Literal] = {}
    for option in options:
        if not option:
            raise BuildError("an option cannot be the empty string")
        literal = Literal(f" {option}" if spaced and not option[0].isspace() else option, label=option)
        first = found.setdefault(literal.body, literal)
        if first is not literal:
            same = f"and {first.label!r} are one" if first.label != option else "is given twice"
            raise BuildError(f"option {option!r} {same}; leave one out")
    return list(found.values())


def asked(prompt: str, null: Sequence[str] | str, literals: Sequence[Literal] = ()) -> Prompt:
    """Return a prompt and its null prompts, behind the options as a set where some are given; they all read one set.

    The prompts are trusted template text, the options are data. Raises UsageError for a null that is no text.

    >>> print("".join(part.text for part in asked("Do:", [], option_literals("Do:", ["this", "that"])).parts))
    Options:
    - none
    - this
    - that
    Do:
    """
    nulls = [null] if isinstance(null, str) else list(null)
    all_texts("null", nulls)
    lines = Lines(tuple(f"- {str(literal.body).strip()}\n" for literal in literals))
    before: tuple[Piece, ...] = (LEAD, lines) if literals else ()
    return Prompt((*before, Part(prompt, trusted=True)), tuple((*before, Part(each, trusted=True)) for each in nulls))


def all_texts(what: str, texts: Sequence[str]) -> None:
    """Raise UsageError for the first that is no text."""
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"{what} {text!r} is no text")
