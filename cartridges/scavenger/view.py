"""The map as a picture in characters. Owns no rule and no prompt wording."""

from __future__ import annotations

from collections.abc import Sequence

from rich.panel import Panel
from rich.text import Text

from cartridges.scavenger.board import BUDGET, HEIGHT, WIDTH
from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.prompts import prompt
from kernel.contract import Engine, Option
from kernel.errors import CartridgeError
from kernel.prompt import Prompt

LETTERS = {"key": "k", "coin": "c", "gem": "g"}


class ScavengerView:
    """Words for the model, a map for the person."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return the prompt of one step."""
        return prompt(engine, options, request)

    def render(self, engine: Engine) -> Panel:
        """Return the map: @ for you, H home, # walls, O pits, k c g the objects, and below what you hold."""
        if not isinstance(engine, ScavengerEngine):
            raise CartridgeError(f"scavenger: the view cannot draw {engine!r}; give it a ScavengerEngine")
        board = engine.board
        signs = dict.fromkeys(board.walls, ("#", "bold")) | dict.fromkeys(board.pits, ("O", "bold red"))
        signs |= {cell: (LETTERS[item], "bold yellow") for item, cell in engine.lying}
        signs[board.home] = ("H", "bold green")
        signs[engine.position] = ("@", "bold cyan")
        text = Text(no_wrap=True)
        for y in range(HEIGHT):
            for x in range(WIDTH):
                sign, style = signs.get((x, y), ("·", "dim"))
                text.append(sign + " ", style=style)
            text.append("\n")
        text.append(f"holding {engine.carried or 'nothing'}, delivered {engine.delivered}/{len(board.items)}\n")
        text.append(f"moves left {BUDGET - engine.moves}")
        return Panel(text, title="scavenger", subtitle="k key  c coin  g gem", expand=False)
