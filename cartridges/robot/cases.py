"""Labelled requests to the robot, one right command each. Nothing may be tuned on `test`."""

from __future__ import annotations

from pathlib import Path

from cartridges.robot.engine import RobotEngine
from cartridges.robot.opcodes import COMMANDS
from cartridges.robot.prompts import prompt
from kernel.casefile import RequestRow, case, read
from kernel.contract import Case
from kernel.opcode.words import words

FILE = Path(__file__).with_name("cases.jsonl")


def cases() -> list[Case]:
    """Return the cases in file order; the options of each are all commands, ` drive forward 50` and so on."""
    options = [words(command) for command in COMMANDS]
    return [case(row, prompt(RobotEngine(), (), row.request), options) for row in read(FILE, RequestRow)]
