"""The form of prompt for what a person asks: a request, alone or behind what the commands mean, and a blank.

Knows no cartridge and no tokenizer. A piece of template text never ends in a space: what follows brings its own,
because whole words and a lone space are cut into different tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernel.errors import UsageError

NOTHING = "N/A"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of prompt text. Only `trusted` template text may hold control tokens; data never does."""

    text: str
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a prompt without an order: each is read alone behind what stands before them, none sees another.

    So a place in the list helps nobody, a line that comes again is not evaluated again, and its null prompt reads the
    same lines. What stands before them decides a lot (docs/choosing.md). A prompt has them once, with something before
    and behind. Only `trusted` ones may hold control tokens.
    """

    texts: tuple[str, ...]
    trusted: bool = False

    @property
    def text(self) -> str:
        """All lines, in the order in which they were given."""
        return "".join(self.texts)


Piece = Part | Lines


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model reads before a decision: runs of text, and between them perhaps lines without an order.

    `nulls` are the same prompt with what decides blanked (the evaluations, the request): they measure how
    much the model likes each opcode for reasons that have nothing to do with this state. `rotations` are the same
    prompt with what it lists in other orders: `calibrated` averages over them, so that a place in a list, first or
    last, helps nobody (2511.21709); each needs its own null beside the others.
    """

    parts: tuple[Piece, ...]
    nulls: tuple[tuple[Piece, ...], ...] = ()
    rotations: tuple[tuple[Piece, ...], ...] = ()


def parted(parts: Sequence[Piece]) -> tuple[tuple[Part, ...], Lines | None, tuple[Part, ...]]:
    """Return what stands before the lines without an order, these lines, and what stands behind; None where none are.

    Raises:
        UsageError: they come twice, or nothing stands before or behind them.
    """
    at = [n for n, part in enumerate(parts) if isinstance(part, Lines)]
    if not at:
        return tuple(part for part in parts if isinstance(part, Part)), None, ()
    before, lines, behind_ = parts[: at[0]], parts[at[0]], parts[at[0] + 1 :]
    if len(at) > 1:
        raise UsageError(f"a prompt has lines without an order {len(at)} times; once, between a lead and a question")
    assert isinstance(lines, Lines), "that is what was looked for"
    for where, texts in (("before", before), ("behind", behind_)):
        if not any(part.text for part in texts):
            raise UsageError(
                f"a prompt has nothing {where} its lines without an order; a lead and a question are needed"
            )
    return tuple(p for p in before if isinstance(p, Part)), lines, tuple(p for p in behind_ if isinstance(p, Part))


@dataclass(frozen=True, slots=True)
class Explained:
    """A command in its own words, in plain words, when one wants it, and a request that it answers.

    `foreign` says that these are not an author's words but data: the description of a tool that a server lists.
    """

    words: str
    phrase: str
    when: str
    request: str
    foreign: bool = False


def asked(request: str) -> Prompt:
    """Return a request and a blank for the command; the null prompt asks for nothing.

    The request is data, on one line: white space in it becomes single spaces.

    >>> "".join(part.text for part in asked("I'm freezing").parts)
    "Request: I'm freezing\\nCommand:"
    """
    return Prompt(behind("", request), (behind("", NOTHING),))


def explained(request: str, guide: tuple[Explained, ...], *, short: bool = False) -> Prompt:
    """Return a request behind what each command means: as a list, as worked examples, and both the other way round.

    The four heads never change, so they are evaluated once; `calibrated` averages over them. A null prompt asks for
    one of the guide's own requests behind one of the heads. There is one for every command, so together they ask for
    nothing in particular, in words that people use here (after the domain-conditional baseline of 2104.08315).

    Args:
        short: two heads for a long guide: the examples from their beginning, the list from its end, so that what is
            near the request in one is far from it in the other. What is written, and rules that read one prompt
            only, see the examples.

    >>> heat = Explained("heater warmer", "make it warmer", "someone is cold", "I'm cold")
    >>> prompt = explained("Brr", (heat,))
    >>> print("".join(part.text for part in prompt.parts))
    Commands:
    - make it warmer: heater warmer
    <BLANKLINE>
    Request: Brr
    Command:
    >>> print("".join(part.text for part in prompt.rotations[1]))
    Request: Make it warmer, someone is cold
    Command: heater warmer
    Request: Brr
    Command:
    >>> "".join(part.text for part in prompt.nulls[0]).splitlines()[-2:]
    ["Request: I'm cold", 'Command:']
    """
    first, *others = [behind(head, request, trusted=_own(guide)) for head in _heads(guide, short)]
    return Prompt(first, _nulls(guide, short), tuple(others))


@lru_cache(16)
def _heads(guide: tuple[Explained, ...], short: bool) -> tuple[str, ...]:
    lists = [f"- {each.phrase}: {each.words}\n" for each in guide]
    examples = [
        f"Request: {each.phrase[0].upper()}{each.phrase[1:]}, {each.when}\nCommand: {each.words}\n" for each in guide
    ]
    listed = [f"Commands:\n{''.join(lines)}\n" for lines in (lists, lists[::-1])]
    if short:
        return "".join(examples), listed[1]
    return (*listed, "".join(examples), "".join(examples[::-1]))


@lru_cache(16)
def _nulls(guide: tuple[Explained, ...], short: bool) -> tuple[tuple[Part, ...], ...]:
    own = _own(guide)
    return tuple(behind(head, each.request, trusted=own) for head in _heads(guide, short) for each in guide)


def _own(guide: tuple[Explained, ...]) -> bool:
    """Return whether all of a guide is an author's."""
    return not any(each.foreign for each in guide)


def behind(head: str, request: str, *, trusted: bool = True) -> tuple[Part, ...]:
    """Return a request behind a head of the template, and a blank: data on one line; a blank one asks for nothing.

    A head that is not trusted holds words from outside.
    """
    said = " ".join(request.split()) or NOTHING
    return Part(f"{head}Request:", trusted=trusted), Part(f" {said}"), Part("\nCommand:", trusted=True)
