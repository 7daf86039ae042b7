"""Breadth-first search over copies, on an engine so small that every way can be counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import pytest

from cartridges.kit.search import NO_WAY, SLACK, ranked
from kernel.contract import Option
from kernel.opcode import Instruction

LEFT, RIGHT, STAY = (Instruction.of("line", way) for way in ("left", "right", "stay"))
TRAP = -2


class Line:
    """Cells TRAP..20 in a row; the trap at the left ends it."""

    def __init__(self, cell: int = 0) -> None:
        self.cell = cell
        self.applied = 0

    def reset(self, seed: int) -> None:
        """Start at the seed."""
        self.cell = seed

    def legal(self) -> Sequence[Instruction]:
        """Left, right, stay."""
        return () if self.ended() else (LEFT, RIGHT, STAY)

    def apply(self, instruction: Instruction) -> str:
        """Walk."""
        self.cell += {LEFT: -1, RIGHT: 1, STAY: 0}[instruction]
        self.applied += 1
        return "ok"

    def copy(self) -> Self:
        """Return a twin."""
        return type(self)(self.cell)

    def state_hash(self) -> str:
        """Return the cell."""
        return str(self.cell)

    def ended(self) -> str | None:
        """Return why the trap ended it."""
        return "trapped" if self.cell == TRAP else None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return nothing."""
        return {}


def options(line: Line, goal: int) -> list[Option]:
    """Return what the search finds, a way noted as such."""
    return ranked(line, lambda line: line.cell, lambda line: line.cell == goal, lambda way: "a way")


def find(start: int, goal: int) -> dict[str, tuple[int, str]]:
    """Return, by method, the length of the way and the note, the best first."""
    return {option.instruction.method: (len(option.plan), option.note) for option in options(Line(start), goal)}


def test_each_first_step_has_its_shortest_way() -> None:
    """From 0 to 3: right takes 3, stay 4, and left 5 because one must come back."""
    assert find(0, 3) == {"right": (3, "a way"), "stay": (4, "a way"), "left": (5, "a way")}


def test_a_step_that_ends_the_session_has_no_way_but_a_reason() -> None:
    """From -1 the trap is one step to the left."""
    assert find(-1, 1) == {"right": (2, "a way"), "stay": (3, "a way"), "left": (0, "trapped")}


def test_a_goal_that_nothing_reaches_gives_empty_plans() -> None:
    """Cell -5 lies behind the trap, and this line goes no other way."""

    class Short(Line):
        def legal(self) -> Sequence[Instruction]:
            return (LEFT, STAY) if not self.ended() else ()

    found = options(Short(-1), -5)
    assert [(option.plan, option.score, option.note) for option in found] == [
        ((), NO_WAY, "trapped"),
        ((), NO_WAY, "leads away"),
    ]


def test_the_search_gives_up_on_an_endless_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The goal is a million steps away; after 50 places there is no way yet and the search stops."""
    monkeypatch.setattr("cartridges.kit.search.MAX_PLACES", 50)
    assert find(0, 1_000_000) == dict.fromkeys(("left", "right", "stay"), (0, "leads away"))


def test_a_plan_begins_with_its_step_and_reaches_the_goal() -> None:
    """Each plan is played on a fresh line."""
    found = options(Line(), 4)
    assert [(option.instruction, option.score) for option in found] == [(RIGHT, -4), (STAY, -5), (LEFT, -6)]
    for option in found:
        line = Line()
        for instruction in option.plan:
            line.apply(instruction)
        assert option.plan[0] == option.instruction
        assert line.cell == 4


def test_the_search_changes_only_copies_and_stops_soon_after_the_goal() -> None:
    """The engine given is untouched; behind the start no cell is visited beyond the goal's distance and the slack."""
    line, visited = Line(10), set()

    def place(at: Line) -> int:
        visited.add(at.cell)
        return at.cell

    ranked(line, place, lambda at: at.cell == 13, lambda way: "")
    assert (line.cell, line.applied) == (10, 0)
    assert visited == set(range(10 - 3 - SLACK, 13 + 1))
