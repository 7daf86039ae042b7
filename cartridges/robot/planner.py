"""Ranks instructions by how soon the next mark can be reached after them. Owns no rule: it tries them on copies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from cartridges.kit.search import routes
from cartridges.robot.engine import MARKS, RobotEngine
from kernel.contract import Engine, Option
from kernel.errors import CartridgeError

NO_WAY = -1000.0
"""The score of an instruction that does not lead to the mark: lower than any way is long."""


def _place(engine: RobotEngine) -> Hashable:
    """What matters to the search; the battery only counts down."""
    state = engine.state
    return state.robot, state.heading, state.person, state.reached


class RobotPlanner:
    """Breadth-first search to the next mark; the score is minus the number of instructions."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal instruction, best first, ties in the order of the declaration.

        Raises CartridgeError for an engine that is not the robot's.
        """
        if not isinstance(engine, RobotEngine):
            raise CartridgeError(f"robot: the planner cannot rank for {engine!r}; give it a RobotEngine")
        if engine.ended() is not None:
            return []
        reached = engine.state.reached
        options = []
        for instruction, route in routes(engine, _place, lambda after: after.state.reached > reached).items():
            steps = len(route.plan)
            if steps:
                note = f"mark {MARKS[reached]} in {steps} step{'s' if steps > 1 else ''}"
            else:
                note = route.ended or "leads away"
            options.append(Option(instruction, float(-steps) if steps else NO_WAY, note, route.plan))
        return sorted(options, key=lambda option: -option.score)
