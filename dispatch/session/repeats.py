"""Whether a session that nobody watches goes round in circles."""

from __future__ import annotations

from collections import deque

from dispatch.log.checks import REMEMBERED
from dispatch.session.turn import Turn
from kernel.opcode import Instruction


class Repeats:
    """Compares each turn with those before it."""

    def __init__(self) -> None:
        self._results: deque[tuple[Instruction, str]] = deque(maxlen=REMEMBERED)
        self._stayed: Instruction | None = None

    def found(self, turn: Turn, *, acts: bool) -> str:
        """Return what repeats what, or "" where nothing does, and take note of the turn.

        A rule of a game that leaves its state as it was would do so for ever: the same instruction twice is enough.

        Args:
            acts: whether the turn acted outside its engine, whose state then is what was done: there an instruction
                repeats an earlier one when it gave the same result.
        """
        again = ""
        done = (turn.instruction, turn.result)
        if acts and done in self._results:
            again = f"{turn.instruction!r} again, with the same result"
        elif not acts and not turn.moved and self._stayed == turn.instruction:
            again = f"{turn.instruction!r} again on an unchanged state"
        self._stayed = None if turn.moved else turn.instruction
        if acts:
            self._results.append(done)
        return again
