"""`list`: prints the installed cartridges, one a line, and those that cannot be loaded."""

from __future__ import annotations

import itertools
from typing import Any

from dispatch.cli.common import AsJson
from dispatch.cli.output import failing, note, print_json, print_rows
from dispatch.loading.registry import Registry, ScanResult
from kernel.contract import Cartridge
from kernel.errors import OpcodeError

COUNTED = 100_000
"""Instructions are counted up to here."""


def list_command(as_json: AsJson = False) -> None:
    """List the installed cartridges: version, where each comes from, instructions, what it does.

    One that is broken is named on stderr, with the reason; it harms nothing. A module or a folder is a cartridge too:
    run package.module, run ./folder.
    """
    with failing():
        found = Registry().scan()
    if as_json:
        print_json([_row(f) for f in found])
        return
    good = [(each.source.origin, each.cartridge) for each in found if each.cartridge is not None]
    print_rows(
        ["name", "version", "origin", "opcodes", "what it does"],
        [(made.name, made.version, origin, _count(made), made.summary) for origin, made in good],
    )
    for each in found:
        if each.error is not None:
            note(f"broken: {each.error}")
    if not found:
        note("no installed package advertises a cartridge: run make setup, or pip install one")


def opcode_count(cartridge: Cartridge) -> tuple[int, int]:
    """Return how many instructions the opcodes stand for, counted up to COUNTED, and how many opcodes are open."""
    counted = unwritten = 0
    for opcode in cartridge.opcodes:
        try:
            counted += sum(1 for _ in itertools.islice(opcode.instances(), COUNTED - counted))
        except OpcodeError:
            unwritten += 1
    return counted, unwritten


def _count(cartridge: Cartridge) -> str:
    counted, unwritten = opcode_count(cartridge)
    number = f"{COUNTED} or more" if counted >= COUNTED else str(counted)
    return number if not unwritten else f"{number} + {unwritten} open" if counted else f"{unwritten} open"


def _row(found: ScanResult) -> dict[str, Any]:
    source = found.source
    row: dict[str, Any] = {"id": source.id, "origin": source.origin, "target": source.target}
    if (cartridge := found.cartridge) is None:
        return row | {"error": str(found.error)}
    counted, unwritten = opcode_count(cartridge)
    return row | {
        "name": cartridge.name,
        "version": cartridge.version,
        "opcodes": counted,
        "open_opcodes": unwritten,
        "summary": cartridge.summary,
        "error": None,
    }
