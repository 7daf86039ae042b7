"""Breadth-first search over copies, on an engine so small that every way can be counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import pytest

from cartridges.kit.search import SLACK, routes
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


def find(start: int, goal: int) -> dict[str, tuple[int, str | None]]:
    """Return, by method, the length of the way and the reason of an ending."""
    found = routes(Line(start), lambda line: line.cell, lambda line: line.cell == goal)
    return {instruction.method: (len(route.plan), route.ended) for instruction, route in found.items()}


def test_each_first_step_has_its_shortest_way() -> None:
    """From 0 to 3: right takes 3, stay 4, and left 5 because one must come back."""
    assert find(0, 3) == {"left": (5, None), "right": (3, None), "stay": (4, None)}


def test_a_step_that_ends_the_session_has_no_way_but_a_reason() -> None:
    """From -1 the trap is one step to the left."""
    assert find(-1, 1) == {"left": (0, "trapped"), "right": (2, None), "stay": (3, None)}


def test_a_goal_that_nothing_reaches_gives_empty_plans() -> None:
    """Cell -5 lies behind the trap, and this line goes no other way."""

    class Short(Line):
        def legal(self) -> Sequence[Instruction]:
            return (LEFT, STAY) if not self.ended() else ()

    found = routes(Short(-1), lambda line: line.cell, lambda line: line.cell == -5)
    assert [(len(r.plan), r.ended) for r in found.values()] == [(0, "trapped"), (0, None)]


def test_the_search_gives_up_on_an_endless_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The goal is a million steps away; after 50 places there is no way yet and the search stops."""
    monkeypatch.setattr("cartridges.kit.search.MAX_PLACES", 50)
    assert find(0, 1_000_000) == {"left": (0, None), "right": (0, None), "stay": (0, None)}


def test_a_plan_begins_with_its_step_and_reaches_the_goal() -> None:
    """Each plan is played on a fresh line."""
    found = routes(Line(), lambda line: line.cell, lambda line: line.cell == 4)
    assert list(found) == [LEFT, RIGHT, STAY]
    for first, route in found.items():
        line = Line()
        for instruction in route.plan:
            line.apply(instruction)
        assert route.plan[0] == first
        assert line.cell == 4


def test_the_search_changes_only_copies_and_stops_soon_after_the_goal() -> None:
    """The engine given is untouched; no cell farther than the goal and the slack is visited."""
    line, visited = Line(), set()

    def place(at: Line) -> int:
        visited.add(at.cell)
        return at.cell

    routes(line, place, lambda at: at.cell == 3)
    assert (line.cell, line.applied) == (0, 0)
    assert visited == set(range(TRAP, 3 + SLACK + 1))
