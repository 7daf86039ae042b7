"""The arguments of an opcode as its schema declares them: names, shapes of the values, what may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernel.canon import canonical
from kernel.shape.recogniser import Recogniser
from kernel.shape.shape import Shape

if TYPE_CHECKING:  # opcodes are declared long before a schema is read
    from kernel.shape.keywords import Note


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

    def accepts(self, value: Any) -> bool:
        """Whether this is a value of the argument; of a number, any way to write it counts."""
        from kernel.shape.numbers import spelled

        return self.recogniser.accepts(canonical(value)) or self.recogniser.accepts(spelled(value))


@dataclass(frozen=True)
class Parameters:
    """What the schema of an opcode's arguments says.

    Attributes:
        arguments: all arguments in order.
        shape: the shape of their object.
        alternatives: the arguments of each alternative, where the schema has some; one otherwise.
        low, high: bounds of the number of arguments that are given.
    """

    arguments: tuple[Argument, ...]
    shape: Shape
    notes: tuple[Note, ...]
    alternatives: tuple[tuple[Argument, ...], ...]
    low: int = 0
    high: int | None = None

    def allow(self, values: Mapping[str, Any]) -> bool:
        """Whether values, each of which its argument accepts, may stand together."""
        if len(values) < self.low or (self.high is not None and len(values) > self.high):
            return False
        return len(self.alternatives) == 1 or any(self._fits(values, way) for way in self.alternatives)

    @staticmethod
    def _fits(values: Mapping[str, Any], way: tuple[Argument, ...]) -> bool:
        named = {argument.name: argument for argument in way}
        if any(argument.required and argument.name not in values for argument in way):
            return False
        return all(name in named and named[name].accepts(value) for name, value in values.items())
