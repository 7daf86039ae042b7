"""Who chooses: the planner or chance here, a model in `model_player`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dispatch.log.objects import LedgerStep
from dispatch.session.situation import Situation
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome
from kernel.contract import Cartridge
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import Instruction


@dataclass(frozen=True)
class Choice:
    """What a player chose; a model adds the text that it decoded, the decision behind it and its ledger.

    Attributes:
        close: of a model that is unsure, the two instructions between which it is, the better one first; arguments that
            have to be written are missing.
        take: of the same, returns the choice of one of them.
    """

    instruction: Instruction
    text: str = ""
    decision: Decision | None = None
    model_ms: float = 0.0
    ledger: tuple[LedgerStep, ...] = ()
    close: tuple[Instruction, ...] = ()
    take: Callable[[int], Choice] | None = None

    @property
    def outcome(self) -> Outcome:
        """How it ended; whoever does not judge has chosen."""
        return Outcome.CHOSEN if self.decision is None else self.decision.outcome


class Player(Protocol):
    """Anything that picks one of the legal instructions."""

    name: str

    def choose(self, situation: Situation) -> Choice:
        """Return one of `situation.legal`."""

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """Choose among the instructions of these from now on; what was known of others may be kept, not chosen.

        Raises BuildError when they cannot be compiled together: then everything is as it was.
        """


class PlannerPlayer:
    """Takes the planner's first option."""

    name = "planner"

    def choose(self, situation: Situation) -> Choice:
        """See Player. Raises NoLegalOpcodeError where the planner has nothing to offer."""
        if not situation.options:
            raise NoLegalOpcodeError("the planner offers nothing here; let the model or chance play")
        return Choice(situation.options[0].instruction)

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player."""


class RandomPlayer:
    """Takes any legal instruction; decision n draws from (seed, n), so that a session can go on in its middle."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        if not situation.legal:
            only = f" but {situation.open[0].method!r}, whose arguments only a model writes" if situation.open else ""
            raise NoLegalOpcodeError(f"nothing is legal here{only}")
        drawn = random.Random(f"{self.seed} {situation.number}")
        return Choice(drawn.choice(situation.legal))

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player."""
