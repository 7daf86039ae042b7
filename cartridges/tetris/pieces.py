"""The seven pieces and their rotations.

A piece stands at the column of its leftmost cells and the row of its topmost ones.

Rotation system: `rotate` turns clockwise, the top row stays, there are no wall kicks. The leftmost column moves as the
tables in PIECES say, so that four (or two) turns come back to where they began. I, S and Z have two rotations, O one.
"""

from __future__ import annotations

from typing import NamedTuple

from cartridges.tetris.board import HEIGHT, WIDTH

SPAWN_TOP = HEIGHT - 1


class Shape(NamedTuple):
    """One rotation of a piece.

    `mask` are its cells with the leftmost column and the bottom row at 0, `cells` the same as bit numbers,
    `shift` the columns that its left edge moves when the piece turns into it, `inside` the lower left corners
    at which it lies within the walls.
    """

    mask: int
    cells: tuple[int, ...]
    height: int
    shift: int
    inside: int


class Piece(NamedTuple):
    """A piece: the column where it enters, its distinct rotations in clockwise order."""

    column: int
    shapes: tuple[Shape, ...]
    spawn: int


def _shape(rows: list[str], shift: int) -> Shape:
    width, height = len(rows[0]), len(rows)
    cells = tuple(
        WIDTH * y + x for y, row in enumerate(reversed(rows)) for x, letter in enumerate(row) if letter != "."
    )
    corner_row = (1 << WIDTH - width + 1) - 1
    inside = sum(corner_row << WIDTH * y for y in range(HEIGHT - height + 1))
    return Shape(sum(1 << cell for cell in cells), cells, height, shift, inside)


def _piece(drawing: str, column: int, lefts: tuple[int, ...]) -> Piece:
    """Build a piece from its first rotation; `lefts` is the left column of each rotation, relative to the first."""
    rows = drawing.split()
    shapes = []
    for number, left in enumerate(lefts):
        shapes.append(_shape(rows, left - lefts[number - 1]))
        rows = ["".join(column) for column in zip(*reversed(rows), strict=True)]  # turned clockwise
    first = shapes[0]
    return Piece(column, tuple(shapes), first.mask << WIDTH * (HEIGHT - first.height) + column)


PIECES = (
    _piece("XXXX", 3, (0, 2)),
    _piece("X.. XXX", 3, (0, 1, 0, 0)),
    _piece("..X XXX", 3, (0, 1, 0, 0)),
    _piece("XX XX", 4, (0,)),
    _piece(".XX XX.", 3, (0, 1)),
    _piece(".X. XXX", 3, (0, 1, 0, 0)),
    _piece("XX. .XX", 3, (0, 1)),
)
"""I, J, L, O, S, T, Z, as in `board.KINDS`."""
