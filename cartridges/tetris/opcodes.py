"""The two opcodes of Tetris: `move` presses one of five keys, `place` puts the piece down in a column, turned.

A placement is said in one of two ways: as two numbers, `3-1`, or as a syllable, `fe`, which is a single token in many
vocabularies. The consonant is the column and the vowel the rotation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from kernel.opcode import Instruction, Opcode

NAME = "tetris"

Action = Literal["left", "right", "rotate", "down", "drop"]
OpcodeSet = Literal["moves", "place", "syllables"]
"""`syllables` is `place` said as syllables; logs from before there were any name `place`."""


class Move(Opcode):
    """Press one key."""

    wire_phrase: ClassVar[str] = "{action}"
    action: Action


class Place(Opcode):
    """Put the piece down with its leftmost cells in a column, after that many clockwise turns."""

    wire_phrase: ClassVar[str] = "{column}-{rotation}"
    column: int = Field(ge=0, le=9)
    rotation: Literal[0, 1, 2, 3]


class Syllable(Place):
    """Put the piece down with its leftmost cells in a column, after that many clockwise turns."""

    method: ClassVar[str] = Place.method
    wire_phrase: ClassVar[str] = "{column}{rotation}"
    wire_values: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "column": dict(zip("0123456789", "bcdfghklmn", strict=True)),
        "rotation": dict(zip("0123", "aeio", strict=True)),
    }


OPCODES: dict[OpcodeSet, type[Opcode]] = {"moves": Move, "place": Place, "syllables": Syllable}

KEYS: dict[Action, Instruction] = {move.action: move.instruction(NAME) for move in Move.instances()}
"""The instruction of each key, in the order of the declaration."""

SPOTS: dict[tuple[int, int], Instruction] = {
    (place.column, place.rotation): place.instruction(NAME) for place in Place.instances()
}
"""The instruction of each (column, rotation), column by column."""
