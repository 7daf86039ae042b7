"""Small functions for engines, planners and views: the state hash, errors for what is refused, the engine's type."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeVar

from kernel.contract import Engine
from kernel.errors import CartridgeError, IllegalInstructionError, UsageError, did_you_mean
from kernel.opcode import Instruction

E = TypeVar("E", bound=Engine)
K = TypeVar("K", bound=str)
V = TypeVar("V")

LISTED = 5
"""How many legal instructions a refusal names."""


def hashed(text: str) -> str:
    """Return `b2:` and 16 hex digits over a text that says a whole state.

    >>> hashed("north")
    'b2:d40a7f0746298c55'
    """
    return "b2:" + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def refusal(engine: Engine, instruction: Instruction) -> IllegalInstructionError:
    """Return the error for an instruction that is not legal now; it says why, and what would be legal."""
    if (why := engine.ended()) is not None:
        return IllegalInstructionError(f"{instruction!r} comes too late: {why}")
    legal = [repr(each) for each in engine.legal()]
    some = ", ".join(legal[:LISTED]) + (f" and {len(legal) - LISTED} more" if len(legal) > LISTED else "")
    return IllegalInstructionError(f"{instruction!r} is not legal here; legal are {some}")


def own(engine: Engine, kind: type[E]) -> E:
    """Return the engine as the type that a planner or a view works with.

    Raises CartridgeError for an engine of another type.
    """
    if not isinstance(engine, kind):
        raise CartridgeError(f"this planner or view does not work with {engine!r}; give it a {kind.__name__}")
    return engine


def opcode_set(cartridge: str, name: K, sets: Mapping[K, V]) -> V:
    """Return the opcodes of the set with that name.

    >>> opcode_set("home", "typd", {"commands": 1, "typed": 2})
    Traceback (most recent call last):
    kernel.errors.UsageError: home: no set of opcodes 'typd'; did you mean 'typed'?
    """
    if name not in sets:
        raise UsageError(f"{cartridge}: no set of opcodes {name!r}{did_you_mean(str(name), sets)}")
    return sets[name]
