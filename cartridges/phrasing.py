"""The forms of prompt that cartridges share: a request, alone or behind what the commands mean, and marked options.

Knows no cartridge and no tokenizer. A piece of template text never ends in a space: what follows brings its own,
because whole words and a lone space are cut into different tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cartridges.casefile import words
from kernel.contract import Option, Part, Prompt
from kernel.errors import CartridgeError
from kernel.opcode import Instruction

NOTHING = "N/A"


@dataclass(frozen=True, slots=True)
class Explained:
    """A command in its own words, in plain words, when one wants it, and a request that it answers."""

    words: str
    phrase: str
    when: str
    request: str


def asked(request: str) -> Prompt:
    """Return a request and a blank for the command; the null prompt asks for nothing.

    The request is data, on one line: white space in it becomes single spaces.

    >>> "".join(part.text for part in asked("I'm freezing").parts)
    "Request: I'm freezing\\nCommand:"
    """
    return Prompt(behind("", request), (behind("", NOTHING),))


def explanations(commands: Sequence[Instruction], said: Mapping[str, tuple[str, str, str]]) -> tuple[Explained, ...]:
    """Return phrase, occasion and example request of each command, in the order of the commands.

    Raises CartridgeError when a command has none, or one is there that is no command.
    """
    known = [words(command) for command in commands]
    if odd := sorted(set(known) ^ set(said)):
        raise CartridgeError(f"the guide and the commands differ in {odd[0]!r}")
    return tuple(Explained(name, *said[name]) for name in known)


def explained(request: str, guide: tuple[Explained, ...]) -> Prompt:
    """Return a request behind what each command means: as a list, as worked examples, and both the other way round.

    The four heads never change, so they are evaluated once; `calibrated` averages over them. A null prompt asks for
    one of the guide's own requests behind one of the heads. There is one for every command, so together they ask for
    nothing in particular, in words that people use here (after the domain-conditional baseline of 2104.08315).

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
    heads = _heads(guide)
    first, *others = [behind(head, request) for head in heads]
    return Prompt(first, _nulls(guide), tuple(others))


@lru_cache(16)
def _heads(guide: tuple[Explained, ...]) -> tuple[str, ...]:
    lists = [f"- {each.phrase}: {each.words}\n" for each in guide]
    examples = [
        f"Request: {each.phrase[0].upper()}{each.phrase[1:]}, {each.when}\nCommand: {each.words}\n" for each in guide
    ]
    listed = [f"Commands:\n{''.join(lines)}\n" for lines in (lists, lists[::-1])]
    return (*listed, "".join(examples), "".join(examples[::-1]))


@lru_cache(16)
def _nulls(guide: tuple[Explained, ...]) -> tuple[tuple[Part, ...], ...]:
    return tuple(behind(head, each.request) for head in _heads(guide) for each in guide)


def behind(head: str, request: str) -> tuple[Part, ...]:
    """Return a request behind a head of the template, and a blank: data on one line; a blank one asks for nothing."""
    said = " ".join(request.split()) or NOTHING
    return Part(f"{head}Request:", trusted=True), Part(f" {said}"), Part("\nCommand:", trusted=True)


def offered(situation: str, options: Sequence[Option]) -> Prompt:
    """Return the options with the one of the highest score marked, the situation, and a blank; see `marked`.

    >>> stop, hello = Instruction.of("robot", "stop"), Instruction.of("robot", "speak", phrase="hello")
    >>> prompt = offered("The door opens.", [Option(stop, -2), Option(hello, -1)])
    >>> print("".join(part.text for part in prompt.parts))
    - good: stop
    - best: speak hello
    The door opens.
    Best move:
    >>> print("".join(part.text for part in prompt.rotations[0]))
    - best: speak hello
    - good: stop
    The door opens.
    Best move:
    """
    labels = [words(option.instruction) for option in options]
    return marked(labels, highest(options), marks=("best", "good"), question=f"{situation}\nBest move:")


def highest(options: Sequence[Option]) -> int:
    """Return the place of the option with the highest score, of equal ones the first; -1 when there is none."""
    return max(range(len(options)), key=lambda n: options[n].score, default=-1)


def marked(
    labels: Sequence[str],
    best: int,
    *,
    marks: tuple[str, str],
    question: str,
    lead: tuple[Part, ...] = (),
    null_lead: tuple[Part, ...] = (),
) -> Prompt:
    """Return options a line each, one of them marked as the best, and a blank for it: in this order, and rotated.

    In the null prompts none is the best, so what is left is the mark. A label has to be said exactly as its opcode is:
    a small model ratifies by copying, and it copies tokens.

    Args:
        best: place of the marked one in `labels`, or -1.
        marks: of the best one, and of every other.
        lead: what stands before the list; `null_lead` stands there in the null prompts.
    """
    orders = [[*range(n, len(labels)), *range(n)] for n in range(len(labels))] or [[]]

    def parts(before: tuple[Part, ...], order: Sequence[int], best: int) -> tuple[Part, ...]:
        lines = "".join(f"- {marks[n != best]}: {labels[n]}\n" for n in order)
        return (*before, Part(f"{lines}{question}", trusted=True))

    return Prompt(
        parts(lead, orders[0], best),
        tuple(parts(null_lead, order, -1) for order in orders),
        tuple(parts(lead, order, best) for order in orders[1:]),
    )
