"""The view of the robot: the prompt of a step, and the floor drawn in characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.panel import Panel

from cartridges.kit.phrasing import offered
from cartridges.kit.picture import grid
from cartridges.kit.rules import own
from cartridges.robot.engine import BATTERY, HEIGHT, MARKS, WIDTH, RobotEngine
from cartridges.robot.guide import GUIDE
from cartridges.robot.opcodes import OPCODES
from kernel.contract import Engine, Option
from kernel.form import FORM
from kernel.prompt import Prompt, explained

ARROWS = "^>v<"

OKAY, WEAK = replace(FORM, other="okay"), replace(FORM, other="weak")
"""The marks of what is not best, asked in one pass: among fourteen options no mark alone serves both models."""


class RobotView:
    """Words for the model, a floor for the person. Raises CartridgeError for an engine that is not the robot's."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return a request behind the guide if there is one, else the options with the planner's best marked."""
        if request.strip() or not options:
            return explained(request, GUIDE)
        state = own(engine, RobotEngine).state
        mark = f" Next: mark {MARKS[state.reached]}." if state.reached < len(state.marks) else ""
        return offered(f"A robot on the floor.{mark}", options, OPCODES, OKAY, more=(WEAK,))

    def render(self, engine: Engine) -> Panel:
        """Return the floor: an arrow for the robot, P for the person, # for boxes, A to C for marks still ahead."""
        state = own(engine, RobotEngine).state
        signs = dict.fromkeys(state.boxes, ("#", "yellow"))
        signs |= {cell: (MARKS[n], "bold green") for n, cell in enumerate(state.marks) if n >= state.reached}
        signs[state.person] = ("P", "bold magenta")
        signs[state.robot] = (ARROWS[state.heading], "bold cyan")
        motors = "running" if state.motors else "off"
        text = grid(signs, WIDTH, HEIGHT).append(f"battery {state.battery}/{BATTERY}, motors {motors}")
        return Panel(text, title="robot", expand=False)
