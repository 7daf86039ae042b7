"""Settles a decision before anything is done: what was not chosen is held back, and a person is asked where one has to.

chosen                  -> carried out; where its opcode has `confirm`, when somebody agrees
unsure                  -> a person is asked which of the two, and what is named then is agreed to
none, not legal         -> nothing is done, and nobody is asked

Where no person can be asked the decision is *pending*: a program takes or drops it. What it leaves is dropped when the
session goes on, and only then the decision is logged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from dispatch.log.records import Confirmed
from dispatch.session.players import Choice
from dispatch.session.turn import Turn
from kernel.choose.kinds import Outcome
from kernel.contract import Cartridge, Engine, Option
from kernel.errors import ActionFailedError, IllegalInstructionError, UsageError
from kernel.opcode import Instruction


class Person(Protocol):
    """Somebody who can be asked."""

    def which(self, request: str, options: Sequence[Instruction]) -> int | None:
        """Return the place of the option that is meant, or None for neither."""

    def agrees(self, request: str, instruction: Instruction) -> bool:
        """Return whether an instruction shall be carried out."""


class Concludes(Protocol):
    """What carries decisions out and logs them; `Session` does."""

    cartridges: dict[str, Cartridge]
    person: Person | None
    yes: bool
    pending: Pending | None

    def whose(self, instruction: Instruction) -> str:
        """Return the cartridge in whose turn an instruction is carried out."""

    def conclude(
        self, made: Made, option: int | None, *, settled: bool | None = None, confirmed: Confirmed | None = None
    ) -> Turn:
        """Carry out one of the options of a decision, or nothing (None), and log it."""


class Done(NamedTuple):
    """What came of an instruction that an engine was given."""

    result: str = ""
    refused: bool = False
    failed: str | None = None


@dataclass(frozen=True)
class Made:
    """A decision that was made, and what came before it. Nothing was done yet.

    Attributes:
        offered: the planner's options that the prompt showed, best first.
        choice: what the player chose.
    """

    number: int
    request: str
    offered: tuple[Option, ...]
    planner_ms: float
    choice: Choice

    @property
    def unsure(self) -> bool:
        """Whether it is between two."""
        return self.choice.outcome is Outcome.UNSURE

    @property
    def options(self) -> tuple[Instruction, ...]:
        """What may be done: what was chosen, or one of the two."""
        return self.choice.close or (self.choice.instruction,)

    def turn(self, cartridge: str, choice: Choice, done: Done) -> Turn:
        """Return the turn that this becomes with a choice and what came of it."""
        number, offered, ms, said = self.number, self.offered, self.planner_ms, choice.instruction
        return Turn(
            number, cartridge, said, done.result, done.refused, offered, choice, ms, self.request, failed=done.failed
        )


class Pending:
    """A decision that waits for a program: one option to agree to, or two of which it may take one.

    Attributes:
        options: the instructions.
    """

    def __init__(self, session: Concludes, made: Made) -> None:
        self.options = made.options
        self._session, self._made = session, made

    def take(self, option: int = 0) -> Turn:
        """Carry an option out and log the decision.

        Raises UsageError when the session has gone on, and for an option that is not there.
        """
        if not 0 <= option < len(self.options):
            raise UsageError(f"option {option} of {len(self.options)}")
        self._leave()
        if self._made.unsure:
            return self._session.conclude(self._made, option, settled=True)
        return self._session.conclude(self._made, option, confirmed=Confirmed.AGREED)

    def drop(self) -> Turn:
        """Do nothing, and log that it was declined; raises UsageError when the session has gone on."""
        self._leave()
        if self._made.unsure:
            return self._session.conclude(self._made, None, settled=False)
        return self._session.conclude(self._made, None, confirmed=Confirmed.DECLINED)

    def lapse(self) -> Turn:
        """Do nothing, and log that nobody was asked."""
        self._leave()
        return self._session.conclude(self._made, None, confirmed=None if self._made.unsure else Confirmed.UNASKED)

    def _leave(self) -> None:
        if self._session.pending is not self:
            raise UsageError("the session has gone on, so this decision is not pending any more")
        self._session.pending = None


def settle(session: Concludes, made: Made) -> Turn:
    """Carry a decision out, hold it back, or leave it pending; see the head of this module."""
    person, instruction = session.person, made.choice.instruction
    if made.unsure:
        if person is None:
            return _wait(session, made)
        option = person.which(made.request, made.options)
        return session.conclude(made, option, settled=option is not None)
    if made.choice.outcome is not Outcome.CHOSEN:
        return session.conclude(made, None)
    if not _confirms(session, instruction):
        return session.conclude(made, 0)
    if session.yes:
        return session.conclude(made, 0, confirmed=Confirmed.BEFOREHAND)
    if person is None:
        return _wait(session, made)
    if person.agrees(made.request, instruction):
        return session.conclude(made, 0, confirmed=Confirmed.AGREED)
    return session.conclude(made, None, confirmed=Confirmed.DECLINED)


def carry_out(engine: Engine, instruction: Instruction) -> Done:
    """Give an engine an instruction; one that it refuses, or whose action outside of it fails, changes nothing."""
    try:
        return Done(engine.apply(instruction))
    except IllegalInstructionError as error:
        return Done(str(error), refused=True)
    except ActionFailedError as error:
        return Done(refused=True, failed=str(error) or type(error).__name__)


def _wait(session: Concludes, made: Made) -> Turn:
    """Return the turn of a decision that waits; it is not logged yet."""
    session.pending = Pending(session, made)
    turn = made.turn(session.whose(made.choice.instruction), made.choice, Done())
    return replace(turn, moved=False, confirmed=None if made.unsure else Confirmed.UNASKED, pending=session.pending)


def _confirms(session: Concludes, instruction: Instruction) -> bool:
    """Return whether somebody has to agree to an instruction."""
    cartridge = session.cartridges.get(instruction.cartridge)
    return cartridge is not None and any(o.confirm for o in cartridge.opcodes if o.method == instruction.method)
