"""Finds where the falling piece can still come to rest, and by which keys.

Each key but `drop` takes the piece down one row, so the rows of the board are the layers of a breadth-first search:
the states that n keys can reach all stand n rows below the start. A layer holds one word of ten bits a rotation,
and one sweep from top to bottom visits every state.
"""

from __future__ import annotations

from collections.abc import Iterator

from cartridges.tetris.board import FULL, ROW, WIDTH
from cartridges.tetris.opcodes import Action
from cartridges.tetris.pieces import Piece


def free_corners(board: int, piece: Piece) -> list[int]:
    """Return, for each rotation, the bits (column, top row) at which the piece overlaps nothing."""
    free = []
    for shape in piece.shapes:
        a, b, c, d = shape.cells
        corners = shape.inside & ~(board >> a | board >> b | board >> c | board >> d)
        free.append(corners << WIDTH * (shape.height - 1) & FULL)
    return free


class Reach:
    """Every state that the piece can reach from where it stands.

    Raises nothing; the start must be free. `free` is what `free_corners` returned for this board and piece.
    """

    __slots__ = ("_free", "_layers", "_settling", "_shifts", "_top")

    def __init__(self, piece: Piece, free: list[int], rotation: int, column: int, top: int) -> None:
        self._shifts = shifts = [shape.shift for shape in piece.shapes]
        self._top = top
        # _free[n], _layers[n], _settling[n]: words by rotation, n rows below the start
        self._free = [[f >> WIDTH * y & ROW for f in free] for y in range(top, -1, -1)]
        self._free.append([0] * len(free))
        layer = [0] * len(free)
        layer[rotation] = 1 << column
        self._layers: list[list[int]] = []
        self._settling: list[list[int]] = []
        for depth in range(top + 1):
            here, below = self._free[depth], self._free[depth + 1]
            self._layers.append(layer)
            pressed = []
            for turn, shift in enumerate(shifts):
                word = layer[turn - 1] << shift if shift >= 0 else layer[turn - 1] >> -shift
                same = layer[turn]
                pressed.append(same | (word | same << 1 | same >> 1) & here[turn])
            self._settling.append([p & ~b for p, b in zip(pressed, below, strict=True)])
            layer = [p & b for p, b in zip(pressed, below, strict=True)]
            if not any(layer):
                break

    def rests(self) -> Iterator[tuple[int, int, int]]:
        """Yield (rotation, column, top row) of each resting place, from the highest row down."""
        for depth, words in enumerate(self._settling):
            for rotation, word in enumerate(words):
                column = 0
                while word:
                    if word & 1:
                        yield rotation, column, self._top - depth
                    word >>= 1
                    column += 1

    def keys(self, rotation: int, column: int, top: int) -> tuple[Action, ...]:
        """Return a shortest sequence of keys to a place that `rests` yields; the last one locks the piece.

        Of several shortest sequences it is the one that, read from its end, has the first of drop, down, left,
        right, rotate. So turns come early and downs late, and the rest of a sequence, asked for again after its
        first key, is the same.
        """
        bit = 1 << column
        depth = self._top - top
        backwards: list[Action] = []
        if self._layers[depth][rotation] & bit:
            # drop from the highest state straight above; a column of states has no gap while it is free
            while depth and self._layers[depth - 1][rotation] & bit:
                depth -= 1
            backwards.append("drop")
        else:
            rotation, column, key = self._before(rotation, column, depth)
            backwards.append(key)
        while depth:
            depth -= 1
            rotation, column, key = self._before(rotation, column, depth)
            backwards.append(key)
        return tuple(reversed(backwards))

    def _before(self, rotation: int, column: int, depth: int) -> tuple[int, int, Action]:
        """Return the state of this layer, and the key, from which the piece comes to (rotation, column)."""
        words = self._layers[depth]
        if words[rotation] >> column & 1:
            return rotation, column, "down"
        if words[rotation] >> column + 1 & 1:
            return rotation, column + 1, "left"
        if column and words[rotation] >> column - 1 & 1:
            return rotation, column - 1, "right"
        turned = (rotation - 1) % len(words)
        return turned, column - self._shifts[rotation], "rotate"


def straight_down(free: int, column: int, top: int) -> int:
    """Return the top row at which the piece comes to rest when it falls; `free` is of its rotation."""
    while top and free >> WIDTH * (top - 1) + column & 1:
        top -= 1
    return top
