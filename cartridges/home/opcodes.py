"""What one can tell the house, as opcodes with finite arguments. Knows no state and no prompt."""

from __future__ import annotations

from typing import Literal

from cartridges.casefile import commands
from kernel.opcode import Opcode

NAME = "home"

Room = Literal["kitchen", "bedroom", "bathroom", "hall"]


class Light(Opcode):
    """Switch the light of one room."""

    room: Room
    state: Literal["on", "off"]


class Heater(Opcode):
    """Move the heater's target by one degree."""

    change: Literal["warmer", "cooler"]


class Door(Opcode):
    """Lock or unlock the front door."""

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
