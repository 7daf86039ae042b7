"""What is declared: opcodes, out of classes, JSON Schemas or tool lists, and the instructions that they become.

How an instruction is said stands here as well, once, for prompts and wire forms alike.
"""

from kernel.opcode.opcode import (
    HALT,
    HALT_INSTRUCTION,
    NAME,
    Argument,
    Halt,
    Instruction,
    Opcode,
    canonical,
)

__all__ = ["HALT", "HALT_INSTRUCTION", "NAME", "Argument", "Halt", "Instruction", "Opcode", "canonical"]
