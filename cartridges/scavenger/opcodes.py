"""The opcodes of the scavenger; all arguments are finite."""

from __future__ import annotations

from typing import Literal

from kernel.opcode import Opcode, commands

NAME = "scavenger"

Item = Literal["key", "coin", "gem"]


class Go(Opcode):
    """Walk one cell; north is up on the map."""

    direction: Literal["north", "east", "south", "west"]


class Take(Opcode):
    """Pick up the object that lies here; hands hold one."""

    item: Item


class Deliver(Opcode):
    """Put the object that you carry down at home."""

    item: Item


OPCODES: tuple[type[Opcode], ...] = (Go, Take, Deliver)

COMMANDS = commands(NAME, OPCODES)
"""Every instruction, in declaration order: 10 of them."""
