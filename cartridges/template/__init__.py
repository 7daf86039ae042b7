"""A lift in a small house. This module puts the parts of the cartridge together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kernel.casefile import requests
from kernel.contract import Cartridge

from .engine import Lift
from .guide import GUIDE
from .opcodes import NAME, OPCODES
from .planner import LiftPlanner
from .view import LiftView

CASES = Path(__file__).with_name("cases.jsonl")
"""Labelled requests, one right command each: what `eval` measures on. Nothing may be tuned on `test`."""


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
        takes_requests=True,
        guide=GUIDE,
        cases=partial(requests, CASES, GUIDE),
    )
