"""Tests of the lift: its rules, its planner, and that it keeps the contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel.errors import IllegalInstructionError
from kernel.opcode import words

from .engine import ARRIVED, Lift, State
from .opcodes import COMMANDS, OPCODES
from .planner import LiftPlanner

BY_WORDS = {words(command, OPCODES): command for command in COMMANDS}


def lift(floor: int, *waiting: tuple[int, int]) -> Lift:
    """Return a lift on a floor, with people who wait (from, to)."""
    engine = Lift()
    engine.state = State(floor, waiting)
    return engine


def test_it_keeps_the_contract() -> None:
    """`python -m kernel check` finds nothing."""
    checked = subprocess.run(
        [sys.executable, "-m", "kernel", "check", str(Path(__file__).parent)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_there_is_no_way_up_from_the_top_and_no_door_to_open_for_nobody() -> None:
    """On floor 4 of 0 to 4, with one person waiting on floor 1, only down is legal."""
    assert [words(i, OPCODES) for i in lift(4, (1, 0)).legal()] == ["move down"]


def test_a_person_gets_in_and_out() -> None:
    """From 1 to 2: doors, up, doors."""
    engine = lift(1, (1, 2))
    engine.state = State(1, ((1, 2),), arrived=2)
    said = [engine.apply(BY_WORDS[text]) for text in ("doors", "move up", "doors")]
    assert said == ["0 got out, 1 got in", "now on floor 2", "1 got out, 0 got in"]
    assert engine.ended() == ARRIVED


def test_what_is_illegal_is_refused() -> None:
    """Nobody waits on floor 4."""
    with pytest.raises(IllegalInstructionError, match=r"doors\(\) is not legal here"):
        lift(4, (1, 0)).apply(BY_WORDS["doors"])


@pytest.mark.parametrize("seed", range(20))
def test_the_planner_serves_everyone(seed: int) -> None:
    """Its best option, taken again and again, ends with everyone at home."""
    engine = Lift()
    engine.reset(seed)
    while engine.ended() is None:
        engine.apply(LiftPlanner().rank(engine)[0].instruction)
    assert engine.ended() == ARRIVED
