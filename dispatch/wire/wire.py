"""The opcodes of some cartridges as texts of one wire form: each instruction is written, each text read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from dispatch.wire.form import FORMS, Form
from kernel.errors import BuildError, OpcodeError, WireError, did_you_mean
from kernel.opcode import HALT, HALT_INSTRUCTION, Halt, Instruction, Opcode
from kernel.opcode.spelling import SLOT
from kernel.trie.literal import Literal


class Named(Protocol):
    """As much of a cartridge as a wire reads."""

    @property
    def name(self) -> str:
        """See Cartridge."""

    @property
    def opcodes(self) -> tuple[type[Opcode], ...]:
        """See Cartridge."""


class Wire:
    """The opcodes of some cartridges in one form: writes each instruction, and reads each text back as the same one.

    Raises BuildError when a cartridge is there twice or declares a method twice.
    """

    def __init__(self, cartridges: Iterable[Named], form: Form = FORMS["compact"]) -> None:
        self.form = form
        self._opcodes: dict[tuple[str, str], type[Opcode]] = {}
        names: set[str] = set()
        for cartridge in cartridges:
            if cartridge.name in names:
                raise BuildError(f"cartridge {cartridge.name!r} is there twice")
            names.add(cartridge.name)
            self._declare(cartridge.name, cartridge.opcodes)

    def _declare(self, cartridge: str, opcodes: Sequence[type[Opcode]]) -> None:
        for opcode in opcodes:
            if issubclass(opcode, Halt):
                continue
            if opcode.method == HALT:
                raise BuildError(f"{cartridge}.{HALT} is taken: it is the shared instruction that ends a session")
            if (cartridge, opcode.method) in self._opcodes:
                raise BuildError(f"{cartridge}.{opcode.method} is declared twice")
            required = sorted(a.name for a in opcode.arguments() if a.required)
            if opcode.wire_phrase and sorted(SLOT.findall(opcode.wire_phrase)) != required:
                raise BuildError(
                    f"{cartridge}.{opcode.method}: {opcode.wire_phrase!r} has to name {required} once each"
                )
            self._opcodes[cartridge, opcode.method] = opcode

    @property
    def opcodes(self) -> Mapping[tuple[str, str], type[Opcode]]:
        """The declared opcodes by (cartridge, method)."""
        return self._opcodes

    def literal(self, instruction: Instruction) -> Literal:
        """Return the text of an instruction; raises OpcodeError when its opcode is not declared."""
        if instruction == HALT_INSTRUCTION:
            return self.form.halt
        return self.form.literal(instruction, self._opcode(instruction.cartridge, instruction.method))

    def opening(self, cartridge: str, method: str, *, name_only: bool = False) -> Literal:
        """Return what stands for an open opcode among others: it ends where its arguments begin; see Form.

        Raises OpcodeError when it is not declared, BuildError when nothing tells it apart so early.
        """
        return self.form.opening(cartridge, self._opcode(cartridge, method), name_only=name_only)

    def parse(self, text: str) -> Instruction:
        """Return the one instruction that `text` is, to the last byte.

        Raises:
            WireError: it is not one, or not of a declared opcode, or its arguments are not valid.
        """
        if text == self.form.halt.text:
            return HALT_INSTRUCTION
        found = self.form.match(text)
        if found is None:
            raise WireError(f"{text!r} is not an instruction in the {self.form.name} form, like {self._example()!r}")
        cartridge, method, arguments = found
        try:
            opcode = self._opcode(cartridge, method)
            return opcode.from_arguments(self.form.arguments(arguments, opcode)).instruction(cartridge)
        except OpcodeError as error:
            raise WireError(str(error)) from error

    def _opcode(self, cartridge: str, method: str) -> type[Opcode]:
        opcode = self._opcodes.get((cartridge, method))
        if opcode is None:
            known = [f"{c}.{m}" for c, m in self._opcodes]
            raise OpcodeError(f"no opcode {f'{cartridge}.{method}'!r}{did_you_mean(f'{cartridge}.{method}', known)}")
        return opcode

    def _example(self) -> str:
        listed = ((c, o) for (c, _), o in self._opcodes.items() if not o.is_open())
        first = next((value.instruction(c) for c, opcode in listed for value in opcode.instances()), HALT_INSTRUCTION)
        return self.literal(first).text
