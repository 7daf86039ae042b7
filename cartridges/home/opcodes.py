"""The two sets of opcodes of the house: `commands` (a word for each value) and `typed` (numbers and free text)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from kernel.opcode import Instruction, Opcode, commands

NAME = "home"

Room = Literal["kitchen", "bedroom", "bathroom", "hall"]
Set = Literal["commands", "typed"]

COLDEST, WARMEST = 16, 26
LONGEST = 180
"""Minutes."""
LETTERS = 60


class Light(Opcode):
    """Switch the light of one room."""

    room: Room
    state: Literal["on", "off"]


class Heater(Opcode):
    """Move the heater's target by one degree."""

    change: Literal["warmer", "cooler"]


class Door(Opcode):
    """Lock or unlock the front door."""

    confirm: ClassVar[bool] = True

    action: Literal["lock", "unlock"]


class Blinds(Opcode):
    """Move the blinds of all windows."""

    action: Literal["open", "close"]


class Music(Opcode):
    """Play or stop, change the volume by one step, or go on to the next track."""

    action: Literal["play", "stop", "louder", "quieter", "next"]


class Vacuum(Opcode):
    """Send the robot vacuum to work or back to its dock."""

    action: Literal["start", "dock"]


class Timer(Opcode):
    """Start the ten-minute timer, stop it, or ask how much is left."""

    action: Literal["start", "stop", "check"]


OPCODES: tuple[type[Opcode], ...] = (Light, Heater, Door, Blinds, Music, Vacuum, Timer)

COMMANDS = commands(NAME, OPCODES)
"""Every instruction, in declaration order: 24 of them."""


class Lamp(Opcode):
    """Switch the light of one room."""

    method: ClassVar[str] = "light"
    room: Room
    on: bool


class Thermostat(Opcode):
    """Set the heater's target."""

    celsius: float = Field(ge=COLDEST, le=WARMEST, multiple_of=0.5)


class Countdown(Opcode):
    """Start the timer."""

    method: ClassVar[str] = "timer"
    minutes: int = Field(ge=1, le=LONGEST)


class Remind(Opcode):
    """Keep a reminder, in words of the model's own."""

    text: str = Field(min_length=1, max_length=LETTERS)


TYPED: tuple[type[Opcode], ...] = (Lamp, Thermostat, Door, Blinds, Music, Vacuum, Countdown, Remind)

SETS: dict[Set, tuple[type[Opcode], ...]] = {"commands": OPCODES, "typed": TYPED}

LISTED: dict[Set, tuple[Instruction, ...]] = {name: commands(NAME, opcodes) for name, opcodes in SETS.items()}
"""Every instruction of a set that can be listed: 24, and 220; beside those a model writes reminders."""
