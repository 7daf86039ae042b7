"""What is declared: opcodes, from classes, JSON Schemas or tool lists, and the instructions that they become.

How an instruction is said stands here as well, once, for prompts and wire forms alike.
"""

from kernel.canon import canonical
from kernel.opcode.instruction import HALT, HALT_INSTRUCTION, NAME, Instruction
from kernel.opcode.opcode import Halt, Opcode, commands
from kernel.opcode.spelling import words
from kernel.shape.argument import Argument

__all__ = [
    "HALT",
    "HALT_INSTRUCTION",
    "NAME",
    "Argument",
    "Halt",
    "Instruction",
    "Opcode",
    "canonical",
    "commands",
    "words",
]
