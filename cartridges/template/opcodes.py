"""What the model may say: each opcode is a class, and its fields are the arguments."""

from __future__ import annotations

from typing import Literal

from kernel.opcode import Opcode, commands

NAME = "template"


class Move(Opcode):
    """Go one floor up or down."""

    way: Literal["up", "down"]


class Doors(Opcode):
    """Open the doors here, so that people get out and in."""


OPCODES: tuple[type[Opcode], ...] = (Move, Doors)

COMMANDS = commands(NAME, OPCODES)
"""Every instruction, in declaration order: move up, move down, doors."""
