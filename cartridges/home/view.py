"""The view of the house: the prompt of a request, and a table of the devices."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from cartridges.home.engine import House
from cartridges.home.guide import GUIDE
from cartridges.home.typed import prompt as typed_prompt
from cartridges.kit.rules import own
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained
from kernel.shown import shown


class HomeView:
    """Words for the model, a table for the person."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the request behind the guide, or behind worked examples where the arguments have types."""
        return typed_prompt(request) if own(engine, House).opcodes == "typed" else explained(request, GUIDE)

    def render(self, engine: Engine) -> Table:
        """Return a table with a line for each device; what is on or open is bold."""
        state = own(engine, House).state
        table = Table("device", "state", title="home", show_header=False)
        for room, on in state.lights.items():
            table.add_row(f"{room} light", Text("on", "bold yellow") if on else "off")
        table.add_row("heater", Text(f"{state.celsius:g} °C", "bold"))
        table.add_row("front door", "locked" if state.locked else Text("unlocked", "bold red"))
        table.add_row("blinds", Text("open", "bold") if state.blinds_open else "closed")
        playing = ("playing", "bold green") if state.playing else "silent"
        table.add_row("music", Text.assemble(playing, f", track {state.track}, volume {state.volume}"))
        table.add_row("vacuum", Text("cleaning", "bold") if state.cleaning else "in its dock")
        table.add_row(
            "timer", Text(f"{state.timer_minutes} min left", "bold") if state.timer_minutes else "not running"
        )
        for reminder in state.reminders:
            table.add_row("reminder", Text(shown(reminder)))
        return table
