"""Says in a sentence why nothing was done."""

from __future__ import annotations

from dispatch.log.records import Confirmed
from dispatch.session.turn import Turn
from kernel.choose.kinds import Outcome

NOTHING_MEANT = "nothing was done: none of the commands seems to be meant"


def why_held(turn: Turn) -> str:
    """Return why nothing was done in a turn, and what was wished for or close; "" where something was."""
    decision = turn.decision
    if not turn.held:
        return ""
    if turn.outcome is Outcome.NONE:
        return NOTHING_MEANT
    if turn.outcome is Outcome.NOT_LEGAL and decision is not None:
        return not_legal(decision.preferred_text or "")
    if turn.outcome is Outcome.UNSURE and decision is not None:
        neither = " was not answered" if turn.settled is False else ""
        return f"nothing was done: {either(decision.close)}?{neither}"
    agreed = "declined" if turn.confirmed is Confirmed.DECLINED else "nobody has agreed to it"
    return f"nothing was done: {agreed}"


def not_legal(text: str) -> str:
    """Return what is said of a wish that is not legal.

    >>> not_legal(" take gem\\n@scavenger\\n")
    'nothing was done: take gem is not legal now'
    """
    return f"nothing was done: {body(text)} is not legal now"


def either(texts: tuple[str, ...]) -> str:
    """Return two wire texts as a question is put.

    >>> either((" go north\\n@robot\\n", " go south\\n@robot\\n"))
    'go north or go south'
    """
    return " or ".join(map(body, texts))


def body(text: str) -> str:
    """Return the first line of a wire text; the rest is the closer, which tells nothing apart."""
    return text.strip().partition("\n")[0]
