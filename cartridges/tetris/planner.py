"""Ranks the placements that the engine offers, by Dellacherie's six features.

The features are Pierre Dellacherie's (2003; published by Colin Fahey, "Tetris AI", colinfahey.com/tetris, restated in
C. Thiery and B. Scherrer, "Building Controllers for Tetris", ICGA Journal 32(1), 2009). Only the present piece is
considered; the next one matters where a placement leaves it no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cartridges.kit.rules import own
from cartridges.tetris.board import FULL, ROW, WIDTH
from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import KEYS, SPOTS
from cartridges.tetris.placement import Placement
from kernel.contract import Engine, Option
from kernel.opcode import Instruction

_FIRST_COLUMN = FULL // ROW
_LAST_COLUMN = _FIRST_COLUMN << WIDTH - 1

LOSS = 10_000.0
"""Taken off the score of a placement that ends the game: more than boards differ by the default weights."""


class Features(NamedTuple):
    """The six features of a placement, or the weight of each.

    landing_height: rows from the floor to the middle of the piece as it lies, before full rows go.
    eroded_cells: rows that vanish times the cells of this piece in them.
    row_transitions: neighbours in a row of which one is empty, in all 20 rows; the walls are full.
    column_transitions: the same along columns; the floor is full, above the board is empty.
    holes: empty cells with a full one anywhere above them.
    wells: over the empty cells whose left and right neighbours (or walls) are full, the number of empty cells
        from there straight down to the next full one: a well of depth 3 counts 1 + 2 + 3.
    """

    landing_height: float
    eroded_cells: float
    row_transitions: float
    column_transitions: float
    holes: float
    wells: float


DELLACHERIE = Features(-1.0, 1.0, -1.0, -1.0, -4.0, -1.0)
"""His own weights, set by hand (in Fahey and in Thiery and Scherrer, as above)."""

EL_TETRIS = Features(
    -4.500158825082766,
    3.4181268101392694,
    -3.2178882868487753,
    -9.348695305445199,
    -7.899265427351652,
    -3.3855972247263626,
)
"""Weights found by a swarm (Islam El-Ashi, "El-Tetris - An Improvement on Pierre Dellacherie's Algorithm", 2011).

Here they weigh the eroded cells where El-Ashi counts rows. Over 100,000 pieces both players lose no game; this one's
stack is the lower by a sixth of a row, and fewer of its best placements are tied, so it is the default.
"""


def row_transitions(board: int) -> int:
    """Count changes between full and empty along the rows, walls full; an empty row counts 2."""
    inner = (board ^ board >> 1) & ~_LAST_COLUMN
    return inner.bit_count() + (~board & _FIRST_COLUMN).bit_count() + (~board & _LAST_COLUMN).bit_count()


def column_transitions(board: int) -> int:
    """Count changes between full and empty along the columns, the floor full, nothing above the board."""
    return (board ^ board >> WIDTH).bit_count() + (~board & ROW).bit_count()


def holes(board: int) -> int:
    """Count the empty cells that have a full one above them in their column."""
    covered = board >> WIDTH
    for step in (1, 2, 4, 8, 16):
        covered |= covered >> WIDTH * step
    return (covered & ~board).bit_count()


def wells(board: int) -> int:
    """Add up the wells; `Features` says how."""
    empty = ~board & FULL
    left = board << 1 & ~_FIRST_COLUMN | _FIRST_COLUMN
    right = board >> 1 & ~_LAST_COLUMN | _LAST_COLUMN
    cells = empty & left & right
    total = 0
    while cells:
        total += cells.bit_count()
        cells = cells >> WIDTH & empty
    return total


def features(placement: Placement) -> Features:
    """Return the six features of a placement."""
    board = placement.board
    return Features(
        placement.row + (placement.height - 1) / 2,
        placement.lines * placement.eroded,
        row_transitions(board),
        column_transitions(board),
        holes(board),
        wells(board),
    )


class TetrisPlanner:
    """The one-piece player. `weights` are those of the six features."""

    def __init__(self, weights: Features = EL_TETRIS) -> None:
        self.weights = weights

    def score(self, placement: Placement) -> float:
        """Return the weighted sum of the features, less LOSS if the placement ends the game."""
        total = -LOSS if placement.fatal else 0.0
        for weight, value in zip(self.weights, features(placement), strict=True):
            total += weight * value
        return total

    def placements(self, engine: TetrisEngine) -> list[tuple[float, Placement]]:
        """Return (score, placement) of all that the engine offers, best first.

        Ties go to the shorter key sequence, then to the smaller rotation, column and row. A sequence grows shorter
        by one with each key of it, no other faster, so a plan made anew after each key stays the same plan.
        """
        scored = [(self.score(placement), placement) for placement in engine.placements()]
        scored.sort(key=lambda each: (-each[0], len(each[1].keys), each[1][:3]))
        return scored

    def rank(self, engine: Engine) -> Sequence[Option]:
        """Return the options, best first; raises CartridgeError for an engine that does not play Tetris.

        There is one for each legal placement. In moves mode there is one for each key with which a
        placement's key sequence begins, and it stands for the best of these placements; `plan` is its sequence.
        """
        game = own(engine, TetrisEngine)
        before = holes(game.board)
        options: list[Option] = []
        begun = set()
        for score, placement in self.placements(game):
            if game.opcodes != "moves":
                plan: tuple[Instruction, ...] = (SPOTS[placement.column, placement.rotation],)
            elif placement.keys[0] in begun:
                continue
            else:
                plan = tuple(KEYS[key] for key in placement.keys)
                begun.add(placement.keys[0])
            options.append(Option(plan[0], score, in_words(game.piece, placement, before), plan))
        return options


_LIE = {
    "I": ("flat", "upright"),
    "O": ("",),
    "S": ("flat", "upright"),
    "Z": ("flat", "upright"),
    "J": ("flat", "upright, head right", "hanging", "upright, head left"),
    "L": ("flat", "upright, head right", "hanging", "upright, head left"),
    "T": ("flat", "pointing right", "pointing down", "pointing left"),
}


def in_words(piece: str, placement: Placement, holes_before: int) -> str:
    """Say a placement in a few plain words: where, how it lies, what it clears, what it buries."""
    words = [f"column {placement.column}", _LIE[piece][placement.rotation]]
    if placement.lines:
        words.append(f"clears {placement.lines} line{'s' if placement.lines > 1 else ''}")
    change = holes(placement.board) - holes_before
    if change > 0:
        words.append(f"{change} new hole{'s' if change > 1 else ''}")
    elif change < 0:
        words.append(f"opens {-change} hole{'s' if change < -1 else ''}")
    else:
        words.append("no new hole")
    if placement.fatal:
        words.append("ends the game")
    return ", ".join(word for word in words if word)
