"""The words that a model reads before a decision. Knows no rule, no score beyond the options' own, no screen."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.tetris.engine import TetrisEngine
from kernel.contract import Option, Part, Prompt
from kernel.opcode import Instruction

BLANK = "move"
"""What stands in the null prompt where a mark was."""


def label(instruction: Instruction) -> str:
    """Return an instruction as words: the key, or `column 3 rotation 1`.

    >>> label(Instruction.of("tetris", "place", column=3, rotation=1))
    'column 3 rotation 1'
    """
    args = instruction.args
    return str(args["action"]) if "action" in args else " ".join(f"{name} {value}" for name, value in args.items())


def marks(options: Sequence[Option]) -> list[str]:
    """Return a mark for each option, in the order given: the highest score is best, the lowest bad, between is good."""
    order = sorted(range(len(options)), key=lambda n: -options[n].score)
    found = ["good"] * len(options)
    if len(order) > 1:
        found[order[-1]] = "bad"
    if order:
        found[order[0]] = "best"
    return found


def shuffled(options: Sequence[Option], state_hash: str) -> list[int]:
    """Return the places of the options in an order that follows from the state alone."""
    number = int(state_hash.rpartition(":")[2], 16)
    left, order = list(range(len(options))), []
    while left:
        number, pick = divmod(number, len(left))
        order.append(left.pop(pick))
    return order


def prompt(engine: TetrisEngine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the marked options in shuffled order; the null is the same with the marks blanked."""
    marked, order = marks(options), shuffled(options, engine.state_hash())

    def parts(words: Sequence[str]) -> tuple[Part, ...]:
        lines = "".join(f"- {words[n]}: {label(options[n].instruction)}\n" for n in order)
        head = Part(f"Tetris. Piece {engine.piece}, next {engine.next_piece}.\n", trusted=True)
        asked = (Part(f"{request}\n"),) if request else ()
        return (head, *asked, Part(f"{lines}Best move:", trusted=True))

    return Prompt(parts(marked), (parts([BLANK] * len(options)),))
