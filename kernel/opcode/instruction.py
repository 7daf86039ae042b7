"""The record of one decoded instruction: the cartridge, the method and the arguments as canonical JSON text."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import Any, Self

from kernel.canon import canonical

NAME = re.compile(r"[a-z][a-z0-9_-]*")
"""What a cartridge or a method may be called."""
HALT = "halt"
"""The method of the shared instruction that ends a session; no cartridge may declare another one of that name."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One opcode as decoded and parsed, with its arguments.

    The arguments are kept as canonical JSON text, so that two instructions are equal exactly when their
    types agree as well (`1`, `true` and `"1"` are three values) and hashing is cheap.

    >>> Instruction.of("tetris", "place", column=7, rotation=2)
    tetris.place(column=7, rotation=2)
    """

    cartridge: str
    method: str
    arguments: str = "{}"

    @classmethod
    def of(cls, cartridge: str, method: str, /, **args: object) -> Self:
        """Build one from Python values, in the order given."""
        return cls(cartridge, method, canonical(args))

    @property
    def args(self) -> dict[str, Any]:
        """The arguments as a new dict, in declaration order."""
        loaded: dict[str, Any] = json.loads(self.arguments)
        return loaded

    @property
    def name(self) -> str:
        """`cartridge.method`, or `halt` for the shared halt."""
        return f"{self.cartridge}.{self.method}" if self.cartridge else self.method

    def __repr__(self) -> str:
        return f"{self.name}({_named(self.arguments)})"


@functools.lru_cache(4096)
def _named(arguments: str) -> str:
    """Say arguments as code; kept, because a trace writes the same few hundred of them at every step."""
    return ", ".join(f"{name}={value!r}" for name, value in json.loads(arguments).items())


HALT_INSTRUCTION = Instruction("", HALT)
"""The instruction that ends a session; it belongs to no cartridge and is stored once."""
