"""What follows from a resting place of the piece: the board behind it, the rows that vanish, whether the game ends."""

from __future__ import annotations

from typing import NamedTuple

from cartridges.tetris.board import ROW, WIDTH, full_rows
from cartridges.tetris.opcodes import Action
from cartridges.tetris.pieces import Piece
from cartridges.tetris.reach import Reach


class Placement(NamedTuple):
    """A final resting place of the current piece, and what the rules make of it.

    `column` and `row` are those of its leftmost and its lowest cells (row 0 is the bottom), `height` is that of the
    piece as it lies, `keys` a shortest sequence that locks it there. `board` are the cells after the full rows are
    gone, `lines` the rows that vanish, `eroded` the cells of this piece that vanish with them; `fatal` says that the
    next piece then has no room.
    """

    rotation: int
    column: int
    row: int
    height: int
    keys: tuple[Action, ...]
    board: int
    lines: int
    eroded: int
    fatal: bool


def outcomes(reach: Reach, piece: Piece, board: int, spawn: int, *, every: bool) -> tuple[Placement, ...]:
    """Return what comes of each resting place, from the highest row down.

    `spawn` are the cells where the next piece enters. Unless `every` is set, only the highest place of each
    (rotation, column) is taken.
    """
    found = []
    seen: set[tuple[int, int]] = set()
    for rotation, column, top in reach.rests():
        if not every:
            if (rotation, column) in seen:
                continue
            seen.add((rotation, column))
        shape = piece.shapes[rotation]
        row = top - shape.height + 1
        mask = shape.mask << WIDTH * row + column
        after, full = full_rows(board | mask, row, shape.height)
        eroded = sum((mask >> WIDTH * y & ROW).bit_count() for y in full)
        keys = reach.keys(rotation, column, top)
        fatal = bool(after & spawn)
        found.append(Placement(rotation, column, row, shape.height, keys, after, len(full), eroded, fatal))
    return tuple(found)
