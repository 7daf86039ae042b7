"""A lift in a small house. Knows which parts make the cartridge, nothing else."""

from __future__ import annotations

from kernel.contract import Cartridge

from .cases import cases
from .engine import Lift
from .guide import GUIDE
from .opcodes import NAME, OPCODES
from .planner import LiftPlanner
from .view import LiftView


def make() -> Cartridge:
    """Return the cartridge. Arguments of this function, if it had any, would be options of the cartridge."""
    return Cartridge(
        name=NAME,
        version="1",
        summary="A lift that takes three people to their floors.",
        opcodes=OPCODES,
        engine=Lift,
        view=LiftView(),
        planner=LiftPlanner(),
        guide=GUIDE,
        cases=cases,
    )
