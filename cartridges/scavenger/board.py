"""Draws the map of a seed: walls, pits, home, and objects that can all be fetched within the budget."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from cartridges.scavenger.opcodes import Item

WIDTH, HEIGHT = 10, 7
WALLS = 14
PITS = 4
BUDGET = 80

Cell = tuple[int, int]
"""Column from the left, row from the top."""

STEPS: dict[str, Cell] = {"north": (0, -1), "east": (1, 0), "south": (0, 1), "west": (-1, 0)}


@dataclass(frozen=True, slots=True)
class Board:
    """What never changes in a game: where walls, pits, home and the objects at first are."""

    walls: frozenset[Cell]
    pits: frozenset[Cell]
    home: Cell
    items: tuple[tuple[Item, Cell], ...]

    def open(self, cell: Cell) -> bool:
        """Return whether one can walk there, which a pit does not hinder."""
        return 0 <= cell[0] < WIDTH and 0 <= cell[1] < HEIGHT and cell not in self.walls

    def moves_needed(self) -> int | None:
        """Return the moves that fetching all objects takes at best, or None where that cannot be done.

        Each object costs the way there and back, one move to take it and one to deliver it.
        """
        away = distances(self.home, lambda cell: self.open(cell) and cell not in self.pits)
        ways = [away.get(cell) for _, cell in self.items]
        return sum(2 * way + 2 for way in ways if way is not None) if None not in ways else None


def distances(start: Cell, passable: Callable[[Cell], bool]) -> dict[Cell, int]:
    """Return the steps from `start` to every cell that can be walked to."""
    steps = {start: 0}
    waiting = deque([start])
    while waiting:
        x, y = here = waiting.popleft()
        for dx, dy in STEPS.values():
            cell = (x + dx, y + dy)
            if cell not in steps and passable(cell):
                steps[cell] = steps[here] + 1
                waiting.append(cell)
    return steps


def draw(seed: int) -> Board:
    """Return the map of a seed: the first one drawn that needs at most three quarters of the budget."""
    rng = random.Random(seed)
    cells = [(x, y) for y in range(HEIGHT) for x in range(WIDTH)]
    names: tuple[Item, ...] = get_args(Item)
    while True:
        home, *rest = rng.sample(cells, 1 + len(names) + WALLS + PITS)
        places, rest = rest[: len(names)], rest[len(names) :]
        board = Board(frozenset(rest[:WALLS]), frozenset(rest[WALLS:]), home, tuple(zip(names, places, strict=True)))
        needed = board.moves_needed()
        if needed is not None and needed <= BUDGET * 3 // 4:
            return board
