"""The steps of a goal: each request is the goal and what earlier calls gave, and a step that comes again ends it.

A result that a tool gave is part of the next request, on one line and cut, so that the log has all that the model read.
Games are not told what they did: their view shows their state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from dispatch.session.session import Session
from dispatch.session.turn import Turn

RESULT = 300
"""Characters of a result that the next request has."""
STEPS = 4
"""So many of the last steps are told."""


class Steps(Iterator[str]):
    """The requests of a goal; `take` each turn before the next one is asked for."""

    def __init__(self, goal: str) -> None:
        self.goal = " ".join(goal.split())
        self._done: deque[str] = deque(maxlen=STEPS)

    def __next__(self) -> str:
        return "\n".join([self.goal, *self._done])

    def take(self, turn: Turn) -> None:
        """Take note of what a call gave."""
        if not turn.held:
            said = " ".join((turn.failed or turn.result).split())
            said = said if len(said) <= RESULT else f"{said[:RESULT]} ..."
            self._done.append(f"Call: {turn.instruction!r}\nResult: {said or 'done'}")


def pursue(session: Session, goal: str) -> Iterator[Turn]:
    """Yield the turns of a goal that nobody watches, until it is reached, a limit, a repeat, or nothing is done."""
    steps = Steps(goal)
    for turn in session.turns(steps, unattended=True):
        if session.acts(turn.cartridge):
            steps.take(turn)
        yield turn
