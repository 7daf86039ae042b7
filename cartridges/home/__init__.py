"""A house that takes requests in everyday words: lights, heater, door, blinds, music, vacuum, timer."""

from __future__ import annotations

from functools import partial

from cartridges.home.cases import cases, hints
from cartridges.home.engine import House
from cartridges.home.guide import GUIDE
from cartridges.home.opcodes import COMMANDS, NAME, SETS, Set
from cartridges.home.typed import GUIDE as TYPED_GUIDE
from cartridges.home.view import HomeView
from kernel.contract import Cartridge
from kernel.errors import UsageError, did_you_mean


def make(opcodes: Set = "commands") -> Cartridge:
    """Return the cartridge; `opcodes` is `commands` (24 of them) or `typed` (rooms, degrees, minutes, free text).

    It has no planner: a person's request is all there is to go by, so all commands stand. The labelled requests are
    those of `commands`.

    Raises UsageError for another set.
    """
    if opcodes not in SETS:
        raise UsageError(f"home: no set of opcodes {opcodes!r}{did_you_mean(opcodes, SETS)}")
    labelled = opcodes == "commands"
    return Cartridge(
        name=NAME,
        version="1",
        summary="Lights, heater, door, blinds, music, vacuum and timer of a simulated house, asked for in plain words.",
        opcodes=SETS[opcodes],
        engine=partial(House, opcodes),
        view=HomeView(),
        offered=len(COMMANDS),
        guide=GUIDE if labelled else TYPED_GUIDE,
        cases=cases if labelled else None,
        more_cases={"hints": hints} if labelled else {},
        options={} if labelled else {"opcodes": opcodes},
    )
