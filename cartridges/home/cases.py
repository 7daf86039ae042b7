"""The labelled requests of the house, one right command each: short everyday ones, and longer ones that only hint.

Nothing may be tuned on `test`.
"""

from __future__ import annotations

from pathlib import Path

from cartridges.home.engine import House
from cartridges.home.opcodes import COMMANDS
from cartridges.home.prompts import prompt
from kernel.casefile import RequestRow, case, read
from kernel.contract import Case
from kernel.opcode.words import words

FILE = Path(__file__).with_name("cases.jsonl")
HINTS_FILE = Path(__file__).with_name("hints.jsonl")


def cases() -> list[Case]:
    """Return the everyday requests in file order; each has all commands as options, ` light kitchen on` and so on."""
    return _labelled(FILE)


def hints() -> list[Case]:
    """Return the harder set, with the same options: most of its requests avoid the words of the command."""
    return _labelled(HINTS_FILE)


def _labelled(path: Path) -> list[Case]:
    options = [words(command) for command in COMMANDS]
    return [case(row, prompt(House(), (), row.request), options) for row in read(path, RequestRow)]
