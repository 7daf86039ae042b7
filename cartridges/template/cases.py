"""Labelled requests, one right command each: what `eval` measures on. Nothing may be tuned on `test`."""

from __future__ import annotations

from pathlib import Path

from kernel.casefile import RequestRow, case, read
from kernel.contract import Case
from kernel.opcode.words import words
from kernel.prompt import explained

from .guide import GUIDE
from .opcodes import COMMANDS

FILE = Path(__file__).with_name("cases.jsonl")


def cases() -> list[Case]:
    """Return the cases in file order; the options of each are all commands."""
    options = [words(command) for command in COMMANDS]
    return [case(row, explained(row.request, GUIDE), options) for row in read(FILE, RequestRow)]
