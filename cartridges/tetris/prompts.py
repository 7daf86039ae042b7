"""The words that a model reads before a decision. Knows no rule, no score beyond the options' own, no screen.

A line is a mark and an option, said exactly as the opcode is: a small model ratifies by copying what stood behind the
same mark, so option and opcode must be the same tokens, and what tells options apart must come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import OPCODES
from kernel.contract import Option, Part, Prompt
from kernel.opcode import Instruction

PHRASES = {opcode.method: opcode.wire_phrase for opcode in OPCODES.values()}

BEST, OTHER = "best:", "other:"
BLANK = "some:"
"""What stands in the null prompt where a mark was."""


def label(instruction: Instruction) -> str:
    """Return an instruction as the compact wire form says it: the key, or column and rotation.

    >>> label(Instruction.of("tetris", "place", column=3, rotation=1))
    '3-1'
    """
    return PHRASES[instruction.method].format(**instruction.args)


def marks(options: Sequence[Option]) -> list[str]:
    """Return a mark for each option, in the order given; of equal scores the first is best."""
    top = max(range(len(options)), key=lambda n: options[n].score, default=-1)
    return [BEST if n == top else OTHER for n in range(len(options))]


def shuffled(options: Sequence[Option], state_hash: str) -> list[int]:
    """Return the places of the options in an order that follows from the state alone."""
    number = int(state_hash.rpartition(":")[2], 16)
    left, order = list(range(len(options))), []
    while left:
        number, pick = divmod(number, len(left))
        order.append(left.pop(pick))
    return order


def prompt(engine: TetrisEngine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the marked options in shuffled order, and rotated; the nulls have the marks and the request blanked."""
    marked, shown = marks(options), shuffled(options, engine.state_hash())
    orders = [shown[n:] + shown[:n] for n in range(len(shown))] or [shown]

    def parts(words: Sequence[str], said: str, order: Sequence[int]) -> tuple[Part, ...]:
        lines = "".join(f"{words[n]} {label(options[n].instruction)}\n" for n in order)
        asked = (Part(f"{said}\n"),) if request else ()
        return (*asked, Part(f"{lines}{BEST}", trusted=True))

    blank = [BLANK] * len(options)
    return Prompt(
        parts(marked, request, orders[0]),
        tuple(parts(blank, "N/A", order) for order in orders),
        tuple(parts(marked, request, order) for order in orders[1:]),
    )
