"""Labelled requests to the scavenger, one right command each. Nothing may be tuned on `test`."""

from __future__ import annotations

from pathlib import Path

from cartridges.scavenger.engine import ScavengerEngine
from cartridges.scavenger.opcodes import COMMANDS
from cartridges.scavenger.prompts import prompt
from kernel.casefile import RequestRow, case, read
from kernel.contract import Case
from kernel.opcode.words import words

FILE = Path(__file__).with_name("cases.jsonl")


def cases() -> list[Case]:
    """Return the cases in file order; the options of each are all commands, ` go north` and so on."""
    options = [words(command) for command in COMMANDS]
    return [case(row, prompt(ScavengerEngine(), (), row.request), options) for row in read(FILE, RequestRow)]
