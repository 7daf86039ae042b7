"""What the model reads before it moves the robot: a request behind what the commands mean, or what is offered."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.kit.phrasing import offered
from cartridges.robot.engine import MARKS, RobotEngine
from cartridges.robot.guide import GUIDE
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return a request behind the guide if there is one, else the options with the planner's best marked."""
    if request.strip() or not options or not isinstance(engine, RobotEngine):
        return explained(request, GUIDE)
    reached = engine.state.reached
    mark = f" Next: mark {MARKS[reached]}." if reached < len(engine.state.marks) else ""
    return offered(f"A robot on the floor.{mark}", options)
