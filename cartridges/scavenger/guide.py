"""The guide of the scavenger: what each command means, when one wants it, and a request that it answers.

The texts were written for the prompt. None of them stands in the labelled set.
"""

from __future__ import annotations

from typing import get_args

from cartridges.kit.phrasing import explanations
from cartridges.scavenger.opcodes import COMMANDS, OPCODES, Item
from kernel.prompt import Explained

_WALKS = {
    f"go {direction}": (f"walk {direction}", f"{side} on the map", f"The next cell {side}")
    for direction, side in (("north", "up"), ("east", "right"), ("south", "down"), ("west", "left"))
}
_TAKES = {
    f"take {item}": (f"pick up the {item}", f"the {item} lies here", f"I see a {item} on the floor")
    for item in get_args(Item)
}
_DELIVERS = {
    f"deliver {item}": (f"put down the {item}", f"the {item} is home", f"The {item} has to stay here")
    for item in get_args(Item)
}

GUIDE: tuple[Explained, ...] = explanations(COMMANDS, OPCODES, _WALKS | _TAKES | _DELIVERS)
