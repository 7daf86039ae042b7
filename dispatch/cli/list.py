"""`list`: prints the installed cartridges, one a line, and those that cannot be loaded."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Any

from rich.table import Table
from rich.text import Text

from dispatch.cli.common import AsJson
from dispatch.cli.output import failing, print_table, shown
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
        print(json.dumps([_row(f) for f in found], ensure_ascii=False, indent=2))
        return
    table = Table("name", "version", "origin", "opcodes", "what it does", box=None, pad_edge=False)
    for each in found:
        if (cartridge := each.cartridge) is not None:
            cells = (cartridge.name, cartridge.version, each.source.origin, _count(cartridge), cartridge.summary)
            table.add_row(*(Text(shown(cell)) for cell in cells))
    print_table(table)
    for each in found:
        if each.error is not None:
            print(f"broken: {shown(str(each.error))}", file=sys.stderr)
    if not found:
        print("no installed package advertises a cartridge: run make setup, or pip install one", file=sys.stderr)


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
