"""A house that takes requests in everyday words: lights, heater, door, blinds, music, vacuum, timer."""

from __future__ import annotations

from cartridges.home.cases import cases, hints
from cartridges.home.engine import House
from cartridges.home.opcodes import COMMANDS, NAME, OPCODES
from cartridges.home.view import HomeView
from kernel.contract import Cartridge


def make() -> Cartridge:
    """Return the cartridge. It has no planner: a person's request is all there is to go by, so all commands stand."""
    return Cartridge(
        name=NAME,
        version="1",
        summary="Lights, heater, door, blinds, music, vacuum and timer of a simulated house, asked for in plain words.",
        opcodes=OPCODES,
        engine=House,
        view=HomeView(),
        offered=len(COMMANDS),
        cases=cases,
        more_cases={"hints": hints},
    )
