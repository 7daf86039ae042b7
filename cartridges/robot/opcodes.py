"""The opcodes of the robot; all arguments are finite."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kernel.opcode import Opcode, commands

NAME = "robot"


class Drive(Opcode):
    """Drive straight by so many centimetres, half a metre to two metres."""

    way: Literal["forward", "back"]
    cm: int = Field(ge=50, le=200, multiple_of=50)


class Turn(Opcode):
    """Turn on the spot, a quarter to one side or half around."""

    way: Literal["left", "right", "around"]


class Speak(Opcode):
    """Say one of a few polite things aloud."""

    phrase: Literal["hello", "excuse-me", "thanks", "yes", "no", "goodbye"]


class Stop(Opcode):
    """Switch the motors off until the next drive or turn."""


OPCODES: tuple[type[Opcode], ...] = (Drive, Turn, Speak, Stop)

COMMANDS = commands(NAME, OPCODES)
"""Every instruction, in declaration order: 18 of them."""
