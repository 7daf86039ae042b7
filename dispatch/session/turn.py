"""One turn of a session, and the log record that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from dispatch.log.objects import InstructionRecord, Offer
from dispatch.log.records import Confirmed, DecisionRecord
from dispatch.session.players import Choice
from kernel.choose.kinds import Outcome
from kernel.contract import Option
from kernel.opcode import Instruction

if TYPE_CHECKING:
    from kernel.choose.decision import Decision


class Waiting(Protocol):
    """A decision that waits for a program; `settling.Pending` is one."""

    options: tuple[Instruction, ...]

    def take(self, option: int = 0) -> Turn:
        """Carry an option out."""

    def drop(self) -> Turn:
        """Do nothing."""


@dataclass(frozen=True)
class Turn:
    """One decision and what came of it.

    Attributes:
        offered: the planner's options that the prompt showed, best first.
        refused: whether the engine did not take the instruction, or tried it in vain; the state is as it was.
        failed: what failed outside the engine, if something did.
        moved: whether the state of the cartridge's engine is another one than before.
        settled: after the outcome `unsure`, whether a person took one of the two, where one was asked.
        confirmed: what became of an instruction that somebody has to agree to.
        pending: what a program may still decide, where nobody was asked; nothing was done.
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
    failed: str | None = None
    settled: bool | None = None
    confirmed: Confirmed | None = None
    pending: Waiting | None = None

    @property
    def outcome(self) -> Outcome:
        """How the choice ended."""
        return self.choice.outcome

    @property
    def close(self) -> tuple[Instruction, ...]:
        """After the outcome `unsure`, the two between which it is, without the arguments that have to be written."""
        return self.choice.close

    @property
    def held(self) -> bool:
        """Whether nothing was done."""
        if self.outcome is Outcome.CHOSEN:
            return self.confirmed in (Confirmed.DECLINED, Confirmed.UNASKED)
        return not self.settled

    @property
    def decision(self) -> Decision | None:
        """The model's decision, where a model chose."""
        return self.choice.decision


def record(turn: Turn, state: str, seconds: float) -> DecisionRecord:
    """Return what the log keeps of a turn.

    Args:
        state: hash of the cartridge's engine afterwards.
        seconds: since the session began.
    """
    known: dict[str, Any] = {"text": turn.choice.text}
    if turn.choice.elsewhere is not None:
        known = dict(turn.choice.elsewhere.fields)
    elif turn.decision is not None:
        from dispatch.session.chosen import chosen_fields  # the arrays of a decision need numpy; a tab has none

        known = chosen_fields(turn.decision)
    if turn.choice.made:
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
            "failed": turn.failed,
            "request": turn.request or None,
            "settled": turn.settled,
            "confirmed": turn.confirmed,
            "offered": tuple(Offer.of(option) for option in turn.offered) or None,
            "planner_ms": round(turn.planner_ms, 3),
            "at_ms": round(1000 * seconds, 1),
        }
    )
