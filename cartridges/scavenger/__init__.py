"""A game on a grid: fetch three objects between walls and pits within a budget of moves."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cartridges.kit.states import states
from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.guide import GUIDE
from cartridges.scavenger.opcodes import NAME, OPCODES
from cartridges.scavenger.planner import ScavengerPlanner
from cartridges.scavenger.view import ScavengerView
from kernel.casefile import refusals, requests
from kernel.contract import Cartridge

CASES = Path(__file__).with_name("cases.jsonl")
"""Labelled requests, one right command each. Nothing may be tuned on `test`."""

STATES = Path(__file__).with_name("states.jsonl")
"""Labelled states of seeded games, the planner's best marked; the same holds for them."""

MORE = Path(__file__).with_name("more.jsonl")
"""Further requests of the half `dev`, to learn from."""

NOTHING = Path(__file__).with_name("none.jsonl")
"""Requests that nothing should answer."""


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
        takes_requests=True,
        guide=GUIDE,
        learned=Path(__file__).with_name("learned"),
        cases=partial(requests, CASES, GUIDE),
        more_cases={
            "states": lambda: states(STATES, make()),
            "more": partial(requests, MORE, GUIDE),
            "none": partial(refusals, NOTHING, GUIDE),
        },
    )
