"""The loop of a session: ask what is legal, let the player choose, carry the instruction out, log the decision.

A decision is logged after the engine has taken it and before the next one begins. If the process is killed between the
two, the engine was one decision ahead of the log; a session that goes on from the log makes that decision again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Self

from dispatch.log.objects import CartridgeRecord
from dispatch.log.records import Confirmed, Corrected, Ending, Joined, Left, Outcome
from dispatch.log.resume import Resumption
from dispatch.log.tally import Tally
from dispatch.log.writer import LogWriter
from dispatch.session.correcting import Corrections
from dispatch.session.ending import count, over
from dispatch.session.participants import Participants
from dispatch.session.players import Player
from dispatch.session.renewal import renew
from dispatch.session.repeats import Repeats
from dispatch.session.settling import Done, Made, carry_out, settle
from dispatch.session.told import why_held
from dispatch.session.turn import Turn, record
from kernel.contract import Cartridge
from kernel.errors import WireError
from kernel.opcode import HALT_INSTRUCTION
from kernel.prompt import NOTHING

_notes = logging.getLogger(__name__)


class Session(Participants):
    """One run of one or several cartridges with one player.

    With several, what is legal is what any of them allows now, and the prompt is the request behind what the commands
    of all of them mean: no view is asked. The session is over when the rules have ended all of them.

    Args:
        seed: given to every engine.
        limits: largest values of an engine's summary, by name (`pieces`), or `decisions`.

    Iterate over `turns()`; then `close()` with how it ended, unless it has ended by itself.
    """

    def __init__(
        self,
        cartridges: Sequence[Cartridge],
        player: Player,
        *,
        seed: int = 0,
        limits: Mapping[str, int | float] | None = None,
    ) -> None:
        super().__init__(cartridges, player, seed)
        self.limits = dict(limits or {})
        self.tally = Tally()
        self.ending: Ending | None = None
        self.detail = ""
        self._begun = time.perf_counter()
        self._log: LogWriter | None = None
        self._stopping: str | None = None
        self._torn = False
        self._repeats = Repeats()
        self._corrections = Corrections(asked=False)
        for limit in self.limits:
            count(limit, self.engines, 0)

    @classmethod
    def resume(cls, resumption: Resumption, player: Player, *, limits: Mapping[str, int | float] | None = None) -> Self:
        """Go on where a log was broken off, counts and clock included; writes to the same log.

        Args:
            limits: in place of those in the header, when given.
        """
        header = resumption.header
        limits = limits or header.limits
        session = cls(list(resumption.cartridges.values()), player, seed=header.seed, limits=limits)
        session.engines, session.tally = resumption.engines, resumption.tally
        if resumption.last is not None:
            session._begun -= (resumption.last.at_ms or 0.0) / 1000
        session.write_to(resumption.writer)
        return session

    def write_to(self, log: LogWriter) -> None:
        """Log every decision from now on."""
        self._log = log

    @property
    def seconds(self) -> float:
        """Time since the session began."""
        return time.perf_counter() - self._begun

    def turns(self, requests: Iterator[str] | None = None, *, unattended: bool = False) -> Iterator[Turn]:
        """Yield one decision after the other until the session ends; with requests, one decision each.

        Args:
            unattended: end with `repeat` when one instruction is given again on a state that it left as it was, and
                with `failed` when an action outside an engine fails.
        """
        while not self.over():
            request = "" if requests is None else next(requests, None)
            if request is None:
                return self.close(Ending.LIMIT, "no more requests")
            if self._stopping is None:  # asking for a request may take long
                try:
                    turn = self.turn(request)
                except WireError as error:  # what was written is not read back: this decision fails, not the session
                    if requests is None or unattended:
                        raise
                    _notes.warning("%s; nothing was done", error)
                    continue
                if unattended:
                    self._guard(turn)
                yield turn
                self.lapse()

    def turn(self, request: str = "") -> Turn:
        """Make one decision and carry it out; what is not to be done without being asked is held back (`settling`).

        An instruction that the engine refuses, or whose action outside of it fails, changes nothing; it is logged and
        counted as refused, and a failure as failed as well.
        """
        self.lapse()
        renew(self)
        number = self.tally.decisions + 1
        started = time.perf_counter()
        situation, offered = self.situation(number, request)
        ms = 1000 * (time.perf_counter() - started)
        return settle(self, Made(number, request, offered, ms, self.player.choose(situation)))

    def conclude(
        self, made: Made, option: int | None, *, settled: bool | None = None, confirmed: Confirmed | None = None
    ) -> Turn:
        """Carry out one of the options of a decision, or nothing (None), and log it."""
        choice = made.choice if option is None or made.choice.take is None else made.choice.take(option)
        cartridge = self.whose(choice.instruction)
        engine, done = self.engines[cartridge], Done()
        before = engine.state_hash()
        self._torn = True
        if option is not None:
            if choice.instruction == HALT_INSTRUCTION:
                self.close(Ending.HALT, "halt was chosen")
            else:
                done = carry_out(engine, choice.instruction)
        state = engine.state_hash()
        turn = made.turn(cartridge, choice, done)
        turn = replace(turn, moved=before != state, settled=settled, confirmed=confirmed)
        logged = record(turn, state, self.seconds)
        self.tally.add(logged)
        if self._log is not None:
            told = choice.made
            self._log.decision(logged, *((told.prompt, told.nulls, told.rotations) if told is not None else ()))
        self._torn = False
        self._corrections = Corrections(asked=bool(made.request))
        return turn

    def correct(self, right: str = "") -> Corrected:
        """Log that the last answer was wrong, and what is right (see `Corrections.take`); nothing is undone."""
        self.lapse()
        said = self._corrections.take(right, self.tally.decisions, self.cartridges.values())
        if self._log is not None:
            self._log.note(said)
        return said

    def stop(self, detail: str) -> None:
        """End the session before its next decision. For signal handlers: it only takes a note."""
        self._stopping = detail

    def over(self) -> bool:
        """Return whether it has ended; one that its rules, a limit or `stop` have ended is closed with that."""
        if self.ending is None and self._stopping is not None:
            self.close(Ending.INTERRUPTED, self._stopping)
        if self.ending is None and (found := over(self.engines, self.limits, self.tally.decisions)) is not None:
            self.close(*found)
        return self.ending is not None

    def close(self, ending: Ending, detail: str = "") -> None:
        """End the session; one that has ended already keeps its ending."""
        if self.ending is None:
            self.ending, self.detail = ending, detail

    def end(self, ending: Ending, detail: str = "") -> None:
        """Close it and its log; see `close` and `end_log`."""
        self.close(ending, detail)
        self.end_log()

    def end_log(self) -> None:
        """Write the outcome, if there is a log; the log takes nothing more.

        Where a decision was broken into before it stood in the log, the engines are ahead of the log, so no outcome is
        written: the log reads as that of a killed session, and can be gone on with.
        """
        self.lapse()
        if self._log is not None and not self._torn:
            self._log.outcome(self.outcome())
        self._log = None

    def outcome(self) -> Outcome:
        """Return what goes into the log's last line."""
        return Outcome(
            decisions=self.tally.decisions,
            ending=self.ending or Ending.INTERRUPTED,
            detail=self.detail,
            summary={name: dict(engine.summary()) for name, engine in self.engines.items()},
            seconds=round(self.seconds, 3),
            totals=self.tally.totals,
        )

    def prepare(self) -> None:
        """Let a model read what stays the same from request to request; the session's clock stands still."""
        started = time.perf_counter()
        self.player.prepare(self.situation(0, NOTHING)[0])
        self._begun += time.perf_counter() - started

    def _changed(self, who: CartridgeRecord | str) -> None:
        n = self.tally.decisions
        if self._log is not None:
            self._log.note(Left(n=n, cartridge=who) if isinstance(who, str) else Joined(n=n, cartridge=who))

    def _guard(self, turn: Turn) -> None:
        if turn.held:
            self.lapse()
            self.close(Ending.HELD, why_held(turn))
        if turn.failed is not None:
            self.close(Ending.FAILED, turn.failed)
        if again := self._repeats.found(turn, acts=self.acts(turn.cartridge)):
            self.close(Ending.REPEAT, again)
