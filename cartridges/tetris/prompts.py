"""The prompt of Tetris: the options in an order that follows from the state, with the best one marked."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.kit.phrasing import highest, marked
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import OPCODES
from kernel.contract import Option
from kernel.opcode import words
from kernel.prompt import NOTHING, Part, Prompt


def shuffled(options: Sequence[Option], state_hash: str) -> list[int]:
    """Return the places of the options in an order that follows from the state alone."""
    number = int(state_hash.rpartition(":")[2], 16)
    left, order = list(range(len(options))), []
    while left:
        number, pick = divmod(number, len(left))
        order.append(left.pop(pick))
    return order


def prompt(engine: TetrisEngine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the request, if there is one, and the options in an order that gives nothing away, the best one marked."""
    order = shuffled(options, engine.state_hash())
    best = highest(options)
    asked, nothing = ((Part(f"{text}\n"),) if request else () for text in (request, NOTHING))
    labels = [words(options[n].instruction, OPCODES.values()) for n in order]
    place = order.index(best) if options else -1
    return marked(labels, place, marks=("Best", "Other"), question="Best move:", lead=asked, null_lead=nothing)
