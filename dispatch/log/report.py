"""What a replay found: the verdict, and where the engine and the log part."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from dispatch.log.encoding import shortly
from dispatch.log.objects import CartridgeRecord
from dispatch.log.records import Outcome
from kernel.contract import Engine


class Verdict(enum.StrEnum):
    """How far a log holds."""

    VERIFIED = "verified"
    """All of it, outcome included."""
    UNFINISHED = "unfinished"
    """All that is there; the outcome is not. The session was killed, goes on still, or its last lines are gone."""
    STOPPED = "stopped"
    """As far as was asked; more may follow."""
    DAMAGED = "damaged"
    """Up to a line that is damaged."""
    DIFFERENT = "different"
    """Up to a step at which the engine disagrees with the log."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engine and the log part. Step 0 is the start, before any decision.

    >>> print(Difference(step=3, what="state", logged="b2:1", found="b2:2"))
    decision 3: state: the log has 'b2:1', the engine 'b2:2'
    """

    step: int
    what: str
    logged: str
    found: str
    line: int = 1

    def __str__(self) -> str:
        where = f"decision {self.step}" if self.step else "the start"
        return f"{where}: {self.what}: the log has {shortly(self.logged)}, the engine {shortly(self.found)}"


class ReplayReport(BaseModel):
    """What a replay found."""

    model_config = ConfigDict(frozen=True)

    path: str
    verdict: Verdict
    sentence: str
    """The verdict in words, with step and reason."""
    decisions: int
    """Whole decisions that verify."""
    cartridges: tuple[CartridgeRecord, ...]
    player: str
    seed: int
    damage: str | None = None
    difference: str | None = None
    line: int | None = None
    """Where it is damaged or different."""
    keyed: str
    """What is known by a key; empty for a log without one."""
    by_key: bool
    """Whether every line was held against a key."""
    key_given: bool = False
    outcome: Outcome | None = None
    notes: tuple[str, ...] = ()
    seconds: float
    decisions_per_second: float

    @property
    def good(self) -> bool:
        """Whether the whole log, or all that was asked for, verifies; with a key that was given, by that key."""
        return self.verdict in (Verdict.VERIFIED, Verdict.STOPPED) and self.by_key >= self.key_given


def ended(engines: Mapping[str, Engine]) -> str | None:
    """Return why the rules have ended all of some engines, as an outcome tells it; None while one of them goes on."""
    reasons = {name: engine.ended() for name, engine in engines.items()}
    if any(reason is None for reason in reasons.values()):
        return None
    told = [f"{name}: {reason}" if len(reasons) > 1 else str(reason) for name, reason in reasons.items()]
    return "; ".join(told)


def same(logged: object, found: object) -> bool:
    """Whether two numbers of a summary are the same."""
    return logged == found or (logged != logged and found != found)  # NaN is not equal to itself
