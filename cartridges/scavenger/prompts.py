"""What the model reads before a move: a person's request, or what the planner offers."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.phrasing import asked, offered
from cartridges.scavenger.engine import ScavengerEngine
from kernel.contract import Engine, Option, Prompt


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the prompt of a request if there is one, else that of the options with the planner's best marked."""
    if request.strip() or not options or not isinstance(engine, ScavengerEngine):
        return asked(request)
    hands = f"You carry the {engine.carried}." if engine.carried else "Your hands are empty."
    return offered(f"A map with walls and pits. {hands}", options)
