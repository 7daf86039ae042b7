"""Asks the person at the terminal: which of two instructions was meant, and whether one shall be carried out."""

from __future__ import annotations

from collections.abc import Sequence

from dispatch.cli.interrupts import Interrupts
from dispatch.cli.output import shown
from kernel.opcode import Instruction

YES = ("y", "yes")


class AtTerminal:
    """The person at the terminal. The end of input is no answer, and Ctrl-C ends the command.

    Args:
        interrupts: of a session, so that one Ctrl-C is enough while it is asked; None where there is none.
    """

    def __init__(self, interrupts: Interrupts | None = None) -> None:
        self._interrupts = interrupts

    def which(self, request: str, options: Sequence[Instruction]) -> int | None:
        """Return the option that is named, by its number or by words that no other option has; None for all else."""
        told = " or ".join(f"{number}. {instruction!r}" for number, instruction in enumerate(options, 1))
        return named(self._answer(f"{told}? Its number or word, or Enter for neither: "), options)

    def agrees(self, request: str, instruction: Instruction) -> bool:
        """Return whether the answer is y or yes."""
        return self._answer(f"{instruction!r}: shall it be done? [y/N] ").strip().lower() in YES

    def _answer(self, question: str) -> str:
        try:
            if self._interrupts is None:
                return input(shown(question))
            with self._interrupts.asking():
                return input(shown(question))
        except EOFError:
            print()
            return ""


def named(answer: str, options: Sequence[Instruction]) -> int | None:
    """Return the place of the only option that an answer names: by its number, or by nothing but words of its own.

    >>> options = [Instruction.of("home", "light", room=room, state="on") for room in ("kitchen", "hall")]
    >>> [named(answer, options) for answer in ("2", "Kitchen", "the hall light", "light", "", "3", "not the hall")]
    [1, 0, 1, None, None, None, None]
    """
    said = {word for word in answer.lower().split() if word != "the"}
    if len(said) == 1 and (number := min(said)).isdecimal():
        return int(number[:9]) - 1 if 0 < int(number[:9]) <= len(options) else None
    found = [at for at, option in enumerate(options) if said and said <= _words(option)]
    return found[0] if len(found) == 1 else None


def _words(instruction: Instruction) -> set[str]:
    values = " ".join(str(value).lower() for value in instruction.args.values())
    return {*instruction.method.lower().replace("-", "_").split("_"), *values.split()}
