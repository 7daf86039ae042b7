"""Holds what a log says of a choice against the wire form and the engines: text, instruction, legal rows, options.

A text is read back by the form that the header names; a log that names none may be in any. Token ids need the model's
vocabulary, so they are held against the text when a log is decided again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Self

from dispatch.log.records import DecisionRecord, Header
from dispatch.wire.form import FORMS, Form
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge, Engine
from kernel.errors import BuildError, KernelError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction
from kernel.recent import keep

READ_KEPT = 1 << 14
"""Texts whose instructions are kept."""

Leaf = Instruction | tuple[str, str]
"""An instruction, or cartridge and method of an opcode whose arguments are written."""


class Contradiction(NamedTuple):
    """A field of a decision, what it says, and what it should."""

    field: str
    logged: str
    found: str


class Reading(NamedTuple):
    """One form of the instructions of some cartridges, and the labels of their opcodes whose arguments are written."""

    wire: Wire
    labels: Mapping[str, tuple[str, str]]
    known: OrderedDict[str, Leaf | None]
    """Texts that were read before."""

    @classmethod
    def of(cls, cartridges: Collection[Cartridge], form: Form) -> Self:
        """Return the reading of a form; raises BuildError where it has no text for an opcode."""
        wire = Wire(cartridges, form)
        written = [each for each, opcode in wire.opcodes.items() if opcode.is_open()]
        labels = {wire.opening(*each).label: each for each in written}
        tools = [(c.name, opcode) for c in cartridges if c.tools for opcode in c.opcodes]
        labels |= {opcode.method: (name, opcode.method) for name, opcode in tools if not issubclass(opcode, Halt)}
        return cls(wire, labels, OrderedDict())

    def leaf(self, text: str) -> Leaf | None:
        """Return what a text says: an instruction, or an open opcode by its label; None where it says nothing."""
        if text not in self.known:
            keep(self.known, text, self._parsed(text), READ_KEPT)
        return self.known[text]

    def _parsed(self, text: str) -> Leaf | None:
        if text in self.labels:
            return self.labels[text]
        try:
            instruction = self.wire.parse(text)
            written = instruction == HALT_INSTRUCTION or self.wire.opcodes[_method(instruction)].is_open()
            return instruction if written or self.wire.literal(instruction).text == text else None
        except (KernelError, ValueError, RecursionError):
            return None


class Speller:
    """Reads the texts of a log back.

    Args:
        header: names the wire form, if a model chose.
    """

    def __init__(self, header: Header) -> None:
        self._forms = [FORMS[header.wire]] if header.wire is not None else list(FORMS.values())
        self._readings: list[Reading] = []
        self._cartridges: Mapping[str, Cartridge] = {}

    def use(self, cartridges: Mapping[str, Cartridge]) -> None:
        """Take note of who takes part from now on."""
        self._cartridges, self._readings = dict(cartridges), []

    def contradictions(self, record: DecisionRecord, engines: Mapping[str, Engine]) -> Iterator[Contradiction]:
        """Yield where a decision contradicts itself or what its engines, in the state in which it was made, allow."""
        offered = {offer.instruction.instruction() for offer in record.offered or ()}
        if len(offered) < len(record.offered or ()):
            yield Contradiction("offered", "an option twice", "each once")
        if offered and (odd := offered - self._legal(engines)):
            yield Contradiction("offered", repr(next(iter(odd))), "it is not legal")
        if not record.text:
            return
        instruction = record.instruction.instruction()
        try:
            self._readings = self._readings or [Reading.of(self._cartridges.values(), form) for form in self._forms]
        except BuildError as error:
            yield Contradiction("text", record.text, str(error))
            return
        meant = (instruction, _method(instruction)) if record.held else (instruction,)  # what is held is not written
        reading = next((each for each in self._readings if each.leaf(record.text) in meant), None)
        if reading is None:
            forms = " or ".join(form.name for form in self._forms)
            yield Contradiction("text", record.text, f"{instruction!r} as the {forms} form writes it")
        elif record.legal is not None:
            yield from self._choice(record, reading, engines)

    def _choice(
        self, record: DecisionRecord, reading: Reading, engines: Mapping[str, Engine]
    ) -> Iterator[Contradiction]:
        """Hold the legal rows against what may be chosen: all that is legal, or the offered options to be ratified."""
        instruction, taken = record.instruction.instruction(), record.taken
        if taken is None or reading.leaf(taken.text) not in (instruction, _method(instruction)):
            yield Contradiction("chosen", "none of the rows" if taken is None else taken.text, record.text)
        count = len(record.legal or ()) if record.legal_count is None else record.legal_count
        offered = {offer.instruction.instruction() for offer in record.offered or ()}
        only, *others = self._cartridges.values()
        leaves: Collection[Leaf] = self._chosen_among(engines, count)
        if offered and only.ratifies and not others:
            leaves = offered
        for row in record.legal or ():
            leaf = reading.leaf(row.text)
            if leaf is None or leaf not in leaves:
                yield Contradiction("legal", row.text, "nothing of that text may be chosen")
        if count != len(leaves):
            yield Contradiction("legal_count", str(count), str(len(leaves)))
        if record.preferred is not None and ((leaf := reading.leaf(record.preferred)) is None or leaf in leaves):
            yield Contradiction("preferred", record.preferred, "it is legal" if leaf else "no instruction")

    def _chosen_among(self, engines: Mapping[str, Engine], count: int) -> set[Leaf]:
        """Return what may be chosen.

        Of a cartridge of tools that is each tool, whatever its arguments, and a request to it does not end the session.
        Logs from before cartridges could say that they are tools have their listed calls instead; `count` tells.
        """
        legal = self._legal(engines)
        tools = {name for name, cartridge in self._cartridges.items() if cartridge.tools}
        if not tools or len(legal) == count:
            return legal
        each = {leaf for leaf in legal if not (isinstance(leaf, Instruction) and leaf.cartridge in tools)}
        for name in tools & engines.keys():
            each |= {(name, opcode.method) for opcode in self._cartridges[name].opcodes if not issubclass(opcode, Halt)}
        return each if len(each) == count else each - {HALT_INSTRUCTION}

    def _legal(self, engines: Mapping[str, Engine]) -> set[Leaf]:
        found: set[Leaf] = set()
        for name, engine in engines.items():
            found.update(engine.legal())
            opcodes = self._cartridges[name].opcodes
            if engine.ended() is None:
                found.update((name, opcode.method) for opcode in opcodes if opcode.is_open())
            if any(issubclass(opcode, Halt) for opcode in opcodes):
                found.add(HALT_INSTRUCTION)
        return found


def _method(instruction: Instruction) -> tuple[str, str]:
    return instruction.cartridge, instruction.method
