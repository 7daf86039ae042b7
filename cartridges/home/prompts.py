"""What the model reads before it picks a command. Knows no state: the request decides."""

from __future__ import annotations

from collections.abc import Sequence

from cartridges.home.guide import GUIDE
from kernel.contract import Engine, Option
from kernel.prompt import Prompt, explained


def prompt(engine: Engine, options: Sequence[Option], request: str = "") -> Prompt:
    """Return the commands with what they mean, the request, and a blank for the command."""
    return explained(request, GUIDE)
