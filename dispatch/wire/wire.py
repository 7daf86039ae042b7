"""Wire forms: an instruction as text and back, by plain regular expressions. Knows no tokens and no engine.

Two forms. `tagged` is the predecessor's: `<|call|>tetris.move {"action":"left"}<|/call|>`. `compact` has the fewest
tokens and reads as words: ` move left`, then the cartridge's address on a line of its own. In both, what tells the
opcodes apart comes first and the rest is the closer, which is forced and never evaluated.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from kernel.contract import Cartridge
from kernel.errors import BuildError, OpcodeError, UsageError, WireError, did_you_mean
from kernel.opcode import HALT, HALT_INSTRUCTION, NAME, Halt, Instruction, Opcode, canonical
from kernel.opcode.spelling import JSON_WORDS, SLOT, WORD, words
from kernel.trie.opcodes import Literal

NAMED = rf'{WORD.pattern}|"(?:[^"\\]|\\.)*"'
VALUE = re.compile(rf' (?:(?P<name>{NAMED})=)?(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s"])+)')
WHOLE_VALUE = r'(?:"(?:[^"\\]|\\.)*"|[^\s"])+'
_ONE_VALUE = VALUE.pattern.replace("?P<name>", "?:").replace("?P<value>", "?:")
COMPACT = re.compile(rf" (?P<method>{NAME.pattern})(?P<values>(?:{_ONE_VALUE})*)\n@(?P<cartridge>{NAME.pattern})\n")
PHRASED = re.compile(rf" (?P<body>[^\n]+)\n@(?P<cartridge>{NAME.pattern})\.(?P<method>{NAME.pattern})\n")
TAGGED = re.compile(
    rf"<\|call\|>(?P<cartridge>{NAME.pattern})\.(?P<method>{NAME.pattern}) (?P<arguments>\{{[^\n]*\}})<\|/call\|>\n"
)
ENDING = re.compile(r'"?[]}]+$')


class Form(Protocol):
    """How instructions are spelled."""

    name: str
    halt: Literal

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """Return the text of an instruction; what tells it apart in the body, the rest in the closer."""

    def opening(self, cartridge: str, opcode: type[Opcode]) -> Literal:
        """Return what stands for an opcode whose arguments are still to be written: its body is how they begin."""

    def match(self, text: str) -> tuple[str, str, Any] | None:
        """Return (cartridge, method, arguments in the form's own shape), or None."""

    def arguments(self, found: Any, opcode: type[Opcode]) -> str:
        """Return the matched arguments as JSON text."""


class Compact:
    """` light kitchen on`, newline, `@home`, newline. Required values by position, others as `name=value`.

    An opcode with a phrase is spelled by it and has its method in the address: ` 7 2`, newline, `@tetris.place`.
    """

    name = "compact"
    halt = Literal(f" {HALT}", "\n")

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """See Form."""
        required, others = {}, []
        args = instruction.args
        for argument in opcode.arguments():
            if argument.name not in args:
                continue
            value = args[argument.name]
            bare = isinstance(value, str) and value in _words(opcode)[argument.name]
            said = value if bare else canonical(value)
            if argument.required:
                required[argument.name] = said
            elif canonical(value) != argument.default:
                others.append(f"{_name(argument.name)}={said}")
        if opcode.wire_phrase:
            said = SLOT.sub(lambda slot: required[slot[1]], opcode.wire_phrase)
            return Literal(f" {' '.join([said, *others])}", f"\n@{instruction.name}\n")
        words = [instruction.method, *required.values(), *others]
        return Literal(f" {' '.join(words)}", f"\n@{instruction.cartridge}\n")

    def opening(self, cartridge: str, opcode: type[Opcode]) -> Literal:
        """See Form."""
        said, address = opcode.method, cartridge
        if opcode.wire_phrase:
            said = opcode.wire_phrase.partition("{")[0].rstrip()
            address = f"{cartridge}.{opcode.method}"
            if not said:
                raise BuildError(
                    f"{address}: nothing tells {opcode.wire_phrase!r} apart before its arguments are written; "
                    "begin it with a word"
                )
        return Literal(f" {said}", f"\n@{address}\n", label=f" {said} ...")

    def match(self, text: str) -> tuple[str, str, Any] | None:
        """See Form."""
        phrased = PHRASED.fullmatch(text)
        if phrased is not None:
            return phrased["cartridge"], phrased["method"], phrased["body"]
        found = COMPACT.fullmatch(text)
        if found is None:
            return None
        values = [(m["name"], m["value"]) for m in VALUE.finditer(found["values"])]
        return found["cartridge"], found["method"], values

    def arguments(self, found: Any, opcode: type[Opcode]) -> str:
        """See Form."""
        if isinstance(found, str):
            found = _phrased(found, opcode)
        arguments = opcode.arguments()
        required = [a.name for a in arguments if a.required]
        optional = {a.name for a in arguments if not a.required}
        positional = [value for name, value in found if not name]
        if len(positional) != len(required):
            raise WireError(f"{opcode.method}: {len(positional)} values for {len(required)} arguments {required}")
        by_name = dict(zip(required, positional, strict=True))
        for said, value in found:
            if not said:
                continue
            name = json.loads(_json(said)) if said.startswith('"') else said
            if name in by_name:
                raise WireError(f"{opcode.method}: argument {name!r} is given twice")
            if name not in optional:
                raise WireError(f"{opcode.method}: no argument {name!r}{did_you_mean(name, optional)}")
            by_name[name] = value
        return (
            "{"
            + ",".join(f"{canonical(a.name)}:{_json(by_name[a.name])}" for a in arguments if a.name in by_name)
            + "}"
        )


class Tagged:
    """`<|call|>tetris.move {"action":"left"}<|/call|>`, newline."""

    name = "tagged"
    halt = Literal(f"<|{HALT}|>", "\n")

    def literal(self, instruction: Instruction, opcode: type[Opcode]) -> Literal:
        """See Form. The brackets and the quote that end the arguments tell nothing apart, so they close it as well."""
        arguments = instruction.arguments
        said = ENDING.sub("", arguments)
        return Literal(f"<|call|>{instruction.name} {said}", f"{arguments[len(said) :]}<|/call|>\n")

    def opening(self, cartridge: str, opcode: type[Opcode]) -> Literal:
        """See Form. The name of the argument that comes first in any case belongs to it, as it does in a whole text."""
        begun = f"<|call|>{cartridge}.{opcode.method}"
        first = next(iter(opcode.arguments()), None)
        if first is None or (not first.required and first.default is None):
            return Literal(begun, " {", label=f"{begun} ...")
        begun = f"{begun} {{{canonical(first.name)[:-1]}"  # without the last quote, which is one token with the colon
        return Literal(begun, '":', label=f'{begun}": ...')

    def match(self, text: str) -> tuple[str, str, Any] | None:
        """See Form."""
        found = TAGGED.fullmatch(text)
        return None if found is None else (found["cartridge"], found["method"], found["arguments"])

    def arguments(self, found: Any, opcode: type[Opcode]) -> str:
        """See Form."""
        return str(found)


FORMS: dict[str, Form] = {form.name: form for form in (Compact(), Tagged())}


def form(name: str) -> Form:
    """Return a wire form by name; raises UsageError with a suggestion."""
    try:
        return FORMS[name]
    except KeyError:
        raise UsageError(f"no wire form {name!r}{did_you_mean(name, FORMS)}") from None


class Wire:
    """The opcodes of some cartridges in one form: renders each to text, parses text back to exactly its record.

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

    def opening(self, cartridge: str, method: str) -> Literal:
        """Return what stands for an open opcode among others: it ends where its arguments begin.

        Raises OpcodeError when it is not declared, BuildError when nothing tells it apart so early.
        """
        return self.form.opening(cartridge, self._opcode(cartridge, method))

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
        for (cartridge, _), opcode in self._opcodes.items():
            with contextlib.suppress(OpcodeError):  # an open opcode has no list of texts
                for first in opcode.instances():
                    return self.literal(first.instruction(cartridge)).text
        return self.form.halt.text


def _phrased(body: str, opcode: type[Opcode]) -> list[tuple[str | None, str]]:
    """Read an opcode's phrase backwards: its values in declaration order, then what is given by name."""
    pattern, last = "", 0
    for slot in SLOT.finditer(opcode.wire_phrase):
        pattern += re.escape(opcode.wire_phrase[last : slot.start()]) + f"(?P<{slot[1]}>{WHOLE_VALUE})"
        last = slot.end()
    pattern += re.escape(opcode.wire_phrase[last:]) + f"(?P<_others>(?:{_ONE_VALUE})*)"
    found = re.fullmatch(pattern, body) if opcode.wire_phrase else None
    if found is None:
        raise WireError(f"{opcode.method}: {body!r} is not said as {opcode.wire_phrase!r}")
    groups = found.groupdict()
    values: list[tuple[str | None, str]] = [(None, groups[a.name]) for a in opcode.arguments() if a.name in groups]
    return values + [(m["name"], m["value"]) for m in VALUE.finditer(found["_others"])]


@cache
def _words(opcode: type[Opcode]) -> dict[str, frozenset[str]]:
    """Return by argument the strings that stand bare."""
    return {argument.name: words(argument.shape) for argument in opcode.arguments()}


def _name(name: str) -> str:
    return name if WORD.fullmatch(name) else canonical(name)


def _json(word: str) -> str:
    if WORD.fullmatch(word) and word not in JSON_WORDS:
        return canonical(word)
    try:
        json.loads(word)
    except ValueError:
        raise WireError(f"{word!r} is neither a word nor JSON") from None
    return word
