"""Prompt forms for cartridges: a guide of commands, and a list of options of which the best is marked.

A piece of template text never ends in a space. The text behind it begins with one, because a tokenizer cuts a word with
its space and a lone space differently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kernel.contract import Option
from kernel.errors import CartridgeError
from kernel.form import FORM, Form
from kernel.opcode import Instruction, Opcode, words
from kernel.prompt import Explained, Part, Prompt


def explanations(
    commands: Sequence[Instruction], opcodes: Collection[type[Opcode]], said: Mapping[str, tuple[str, str, str]]
) -> tuple[Explained, ...]:
    """Return phrase, occasion and example request of each command, in the order of the commands.

    Args:
        opcodes: those of the commands.
        said: phrase, occasion and request by the words of a command.
    Raises:
        CartridgeError: a command has none, or one is there that is no command.
    """
    known = [words(command, opcodes) for command in commands]
    if odd := sorted(set(known) ^ set(said)):
        raise CartridgeError(f"the guide and the commands differ in {odd[0]!r}")
    return tuple(Explained(name, *said[name]) for name in known)


def offered(
    situation: str,
    options: Sequence[Option],
    opcodes: Collection[type[Opcode]],
    form: Form = FORM,
    more: Sequence[Form] = (),
) -> Prompt:
    """Return the options as a set, the one of the highest score marked, then the situation, and a blank; see `marked`.

    >>> phrase = {"enum": ["hello", "good bye"]}
    >>> Speak = Opcode.from_json_schema("speak", {"properties": {"phrase": phrase}, "required": ["phrase"]})
    >>> bye, hello = (Instruction.of("robot", "speak", phrase=said) for said in ("good bye", "hello"))
    >>> prompt = offered("The door opens.", [Option(bye, -2), Option(hello, -1)], [Speak])
    >>> print("".join(part.text for part in prompt.parts))
    Options:
    - good: none
    - good: speak "good bye"
    - best: speak hello
    The door opens.
    Best move:
    """
    labels = [words(option.instruction, opcodes) for option in options]
    return marked(labels, highest(options), question=f"{situation}\nBest move:", form=form, more=more)


def highest(options: Sequence[Option]) -> int:
    """Return the place of the option with the highest score, of equal ones the first; -1 when there is none."""
    return max(range(len(options)), key=lambda n: options[n].score, default=-1)


def marked(
    labels: Sequence[str],
    best: int,
    *,
    question: str,
    asked: tuple[tuple[Part, ...], tuple[Part, ...]] = ((), ()),
    form: Form = FORM,
    more: Sequence[Form] = (),
) -> Prompt:
    """Return options as lines without an order, one of them marked as the best, and a blank for it.

    In the null prompt none is the best, so what is left is the mark. A label has to be said exactly as its opcode is: a
    small model ratifies by copying, and it copies tokens.

    Args:
        best: place of the marked one in `labels`, or -1.
        question: stands behind the lines and asks for the best one.
        asked: what stands between the lines and the question, in the prompt and in the null prompt.
        form: lead and marks; `eval --forms` finds what a model understands.
        more: further forms in which the same is asked in the same pass; `calibrated` averages over them, as models
            differ in the marks that they understand.

    >>> prompt = marked(["stop", "go"], 1, question="Best move:", more=[replace(FORM, other="poor")])
    >>> [parts[1].texts for parts in (prompt.parts, *prompt.rotations)]
    [('- good: stop\\n', '- best: go\\n'), ('- poor: stop\\n', '- best: go\\n')]
    >>> [parts[1].texts for parts in prompt.nulls]
    [('- good: stop\\n', '- good: go\\n'), ('- poor: stop\\n', '- poor: go\\n')]
    """
    blank = Part(question, trusted=True)
    first, *others = [each.prompt(labels, best, (*asked[0], blank)) for each in (form, *more)]
    nulls = [null for each in (form, *more) for null in each.prompt(labels, -1, (*asked[1], blank)).nulls]
    return replace(first, nulls=tuple(nulls), rotations=tuple(other.parts for other in others))
