"""What the model reads before a move: a request behind what the commands mean, or what the planner offers."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.kit.phrasing import offered
from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.guide import GUIDE
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return a request behind the guide if there is one, else the options with the planner's best marked."""
    if request.strip() or not options or not isinstance(engine, ScavengerEngine):
        return explained(request, GUIDE)
    hands = f"You carry the {engine.carried}." if engine.carried else "Your hands are empty."
    return offered(f"A map with walls and pits. {hands}", options)
