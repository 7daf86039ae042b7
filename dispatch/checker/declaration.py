"""Checks of what a cartridge declares: words, labelled cases, pictures, and opcodes that become token ids and text."""

from __future__ import annotations

import io
from collections import Counter

from rich.console import Console

from dispatch.checker.report import FaultError, SkipError
from dispatch.checker.subject import Subject, text
from kernel.errors import KernelError
from kernel.opcode import HALT_INSTRUCTION, NAME, Halt
from kernel.opcode import words as said
from kernel.trie.opcodes import OpcodeSet

WIDTHS = (20, 80, 200)
"""Columns of the terminals that a picture has to fit."""

LISTED = 100
"""Instructions that a guide has to explain one by one."""

SUMMARY = 120
"""Characters of the line that `list` shows."""


def words(subject: Subject) -> str:
    """Name, version, summary and opcodes are declared."""
    cartridge = subject.cartridge
    if not NAME.fullmatch(cartridge.name):
        raise FaultError(f"name {cartridge.name!r} does not match {NAME.pattern!r}")
    if not cartridge.version or "@" in cartridge.version:
        raise FaultError(f"version {cartridge.version!r} is empty or holds an @")
    if not cartridge.summary or not cartridge.summary.isprintable() or len(cartridge.summary) > SUMMARY:
        raise FaultError(f"summary {cartridge.summary!r} is not one line of 1 to {SUMMARY} characters")
    if cartridge.offered < 1:
        raise FaultError(f"offered={cartridge.offered!r}; at least one option is offered")
    methods = Counter(opcode.method for opcode in cartridge.opcodes)
    if twice := [method for method, count in methods.items() if count > 1]:
        raise FaultError(f"two opcodes have the method {twice[0]!r}")
    if silent := [opcode.__name__ for opcode in cartridge.opcodes if not (opcode.__doc__ or "").strip()]:
        raise FaultError(f"opcode {silent[0]} has no docstring; it says what the opcode does")
    if not cartridge.opcodes:
        raise FaultError("there are no opcodes")
    known = f"{len(cartridge.opcodes)} opcodes, {len(subject.instructions)} instructions"
    return f"{known}, {len(subject.open)} of the opcodes open" if subject.open else known


def guide(subject: Subject) -> str:
    """The guide explains every instruction once.

    Of opcodes that are open, or are more than a prompt holds, it has examples: at least one of each opcode.
    """
    explained = Counter(each.words for each in subject.cartridge.guide)
    if not explained:
        raise SkipError("there is no guide")
    if subject.open or len(subject.instructions) > LISTED:
        return _examples(subject, explained)
    opcodes = subject.cartridge.opcodes
    known = [said(command, opcodes) for command in subject.instructions if command != HALT_INSTRUCTION]
    if missing := [words for words in known if words not in explained]:
        raise FaultError(f"it says nothing of {missing[0]!r}, which is then hardly ever chosen")
    if odd := [words for words in explained if words not in known]:
        raise FaultError(f"it explains {odd[0]!r}, which is no instruction")
    if (top := explained.most_common(1)[0])[1] > 1:
        raise FaultError(f"it explains {top[0]!r} {top[1]} times")
    return f"{len(known)} instructions"


def _examples(subject: Subject, explained: Counter[str]) -> str:
    begun = {words.partition(" ")[0] for words in explained}
    methods = [opcode.method for opcode in subject.cartridge.opcodes if not issubclass(opcode, Halt)]
    if missing := [method for method in methods if method not in begun]:
        raise FaultError(f"it has no example of {missing[0]!r}, which is then hardly ever chosen")
    if odd := [words for words in explained if words.partition(" ")[0] not in methods]:
        raise FaultError(f"its example {odd[0]!r} begins with no opcode")
    return f"{sum(explained.values())} examples of {len(methods)} opcodes"


def compiles(subject: Subject) -> str:
    """Every opcode compiles on every vocabulary."""
    if not subject.vocabularies or not subject.wires:
        raise SkipError("needs vocabularies and a wire form")
    if not subject.instructions:
        raise SkipError("no opcode can be written out")
    longest = 0
    for form, wire in subject.wires.items():
        literals = [wire.literal(instruction) for instruction in subject.instructions]
        for name, vocabulary in subject.vocabularies.items():
            try:
                compiled = OpcodeSet(literals, vocabulary)
            except KernelError as error:
                raise FaultError(f"{form} on {name}: {error}") from error
            if len(compiled) != len(subject.instructions):
                raise FaultError(f"{form} on {name}: {len(compiled)} of {len(subject.instructions)} can be reached")
            longest = max(longest, int(compiled.scored.max()))
    told = f"{len(subject.instructions)} instructions, {' and '.join(subject.wires)}"
    return f"{told}, on {', '.join(subject.vocabularies)}; at most {longest} tokens tell one"


def parses(subject: Subject) -> str:
    """Every opcode parses back to itself."""
    if not subject.wires:
        raise SkipError("needs a wire form")
    for form, wire in subject.wires.items():
        for instruction in subject.instructions:
            written = wire.literal(instruction).text
            try:
                back = wire.parse(written)
            except KernelError as error:
                raise FaultError(f"{form}: {written!r} does not parse: {error}") from error
            if back != instruction:
                raise FaultError(f"{form}: {instruction!r} is written {written!r}, which is {back!r}")
    return f"{len(subject.instructions)} instructions, {' and '.join(subject.wires)}"


def pictures(subject: Subject) -> str:
    """The view draws at any width."""
    drawn = 0
    for where, engine in subject.game(subject.seeds[0], 10):
        before = engine.state_hash()
        for width in WIDTHS:
            console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
            console.print(subject.cartridge.view.render(engine))
            drawn += 1
        if engine.state_hash() != before:
            raise FaultError(f"{where}: render() changes the engine")
    return f"{drawn} pictures, {', '.join(map(str, WIDTHS))} columns wide"


def cases(subject: Subject) -> str:
    """Labelled cases hold what is right."""
    cartridge = subject.cartridge
    sets = {"": cartridge.cases} if cartridge.cases is not None else {}
    sets |= cartridge.more_cases
    if not sets:
        raise SkipError("there are no labelled cases")
    told = []
    for name, make in sets.items():
        where = f"{name}: " if name else ""
        found = make()
        if not found:
            raise FaultError(f"{where}there are no cases; leave the set out instead")
        ids = Counter(case.id for case in found)
        if (top := ids.most_common(1)[0])[1] > 1:
            raise FaultError(f"{where}the id {top[0]!r} stands {top[1]} times")
        for case in found:
            which = f"{where}case {case.id}"
            if len(set(case.options)) < max(2, len(case.options)):
                raise FaultError(f"{which}: its options are not two or more different ones: {case.options!r}")
            if case.answer not in case.options and not (case.kind and not case.answer):
                raise FaultError(f"{which}: the answer {case.answer!r} is not among its options")
            if any(text(null) == text(case.prompt.parts) for null in case.prompt.nulls):
                raise FaultError(f"{which}: a null prompt is the prompt itself")
        splits = Counter(case.split for case in found)
        told.append(where + ", ".join(f"{count} {split}" for split, count in sorted(splits.items())))
    return "; ".join(told)
