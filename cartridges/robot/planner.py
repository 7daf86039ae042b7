"""Ranks the robot's instructions by how soon they lead to the next mark. It searches on copies of the engine."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.kit.rules import own
from cartridges.kit.search import ranked
from cartridges.robot.engine import MARKS, RobotEngine
from kernel.contract import Engine, Option


class RobotPlanner:
    """Breadth-first search to the next mark; the score is minus the number of instructions."""

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return an option for each legal instruction, best first, ties in the order of the declaration.

        Raises CartridgeError for an engine that is not the robot's.
        """
        robot = own(engine, RobotEngine)
        reached = robot.state.reached
        return ranked(
            robot,
            # The battery is left out, as it only counts down.
            lambda each: (each.state.robot, each.state.heading, each.state.person, each.state.reached),
            lambda after: after.state.reached > reached,
            lambda way: f"mark {MARKS[reached]} in {len(way)} step{'s' if len(way) > 1 else ''}",
        )
