"""A grid with walls and pits, objects to fetch and a budget of moves."""

from __future__ import annotations

from cartridges.scavenger.cases import cases
from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.guide import GUIDE
from cartridges.scavenger.opcodes import NAME, OPCODES
from cartridges.scavenger.planner import ScavengerPlanner
from cartridges.scavenger.view import ScavengerView
from kernel.contract import Cartridge


def make() -> Cartridge:
    """Return the cartridge; its planner looks for the next object to deliver."""
    return Cartridge(
        name=NAME,
        version="1",
        summary="Find a key, a coin and a gem between walls and pits and bring them home within 80 moves.",
        opcodes=OPCODES,
        engine=ScavengerEngine,
        view=ScavengerView(),
        planner=ScavengerPlanner(),
        guide=GUIDE,
        cases=cases,
    )
