"""The board as an integer: its bits, its full rows, drawings of it.

A board has WIDTH * HEIGHT bits: bit `10 * y + x` is the cell of column x (0 is left) and row y (0 is the bottom). The
colours of the locked cells are three such integers, bit planes of 1 + the piece's number; the rules never look at them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel.errors import UsageError

WIDTH = 10
HEIGHT = 20
ROW = (1 << WIDTH) - 1
FULL = (1 << WIDTH * HEIGHT) - 1
KINDS = "IJLOSTZ"
"""The letters of the pieces; a piece's number is its index here."""

Paint = tuple[int, int, int]


def full_rows(board: int, row: int, height: int) -> tuple[int, list[int]]:
    """Take out the full rows among `height` rows from `row` on; return the board and their numbers, highest first."""
    full = [y for y in range(row + height - 1, row - 1, -1) if board >> WIDTH * y & ROW == ROW]
    for y in full:
        board = without_row(board, y)
    return board, full


def without_row(board: int, y: int) -> int:
    """Return the board with row y taken out and all above it one row lower."""
    below = board & (1 << WIDTH * y) - 1
    return board >> WIDTH * (y + 1) << WIDTH * y | below


def painted(paint: Paint, cells: int, kind: int, full: Sequence[int]) -> Paint:
    """Return the colours after a piece of this number locked on `cells` and the rows of `full` (highest first) went."""
    planes = [plane | cells * (kind + 1 >> n & 1) for n, plane in enumerate(paint)]
    for y in full:
        planes = [without_row(plane, y) for plane in planes]
    return planes[0], planes[1], planes[2]


def picture(board: int, paint: Paint, falling: int, kind: int) -> list[str]:
    """Draw, top row first: `.` is empty, `T` a locked cell, `t` one of the falling piece, `#` has no colour."""

    def letter(bit: int) -> str:
        if falling >> bit & 1:
            return KINDS[kind].lower()
        if not board >> bit & 1:
            return "."
        number = sum((plane >> bit & 1) << n for n, plane in enumerate(paint))
        return KINDS[number - 1] if number else "#"

    return ["".join(letter(WIDTH * y + x) for x in range(WIDTH)) for y in range(HEIGHT - 1, -1, -1)]


def parse(rows: Sequence[str]) -> tuple[int, Paint]:
    """Read a drawing made of `.`, `#` and piece letters, top row first; rows missing above are empty.

    Raises UsageError for a row that is not ten such cells for more than 20 rows and for a full row.

    >>> parse(["#.........", "##.......#"])[0] == 1 << 10 | 1 << 0 | 1 << 1 | 1 << 9
    True
    """
    if len(rows) > HEIGHT:
        raise UsageError(f"tetris: a board of {len(rows)} rows; there are at most {HEIGHT}")
    board, planes = 0, [0, 0, 0]
    for y, row in enumerate(reversed(rows)):
        if len(row) != WIDTH or set(row) - set(".#" + KINDS):
            raise UsageError(f"tetris: board row {row!r}: {WIDTH} cells of .#{KINDS} are needed")
        if "." not in row:
            raise UsageError(f"tetris: board row {row!r} is full; a full row does not stay")
        for x, letter in enumerate(row):
            if letter != ".":
                board |= 1 << WIDTH * y + x
                planes = [p | (KINDS.find(letter) + 1 >> n & 1) << WIDTH * y + x for n, p in enumerate(planes)]
    return board, (planes[0], planes[1], planes[2])
