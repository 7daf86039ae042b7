"""Takes what a person says was wrong with a decision: checks what would have been right, and logs it."""

from __future__ import annotations

from collections.abc import Iterable

from dispatch.log.objects import InstructionRecord
from dispatch.log.outcomes import NONE
from dispatch.log.records import Corrected
from kernel.contract import Cartridge
from kernel.errors import KernelError, UsageError, did_you_mean
from kernel.opcode import HALT, HALT_INSTRUCTION, Halt, Instruction, words
from kernel.opcode.spelling import read_words

MOST = 100
"""Corrections between two decisions: nobody needs so many, and a log takes no more than some thousands."""


class Corrections:
    """What a person says of the last answer.

    Args:
        asked: whether a request was answered.
    """

    def __init__(self, *, asked: bool) -> None:
        self._asked = asked
        self._count = 0

    def take(self, right: str, decision: int, cartridges: Iterable[Cartridge]) -> Corrected:
        """Return the log's line; see `corrected` for the arguments.

        Raises:
            UsageError: no request was answered, words of no command, too many corrections.
        """
        if not self._asked:
            raise UsageError("no request was answered yet, so nothing can be wrong with it")
        if self._count == MOST:
            raise UsageError(f"{MOST} corrections of one decision are enough")
        said = corrected(right, decision, cartridges)
        self._count += 1
        return said


def corrected(text: str, decision: int, cartridges: Iterable[Cartridge]) -> Corrected:
    """Return the log's line for a decision that was wrong.

    Args:
        text: what would have been right: the words of a command, `none` where nothing was to be done, or nothing said.
        decision: its number, and the number of the decisions so far.
        cartridges: those that take part.

    Raises:
        UsageError: words of no command, or of several cartridges.
    """
    said = " ".join(text.split())
    if said in ("", NONE):
        return Corrected(n=decision, decision=decision, answer=said or None)
    instruction, answer = _read(said, list(cartridges))
    return Corrected(n=decision, decision=decision, answer=answer, instruction=InstructionRecord.of(instruction))


def _read(said: str, cartridges: list[Cartridge]) -> tuple[Instruction, str]:
    """Return the instruction of some words, and its words as they are usually said."""
    found: dict[Instruction, str] = {}
    for cartridge in cartridges:
        if said == HALT and any(issubclass(opcode, Halt) for opcode in cartridge.opcodes):
            return HALT_INSTRUCTION, HALT
        for opcode in cartridge.opcodes:
            try:
                instruction = opcode.from_arguments(read_words(said, opcode)).instruction(cartridge.name)
                found[instruction] = words(instruction, cartridge.opcodes)
            except (KernelError, ValueError):
                continue
    if len(found) > 1:
        raise UsageError(f"{said!r} is a command of {' and of '.join(sorted(each.cartridge for each in found))}")
    if not found:
        methods = {opcode.method for cartridge in cartridges for opcode in cartridge.opcodes}
        hint = did_you_mean(said.split(" ")[0], methods)
        raise UsageError(f"{said!r} is no command{hint}; say its words, or {NONE!r} where nothing was to be done")
    return next(iter(found.items()))
