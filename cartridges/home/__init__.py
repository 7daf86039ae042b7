"""A simulated house that takes requests in everyday words: lights, heater, door, blinds, music, vacuum, timer."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cartridges.home.engine import House
from cartridges.home.guide import GUIDE
from cartridges.home.opcodes import NAME, SETS, Set
from cartridges.home.typed import GUIDE as TYPED_GUIDE
from cartridges.home.view import HomeView
from cartridges.kit.rules import opcode_set
from kernel.casefile import requests
from kernel.contract import Cartridge

CASES = Path(__file__).with_name("cases.jsonl")
"""Short everyday requests, one right command each. Nothing may be tuned on `test`."""

HINTS = Path(__file__).with_name("hints.jsonl")
"""The harder set: longer requests, most of which avoid the words of the command."""


def make(opcodes: Set = "commands") -> Cartridge:
    """Return the cartridge; `opcodes` is `commands` (24 of them) or `typed` (rooms, degrees, minutes, free text).

    It has no planner: a person's request is all there is to go by, so all commands stand. The labelled requests are
    those of `commands`.

    Raises UsageError for another set.
    """
    labelled = opcodes == "commands"
    return Cartridge(
        name=NAME,
        version="1",
        summary="Lights, heater, door, blinds, music, vacuum and timer of a simulated house, asked for in plain words.",
        opcodes=opcode_set(NAME, opcodes, SETS),
        engine=partial(House, opcodes),
        view=HomeView(),
        takes_requests=True,
        guide=GUIDE if labelled else TYPED_GUIDE,
        cases=partial(requests, CASES, GUIDE) if labelled else None,
        more_cases={"hints": partial(requests, HINTS, GUIDE)} if labelled else {},
        options={} if labelled else {"opcodes": opcodes},
    )
