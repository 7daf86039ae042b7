"""The view: the prompt for the model, and a picture for the person."""

from __future__ import annotations

from collections.abc import Sequence

from rich.panel import Panel
from rich.text import Text

from cartridges.kit.phrasing import offered
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained

from .engine import FLOORS, Lift
from .guide import GUIDE
from .opcodes import NAME, OPCODES


class LiftView:
    """A request is read behind the guide, else the planner's options are offered with the best one marked."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return what the model reads; `explained` and `offered` write the null prompts too."""
        assert isinstance(engine, Lift), "this view knows lifts only"
        if request.strip() or not options:
            return explained(request, GUIDE)
        return offered(f"A lift on floor {engine.state.floor}.", options, OPCODES)

    def render(self, engine: Engine) -> Panel:
        """Return a line for each floor, the highest first: the lift, and where those who wait want to go."""
        assert isinstance(engine, Lift), "this view knows lifts only"
        state = engine.state
        text = Text()
        for floor in reversed(range(FLOORS)):
            inside = ",".join(map(str, state.inside))
            cabin = f"[{inside}]" if floor == state.floor else " |"
            waiting = " ".join(f"to {to}" for start, to in state.waiting if start == floor)
            text.append(f"{floor} {cabin} {waiting}\n")
        text.append(f"arrived {state.arrived}, moves {state.moves}")
        return Panel(text, title=NAME, expand=False)
