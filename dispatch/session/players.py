"""Who chooses: the planner or chance here, a model in `model_player`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dispatch.log.objects import LedgerStep
from dispatch.session.situation import Situation
from kernel.choose.kinds import Outcome
from kernel.contract import Cartridge
from kernel.errors import NoLegalOpcodeError
from kernel.memory.listed import Prompted
from kernel.opcode import Instruction

if TYPE_CHECKING:
    from kernel.choose.decision import Decision

PLAYERS = ("model", "planner", "random")
"""Those that a person may name."""


@dataclass(frozen=True)
class Elsewhere:
    """A decision that another kernel made, such as that of a browser's tab, as the log keeps it.

    Attributes:
        fields: of the log's line, those that `chosen_fields` gives of a decision made here.
        prompt, nulls, rotations: ids that the model read.
    """

    fields: Mapping[str, Any]
    prompt: Prompted
    nulls: tuple[Prompted, ...] = ()
    rotations: tuple[Prompted, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What a player chose; a model adds the text that it decoded, the decision behind it and its ledger.

    Attributes:
        close: of a model that is unsure, the two instructions between which it is, the better one first; arguments that
            have to be written are missing.
        take: of the same, returns the choice of one of them.
        elsewhere: in place of `decision`, where another kernel chose.
    """

    instruction: Instruction
    text: str = ""
    decision: Decision | None = None
    model_ms: float = 0.0
    ledger: tuple[LedgerStep, ...] = ()
    close: tuple[Instruction, ...] = ()
    take: Callable[[int], Choice] | None = None
    elsewhere: Elsewhere | None = None

    @property
    def made(self) -> Decision | Elsewhere | None:
        """The decision behind it, wherever it was made; None where no model chose."""
        return self.elsewhere or self.decision

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

    def prepare(self, situation: Situation) -> None:
        """Read what stays the same from decision to decision, so that the first one is quick."""


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

    def prepare(self, situation: Situation) -> None:
        """See Player; there is nothing to read."""


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

    def prepare(self, situation: Situation) -> None:
        """See Player; there is nothing to read."""


def unaided(name: str, seed: int) -> Player | None:
    """Return the player of that name if it needs no model, else None."""
    players: tuple[Player, ...] = (PlannerPlayer(), RandomPlayer(seed))
    return next((player for player in players if player.name == name), None)
