"""The arguments of an opcode as its schema declares them: names, shapes of the values, what may be missing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kernel.shape.keywords import Note
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Shape


@dataclass(frozen=True)
class Argument:
    """One argument of an opcode.

    Attributes:
        shape: the texts that its value may have, as JSON.
        default: the JSON text that a missing value stands for; None when a missing argument stays missing.
    """

    name: str
    shape: Shape
    required: bool
    default: str | None = None
    description: str = ""

    @cached_property
    def recogniser(self) -> Recogniser:
        """The reader of texts of the value; it is made at the first use."""
        return Recogniser(self.shape)


@dataclass(frozen=True)
class Parameters:
    """What the schema of an opcode's arguments says: the arguments in order, the shape of their object, the notes."""

    arguments: tuple[Argument, ...]
    shape: Shape
    notes: tuple[Note, ...]
