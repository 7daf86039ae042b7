"""One turn of a session, and the log record that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dispatch.log.objects import InstructionRecord, LegalRow, Offer
from dispatch.log.records import Confirmed, DecisionRecord
from dispatch.log.scores import MOST
from dispatch.session.players import Choice
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome
from kernel.contract import Option
from kernel.opcode import Instruction

LINES = ("line_hits", "line_misses", "tokens_saved")
"""What a decision among lines without an order knows of the line store."""
DIGITS = 6
"""Decimals of a log-probability: far below what two batch shapes differ by."""


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
            "failed": turn.failed,
            "request": turn.request or None,
            "settled": turn.settled,
            "confirmed": turn.confirmed,
            "offered": tuple(Offer.of(option) for option in turn.offered) or None,
            "planner_ms": round(turn.planner_ms, 3),
            "at_ms": round(1000 * seconds, 1),
        }
    )


def chosen_fields(decision: Decision, *, most: int = MOST) -> dict[str, Any]:
    """Return the fields of a DecisionRecord that the kernel's decision knows.

    Args:
        decision: what the rule chose.
        most: largest number of legal rows; the choice is always among them.
    """
    order = np.arange(len(decision.leaves))
    if len(order) > most:
        best = np.argsort(-np.nan_to_num(decision.scores, nan=-np.inf), kind="stable")[:most]
        if decision.position not in best:
            best[-1] = decision.position
        order = np.sort(best)
    columns = {"logprob": decision.raw, "null": decision.null, "score": decision.scores, "probability": decision.shares}
    numbers = {name: np.round(values[order], DIGITS).tolist() for name, values in columns.items() if values is not None}
    labels = decision.opcodes.labels
    rows = tuple(
        LegalRow(text=labels[leaf], **{name: values[at] for name, values in numbers.items()})
        for at, leaf in enumerate(decision.leaves[order].tolist())
    )
    return {
        "text": decision.text,
        "ids": decision.ids,
        "rule": decision.rule,
        "legal": rows,
        "legal_count": len(decision.leaves),
        "chosen": int(np.flatnonzero(order == decision.position)[0]),
        "margin": round(decision.margin, DIGITS),
        "legal_mass": round(decision.legal_mass, DIGITS),
        "passes": decision.passes,
        "tokens_evaluated": decision.tokens_evaluated,
        **({name: getattr(decision, name) for name in LINES} if decision.line_hits or decision.line_misses else {}),
        "chosen_tokens": decision.chosen_tokens,
        "forced_tokens": decision.forced_tokens,
        "outcome": None if decision.outcome is Outcome.CHOSEN else decision.outcome,
        "close": decision.close or None,
        "preferred": decision.preferred_text,
        "preferred_by": None if decision.preferred is None else round(decision.preferred_by, DIGITS),
        "refused_removals": decision.refused_removals or None,
        "stop": decision.stop.value,
    }
