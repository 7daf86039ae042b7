"""The view of the scavenger: the prompt of a move, and the map drawn in characters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.panel import Panel

from cartridges.kit.phrasing import offered
from cartridges.kit.picture import grid
from cartridges.kit.rules import own
from cartridges.scavenger.board import BUDGET, HEIGHT, WIDTH
from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.guide import GUIDE
from cartridges.scavenger.opcodes import OPCODES
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained

LETTERS = {"key": "k", "coin": "c", "gem": "g"}


class ScavengerView:
    """Words for the model, a map for the person. Raises CartridgeError for an engine that is not the scavenger's."""

    def prompt(self, engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
        """Return a request behind the guide if there is one, else the options with the planner's best marked."""
        if request.strip() or not options:
            return explained(request, GUIDE)
        carried = own(engine, ScavengerEngine).carried
        hands = f"You carry the {carried}." if carried else "Your hands are empty."
        return offered(f"A map with walls and pits. {hands}", options, OPCODES)

    def render(self, engine: Engine) -> Panel:
        """Return the map: @ for you, H home, # walls, O pits, k c g the objects, and below what you hold."""
        game = own(engine, ScavengerEngine)
        board = game.board
        signs = dict.fromkeys(board.walls, ("#", "bold")) | dict.fromkeys(board.pits, ("O", "bold red"))
        signs |= {cell: (LETTERS[item], "bold yellow") for item, cell in game.lying}
        signs[board.home] = ("H", "bold green")
        signs[game.position] = ("@", "bold cyan")
        text = grid(signs, WIDTH, HEIGHT)
        text.append(f"holding {game.carried or 'nothing'}, delivered {game.delivered}/{len(board.items)}\n")
        text.append(f"moves left {BUDGET - game.moves}")
        return Panel(text, title="scavenger", subtitle="k key  c coin  g gem", expand=False)
