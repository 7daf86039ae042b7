"""A robot on a simulated floor: it drives, turns, speaks and stops, and no command can make it collide."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from cartridges.kit.states import states
from cartridges.robot.engine import RobotEngine
from cartridges.robot.guide import GUIDE
from cartridges.robot.opcodes import NAME, OPCODES
from cartridges.robot.planner import RobotPlanner
from cartridges.robot.view import RobotView
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
    """Return the cartridge; its planner looks for the next mark."""
    return Cartridge(
        name=NAME,
        version="1",
        summary="A robot that drives, turns, speaks and stops on a simulated floor and cannot be told to collide.",
        opcodes=OPCODES,
        engine=RobotEngine,
        view=RobotView(),
        planner=RobotPlanner(),
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
