"""Gymnasium's frozen lake as a cartridge, an example of `kit.gymnasium`: run cartridges.frozenlake."""

from __future__ import annotations

from typing import Any

import gymnasium

from cartridges.kit.gymnasium import ANSI, Env, wrap
from kernel.contract import Cartridge

ACTIONS = ("left", "down", "right", "up")
SIZE = 4


def make(slippery: bool = False) -> Cartridge:
    """Return the lake of 4 by 4 fields; on slippery ice an action goes astray two times out of three."""
    return wrap(
        lambda: gymnasium.make("FrozenLake-v1", is_slippery=slippery, render_mode=ANSI, disable_env_checker=True),
        ACTIONS,
        name="frozenlake",
        method="go",
        summary="Cross a frozen lake of 4 by 4 fields without falling into a hole (Gymnasium's FrozenLake-v1).",
        situation=lambda field: f"A frozen lake. Row {field // SIZE}, column {field % SIZE}.",
        state=None if slippery else _field,  # on dry ice the dice decide nothing
        depth=SIZE if slippery else 2 * SIZE,  # with dice there are more states to look at
        constant=("P", "desc"),  # where each action leads, and the map
    )


def _field(env: Env) -> int:
    lake: Any = env.unwrapped
    return int(lake.s)
