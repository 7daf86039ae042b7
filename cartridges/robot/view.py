"""The floor as a picture in characters. Owns no rule and no prompt wording."""

from __future__ import annotations

from collections.abc import Sequence

from rich.panel import Panel
from rich.text import Text

from cartridges.robot.engine import BATTERY, HEIGHT, MARKS, WIDTH, RobotEngine
from cartridges.robot.prompts import prompt
from kernel.contract import Engine, Option
from kernel.errors import CartridgeError
from kernel.prompt import Prompt

ARROWS = "^>v<"


class RobotView:
    """Words for the model, a floor for the person."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the prompt of one step."""
        return prompt(engine, options, request)

    def render(self, engine: Engine) -> Panel:
        """Return the floor: an arrow for the robot, P for the person, # for boxes, A to C for marks still ahead."""
        if not isinstance(engine, RobotEngine):
            raise CartridgeError(f"robot: the view cannot draw {engine!r}; give it a RobotEngine")
        state = engine.state
        signs = dict.fromkeys(state.boxes, ("#", "yellow"))
        signs |= {cell: (MARKS[n], "bold green") for n, cell in enumerate(state.marks) if n >= state.reached}
        signs[state.person] = ("P", "bold magenta")
        signs[state.robot] = (ARROWS[state.heading], "bold cyan")
        text = Text(no_wrap=True)
        for y in range(HEIGHT):
            for x in range(WIDTH):
                sign, style = signs.get((x, y), ("·", "dim"))
                text.append(sign + " ", style=style)
            text.append("\n")
        motors = "running" if state.motors else "off"
        text.append(f"battery {state.battery}/{BATTERY}, motors {motors}")
        return Panel(text, title="robot", expand=False)
