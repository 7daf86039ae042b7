"""Wire forms: how an instruction is written as text for the model and read back from it.

There are two forms. `compact` has the fewest tokens: an instruction in words, as `kernel.opcode.spelling` says it, then
the address of its cartridge on a line of its own. `tagged` is `<|call|>tetris.move {"action":"left"}<|/call|>`. What
tells the opcodes apart comes first; the rest is the closer, which is forced and never evaluated.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from kernel.errors import BuildError, UsageError, WireError, did_you_mean
from kernel.opcode import HALT, NAME, Instruction, Opcode, canonical
from kernel.opcode.spelling import first_words, read_words, words, words_shape
from kernel.shape.shape import Shape, seq
from kernel.trie.literal import Literal

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
