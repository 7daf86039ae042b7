"""Choices of decisions that are held back: what would have been done, and the two between which a model is unsure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Protocol

from dispatch.session.players import Choice
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome
from kernel.choose.verdict import instead
from kernel.opcode import Instruction


class Reads(Protocol):
    """What turns decisions into instructions; `ModelPlayer` does."""

    def named(self, index: int) -> Instruction:
        """Return the instruction at a place in the opcodes, without the arguments that have to be written."""

    def written(self, decision: Decision, number: int, request: str) -> Choice:
        """Return the instruction of a decision, arguments included."""


def unsettled(player: Reads, decision: Decision, number: int, request: str) -> Choice:
    """Return the choice of a decision in which nothing was chosen; no argument is written.

    Args:
        number: of the decision.
        request: that it answers.
    """
    choice = Choice(player.named(decision.index), decision.text, decision)
    if decision.outcome is not Outcome.UNSURE:
        return choice
    close = tuple(player.named(int(decision.leaves[place])) for place in decision.best_two)
    return replace(choice, close=close, take=partial(_take, player, decision, number, request, close))


def _take(
    player: Reads, decision: Decision, number: int, request: str, close: tuple[Instruction, ...], option: int
) -> Choice:
    return replace(player.written(instead(decision, decision.best_two[option]), number, request), close=close)
