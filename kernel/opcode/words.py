"""How an instruction is said in plain words, and the names that follow from it."""

from __future__ import annotations

import keyword
from collections.abc import Iterable

from kernel.canon import canonical
from kernel.opcode.instruction import Instruction
from kernel.opcode.opcode import Opcode


def words(instruction: Instruction) -> str:
    """Return an instruction as a person would type it: the method and its values, one space between them.

    >>> words(Instruction.of("home", "light", room="kitchen", state="on"))
    'light kitchen on'
    >>> words(Instruction.of("robot", "stop"))
    'stop'
    """
    values = [v if isinstance(v, str) else canonical(v) for v in instruction.args.values()]
    return " ".join([instruction.method, *values])


def commands(cartridge: str, opcodes: Iterable[type[Opcode]]) -> tuple[Instruction, ...]:
    """Return every instruction of opcodes whose arguments are finite, in declaration order."""
    return tuple(value.instruction(cartridge) for opcode in opcodes for value in opcode.instances())


def function_name(method: str) -> str:
    """Return the name of the function that carries out a method.

    >>> function_name("shelf-scan"), function_name("import")
    ('shelf_scan', 'import_')
    """

    name = method.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name
