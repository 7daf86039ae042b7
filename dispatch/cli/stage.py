"""Shows a session while it runs: a live board in a terminal, or a line for each decision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dispatch.cli.frame import BESIDE, decision, unmet
from dispatch.cli.output import console, note, shown, working
from dispatch.cli.streams import writing
from dispatch.log.records import Confirmed
from dispatch.session.board import Board
from dispatch.session.session import Session
from dispatch.session.told import body, why_held
from dispatch.session.turn import Turn, record
from kernel.choose.decision import Stop
from kernel.choose.outcome import Outcome
from kernel.opcode import Instruction

HELD = 1000
"""So many turns in which nothing was done are told; the others are counted."""
FRAMES = 20.0
"""Pictures a second, at most."""


class Stage:
    """Where a session is seen.

    Args:
        quiet: only count on stderr, if that is a terminal.
        asked: with requests: every answer stands below the last, and a terminal shows the board that it changed.
    """

    def __init__(self, session: Session, *, quiet: bool, asked: bool) -> None:
        self.session = session
        self.quiet = quiet
        self.asked = asked
        self.console = console()
        self.last: Turn | None = None
        self.held: list[dict[str, Any]] = []
        """The first of the turns in which nothing was done, for `--json`."""

    def show(self, turns: Iterator[Turn]) -> None:
        """Run through the turns and show each."""
        if self.quiet:
            self._count(turns)
        elif self.console.is_terminal and not self.console.is_dumb_terminal and not self.asked:
            self._live(turns)
        else:
            self._told(turns)

    def end(self) -> None:
        """Show the last state where it has not been seen."""
        if not self.quiet and (self.asked or not self.console.is_terminal or self.console.is_dumb_terminal):
            self._draw(self._board())

    def _count(self, turns: Iterator[Turn]) -> None:
        seen = 0.0
        with working("") as tell:
            for turn in turns:
                _complain(turn)
                if turn.held and len(self.held) < HELD:
                    self.held.append(held_back(turn))
                if time.perf_counter() - seen > 1 / FRAMES:
                    tell(f"decision {turn.number}")
                    seen = time.perf_counter()

    def _live(self, turns: Iterator[Turn]) -> None:
        seen = 0.0
        with Live(console=self.console, auto_refresh=False) as live:
            live.update(self._picture(), refresh=True)
            for turn in turns:
                self.last = turn
                if time.perf_counter() - seen > 1 / FRAMES:
                    live.update(self._picture(), refresh=True)
                    seen = time.perf_counter()
            live.update(self._picture(), refresh=True)

    def _told(self, turns: Iterator[Turn]) -> None:
        for turn in turns:
            with writing():
                print(line(turn), flush=True)
            _complain(turn)
            shows = self.asked and self.console.is_terminal and not turn.held
            if shows and turn.cartridge in self.session.cartridges:
                self._draw(self._board(turn.cartridge))

    def _draw(self, picture: RenderableType) -> None:
        with writing():
            self.console.print(picture)

    def _board(self, only: str = "") -> RenderableType:
        shown_now = [c for name, c in self.session.cartridges.items() if only in ("", name)]
        return Group(*(Board(c.view, self.session.engines[c.name]) for c in shown_now))

    def _picture(self) -> RenderableType:
        session, side = self.session, list[RenderableType]()
        if self.last is not None:
            state = session.engines[self.last.cartridge].state_hash()
            side.append(decision(record(self.last, state, session.seconds)))
        rate = session.tally.decisions / max(session.seconds, 1e-9)
        counts = f"{session.tally.decisions} decisions, {rate:.1f} a second; Ctrl-C ends"
        side.append(Text(counts, style="dim", no_wrap=True, overflow="ellipsis"))
        if self.console.width < BESIDE:
            whole = Group(self._board(), *side)
            if self.last is None or len(self.console.render_lines(whole)) < self.console.height:
                return whole
            said = Text(line(self.last), no_wrap=True, overflow="ellipsis")  # the board matters most
            return Group(self._board(), said, side[-1])
        grid = Table.grid(padding=(0, 3))
        grid.add_row(self._board(), Group(*side))
        return grid


def _complain(turn: Turn) -> None:
    """Say on stderr that an action failed."""
    if turn.failed is not None:
        note(f"error: decision {turn.number}: {turn.failed}")


def held_back(turn: Turn) -> dict[str, Any]:
    """Return what a program is told of a turn in which nothing was done."""
    rather = None if turn.decision is None else turn.decision.preferred_text
    return {
        "decision": turn.number,
        "request": turn.request,
        "outcome": turn.outcome.value,
        "options": [told(instruction) for instruction in turn.close or (turn.instruction,)],
        "not_legal": body(rather) if rather is not None and turn.outcome is Outcome.NOT_LEGAL else None,
        "confirmed": turn.confirmed,
        "why": why_held(turn),
    }


def told(instruction: Instruction) -> dict[str, Any]:
    """Return an instruction as JSON has it."""
    return {"cartridge": instruction.cartridge, "method": instruction.method, "arguments": instruction.args}


def line(turn: Turn) -> str:
    """Return a decision as one line: number, request, instruction, its probability, what came of it.

    CLOSED says that the model used up its tokens, REFUSED that the engine did not take it, FAILED that it was tried in
    vain; what the model would rather have said but was not legal stands at the end. Of what was not done it says why.
    """
    goal = turn.request.partition("\n")[0]  # what earlier steps of a goal gave stands below it
    asked = f"{goal} -> " if goal else ""
    if turn.held:
        what = f"{turn.instruction!r}: " if turn.outcome is Outcome.CHOSEN else ""
        how = "; --yes agrees beforehand" if turn.confirmed is Confirmed.UNASKED else ""
        return shown(f"{turn.number}. {asked}{what}{why_held(turn)}{how}")
    share = "" if turn.decision is None else f" ({100 * turn.decision.probability:.0f} %)"
    cut = " CLOSED" if turn.decision is not None and turn.decision.stop is Stop.CLOSED else ""
    refused = " FAILED" if turn.failed is not None else " REFUSED" if turn.refused else ""
    said = turn.result if turn.failed is None else turn.failed
    result = f": {said}" if said else ""
    rather = unmet(turn.decision.preferred_text, turn.decision.preferred_by) if turn.decision is not None else ""
    return shown(f"{turn.number}. {asked}{turn.instruction!r}{share}{cut}{refused}{result}{rather and f' ({rather})'}")
