"""Lets a cartridge that acts outside be checked without acting: its engines recall in place of applying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dispatch.checker.report import FaultError
from kernel.contract import Cartridge, Engine, Option, Planner
from kernel.opcode import Instruction

ANSWER = "a stand-in of the check"
"""What each instruction gives in a check."""


def harmless(cartridge: Cartridge) -> Cartridge:
    """Return the cartridge as a check may play it: where it acts outside, nothing that it does is carried out."""
    if not cartridge.acts_outside:
        return cartridge
    planner = None if cartridge.planner is None else WatchedPlanner(cartridge.planner)
    return replace(cartridge, engine=lambda: _recalling(cartridge.engine(), planner), planner=planner)


@dataclass
class WatchedPlanner:
    """A planner that says when it is ranking: then no instruction may be carried out, on a copy neither."""

    planner: Planner
    ranking: bool = False

    def rank(self, engine: Engine) -> Sequence[Option]:
        """See Planner."""
        self.ranking = True
        try:
            return self.planner.rank(engine)
        finally:
            self.ranking = False


def rehearsed(engine: Any, instruction: Instruction) -> Engine | None:
    """Carry an instruction out on the engine's rehearsal and return that, or None where the engine has none.

    It is the `apply` of the engine's own class that is called, which `harmless` has hidden.
    """
    if not callable(getattr(engine, "rehearsal", None)):
        return None
    twin: Engine = engine.rehearsal(ANSWER)
    own: Any = type(engine).__mro__[1]
    said = own.apply(twin, instruction)
    if said != ANSWER:
        raise FaultError(f"the rehearsal of {instruction!r} with {ANSWER!r} gives {said!r}")
    return twin


def _recalling(engine: Engine, planner: WatchedPlanner | None) -> Engine:
    """Give an engine a class that differs from its own in `apply` only; its copies have that class as well."""
    kind: Any = type(engine)
    if not callable(getattr(engine, "recall", None)):
        raise FaultError(f"acts_outside=True, but {kind.__name__} has no recall(instruction, result)")

    recalling = False

    def apply(self: Any, instruction: Instruction) -> str:
        nonlocal recalling
        if planner is not None and planner.ranking:
            raise FaultError(f"rank() carries {instruction!r} out, and a copy acts as well; let it call recall()")
        if recalling:
            raise FaultError(f"recall() carries {instruction!r} out; it takes note of it, and does nothing outside")
        recalling = True
        try:
            self.recall(instruction, ANSWER)
        finally:
            recalling = False
        return ANSWER

    body = {"__slots__": (), "__module__": kind.__module__, "apply": apply}
    try:
        object.__setattr__(engine, "__class__", type(kind.__name__, (kind,), body))
    except TypeError as error:
        raise FaultError(f"{kind.__name__} cannot be checked without acting: {error}") from error
    return engine
