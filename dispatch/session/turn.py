"""One turn of a session, what the log keeps of it, and the sums over many. Knows no loop and no file."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from dispatch.log.entry import chosen_fields
from dispatch.log.objects import InstructionRecord, Offer
from dispatch.log.records import DecisionRecord
from dispatch.session.players import Choice
from kernel.choose.decision import Decision, Stop
from kernel.contract import Option
from kernel.opcode import Instruction


@dataclass(frozen=True)
class Turn:
    """One decision and what came of it.

    Attributes:
        offered: the planner's options that the prompt showed, best first.
        moved: whether the state of the cartridge's engine is another one than before.
    """

    number: int
    cartridge: str
    instruction: Instruction
    result: str
    refused: bool
    offered: tuple[Option, ...]
    choice: Choice
    planner_ms: float
    request: str = ""
    moved: bool = True

    @property
    def decision(self) -> Decision | None:
        """The model's decision, where a model chose."""
        return self.choice.decision


@dataclass
class Tally:
    """Sums over a session."""

    decisions: int = 0
    agreed: int = 0
    agreed_first: int = 0
    with_offer: int = 0
    passes: int = 0
    tokens_evaluated: int = 0
    chosen_tokens: int = 0
    forced_tokens: int = 0
    legal_mass: float = 0.0
    smallest_legal_mass: float = 1.0
    refused: int = 0
    closed: int = 0
    refused_removals: int = 0
    model_ms: float = 0.0
    planner_ms: float = 0.0
    by_cartridge: dict[str, int] = field(default_factory=dict)
    """Decisions of each cartridge."""

    def add(self, turn: Turn) -> None:
        """Count one decision."""
        offered = [option.instruction for option in turn.offered]
        self._count(turn.cartridge, turn.refused, turn.instruction, offered)
        self.planner_ms += turn.planner_ms
        self.model_ms += turn.choice.model_ms
        if (decision := turn.decision) is not None:
            self._spent(decision)
            self.closed += decision.stop is Stop.CLOSED
            self._mass(decision.legal_mass)

    def recall(self, record: DecisionRecord) -> None:
        """Count one decision that stands in a log, as it was counted when it was made."""
        offered = [offer.instruction.instruction() for offer in record.offered or ()]
        self._count(record.cartridge, record.refused, record.instruction.instruction(), offered)
        self.planner_ms += record.planner_ms or 0.0
        self.model_ms += record.model_ms or 0.0
        if record.passes is not None:
            self._spent(record)
            self.closed += record.stop == Stop.CLOSED
        if record.legal_mass is not None:
            self._mass(record.legal_mass)

    @property
    def totals(self) -> dict[str, int | float]:
        """What the last line of a log tells."""
        told = ("passes", "tokens_evaluated", "agreed", "agreed_first", "with_offer")
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name in told}

    def _count(self, cartridge: str, refused: bool, instruction: Instruction, offered: list[Instruction]) -> None:
        self.decisions += 1
        self.by_cartridge[cartridge] = self.by_cartridge.get(cartridge, 0) + 1
        self.refused += refused
        if offered:
            self.with_offer += 1
            self.agreed += instruction in offered
            self.agreed_first += instruction == offered[0]

    def _spent(self, source: Decision | DecisionRecord) -> None:
        for name in ("passes", "tokens_evaluated", "chosen_tokens", "forced_tokens", "refused_removals"):
            setattr(self, name, getattr(self, name) + (getattr(source, name) or 0))

    def _mass(self, mass: float) -> None:
        self.legal_mass += mass
        self.smallest_legal_mass = min(self.smallest_legal_mass, mass)


def record(turn: Turn, state: str, seconds: float) -> DecisionRecord:
    """Return what the log keeps of a turn.

    Args:
        state: hash of the cartridge's engine afterwards.
        seconds: since the session began.
    """
    known: dict[str, Any] = {"text": turn.choice.text}
    if turn.decision is not None:
        known = chosen_fields(turn.decision)
        known |= {"model_ms": round(turn.choice.model_ms, 3), "ledger": turn.choice.ledger or None}
    return DecisionRecord.model_validate(
        {
            **known,
            "n": turn.number,
            "cartridge": turn.cartridge,
            "instruction": InstructionRecord.of(turn.instruction),
            "state": state,
            "result": turn.result,
            "refused": turn.refused,
            "request": turn.request or None,
            "offered": tuple(Offer.of(option) for option in turn.offered) or None,
            "planner_ms": round(turn.planner_ms, 3),
            "at_ms": round(1000 * seconds, 1),
        }
    )
