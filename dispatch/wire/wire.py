"""Wire forms: how an instruction is written as text for the model and read back from it.

There are two forms. `compact` has the fewest tokens: an instruction in words, as `kernel.opcode.spelling` says it, then
the address of its cartridge on a line of its own. `tagged` is `<|call|>tetris.move {"action":"left"}<|/call|>`. What
tells the opcodes apart comes first; the rest is the closer, which is forced and never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from kernel.contract import Cartridge
from kernel.errors import BuildError, OpcodeError, UsageError, WireError, did_you_mean
from kernel.opcode import HALT, HALT_INSTRUCTION, NAME, Halt, Instruction, Opcode, canonical
from kernel.opcode.spelling import SLOT, first_words, read_words, words, words_shape
from kernel.shape.shape import Shape, seq
from kernel.trie.opcodes import Literal

COMPACT = re.compile(
    rf" (?P<body>(?P<first>{NAME.pattern})?[^\n]*)\n@(?P<cartridge>{NAME.pattern})(?:\.(?P<method>{NAME.pattern}))?\n"
)
"""The words after a space, then the address on a line of its own. The method is the first word, unless it stands in the
address because the words are those of a phrase. No words hold a newline: JSON escapes those in strings."""
TAGGED = re.compile(
    rf"<\|call\|>(?P<cartridge>{NAME.pattern})\.(?P<method>{NAME.pattern}) (?P<arguments>\{{[^\n]*\}})<\|/call\|>\n"
)
"""`<|call|>home.light {...}<|/call|>`, newline. The mark that ends the object is the one at the end of the text, so a
mark inside a string ends nothing."""
ENDING = re.compile(r'"?[]}]+$')
"""The brackets that end a JSON text, with the quote before them."""


class Form(Protocol):
    """One way to write instructions as text.

    `literal` writes an instruction whose arguments are known. `opening` and `shape` are for an opcode whose arguments a
    model writes: the text that is chosen among others, and the language of the whole text. `match` and `arguments` read
    a text back.
    """

    name: str
    halt: Literal

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """Return the text of an instruction; what tells it apart in the body, the rest in the closer."""

    def opening(self, cartridge: str, opcode: type[Opcode], *, name_only: bool = False) -> Literal:
        """Return what stands for an opcode whose arguments are still to be written: its body is how its text begins.

        With `name_only` that is the name of the method; otherwise it is all that comes before the first value, as it
        is in the texts of instructions that stand beside it.
        """

    def shape(self, cartridge: str, opcode: type[Opcode]) -> Shape:
        """Return the shape of the texts of an opcode, open arguments and the closer included."""

    def match(self, text: str) -> tuple[str, str, Any] | None:
        """Return (cartridge, method, what `arguments` reads), or None where the text is none of this form."""

    def arguments(self, found: Any, opcode: type[Opcode]) -> str:
        """Return the matched arguments as JSON text."""


class Compact:
    """` light kitchen on`, newline, `@home`, newline.

    An opcode with a phrase has its method in the address: ` 7-2`, newline, `@tetris.place`, newline.
    """

    name = "compact"
    halt = Literal(f" {HALT}", "\n")

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """See Form."""
        return Literal(f" {words(instruction, [opcode])}", self._address(instruction.cartridge, opcode))

    def opening(self, cartridge: str, opcode: type[Opcode], *, name_only: bool = False) -> Literal:
        """See Form."""
        said = first_words(opcode)
        if not said:
            raise BuildError(
                f"{cartridge}.{opcode.method}: nothing tells {opcode.wire_phrase!r} apart before its arguments are "
                "written; begin it with a word"
            )
        return Literal(f" {said}", self._address(cartridge, opcode), label=f" {said} ...")

    def shape(self, cartridge: str, opcode: type[Opcode]) -> Shape:
        """See Form."""
        return seq(" ", words_shape(opcode), self._address(cartridge, opcode))

    def match(self, text: str) -> tuple[str, str, tuple[str, bool]] | None:
        """See Form."""
        found = COMPACT.fullmatch(text)
        if found is None or not (method := found["method"] or found["first"]):
            return None
        return found["cartridge"], method, (found["body"], found["method"] is not None)

    def arguments(self, found: tuple[str, bool], opcode: type[Opcode]) -> str:
        """See Form."""
        body, in_address = found
        if in_address != bool(opcode.wire_phrase):
            where = "the address" if opcode.wire_phrase else "the words"
            raise WireError(f"{opcode.method}: {body!r} has its method in the wrong place; it belongs into {where}")
        return read_words(body, opcode)

    @staticmethod
    def _address(cartridge: str, opcode: type[Opcode]) -> str:
        return f"\n@{cartridge}.{opcode.method}\n" if opcode.wire_phrase else f"\n@{cartridge}\n"


class Tagged:
    """`<|call|>tetris.move {"action":"left"}<|/call|>`, newline."""

    name = "tagged"
    halt = Literal(f"<|{HALT}|>", "\n")

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """See Form. The brackets and the quote that end the arguments tell nothing apart, so they close it as well."""
        arguments = instruction.arguments
        said = ENDING.sub("", arguments)
        return Literal(f"<|call|>{instruction.name} {said}", f"{arguments[len(said) :]}<|/call|>\n")

    def opening(self, cartridge: str, opcode: type[Opcode], *, name_only: bool = False) -> Literal:
        """See Form. The name of the first argument is part of it where that argument comes first in any case."""
        begun = f"<|call|>{cartridge}.{opcode.method}"
        first = next(iter(opcode.arguments()), None)
        if name_only or first is None or (not first.required and first.default is None):
            return Literal(begun, " {", label=f"{begun} ...")
        begun = f"{begun} {{{canonical(first.name)[:-1]}"  # without the last quote, which is one token with the colon
        return Literal(begun, '":', label=f'{begun}": ...')

    def shape(self, cartridge: str, opcode: type[Opcode]) -> Shape:
        """See Form."""
        return seq(f"<|call|>{cartridge}.{opcode.method} ", opcode.arguments_shape(), "<|/call|>\n")

    def match(self, text: str) -> tuple[str, str, str] | None:
        """See Form."""
        found = TAGGED.fullmatch(text)
        return None if found is None else (found["cartridge"], found["method"], found["arguments"])

    def arguments(self, found: str, opcode: type[Opcode]) -> str:
        """See Form."""
        return found


FORMS: dict[str, Form] = {form.name: form for form in (Compact(), Tagged())}


def form(name: str) -> Form:
    """Return a wire form by name; raises UsageError with a suggestion."""
    try:
        return FORMS[name]
    except KeyError:
        raise UsageError(f"no wire form {name!r}{did_you_mean(name, FORMS)}") from None


class Wire:
    """The opcodes of some cartridges in one form: writes each instruction, and reads each text back as the same one.

    Raises BuildError when a cartridge is there twice or declares a method twice.
    """

    def __init__(self, cartridges: Iterable[Cartridge], form: Form = FORMS["compact"]) -> None:
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
