"""What the model reads before it moves the robot: a person's request, or what the planner offers."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.phrasing import asked, offered
from cartridges.robot.engine import MARKS, RobotEngine
from kernel.contract import Engine, Option, Prompt


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the prompt of a request if there is one, else that of the options with the planner's best marked."""
    if request.strip() or not options or not isinstance(engine, RobotEngine):
        return asked(request)
    reached = engine.state.reached
    mark = f" Next: mark {MARKS[reached]}." if reached < len(engine.state.marks) else ""
    return offered(f"A robot on the floor.{mark}", options)
