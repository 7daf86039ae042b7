"""The rules of Tetris, gravity included. No other module holds a rule.

Rules
- Board of 10 columns and 20 rows; pieces and rotation system as in `pieces`: clockwise, top row fixed, no wall kicks.
- A piece enters with its top in the top row. When its cells are taken, the game is over ("topped out").
- Keys: `left`, `right`, `rotate` do what they say and are legal only when there is room; `down` does nothing of its
  own. After each of these the piece falls one row; if it cannot, it locks where it is. `drop` falls all the way and
  locks.
- Full rows vanish when a piece locks, and what stands above comes down by as many rows.
- Pieces come in shuffled bags of seven, as `bag` says; one piece ahead is seen.
- In place mode, `place` carries out a shortest key sequence to the highest place where the piece can come to rest
  with that rotation and leftmost column: the one that it meets first on its way down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from cartridges.kit.rules import hashed, opcode_set, refusal
from cartridges.tetris.bag import WORD, draw
from cartridges.tetris.board import KINDS, WIDTH, Paint, full_rows, painted, parse, picture
from cartridges.tetris.opcodes import KEYS, NAME, OPCODES, SPOTS, Action, OpcodeSet
from cartridges.tetris.pieces import PIECES, SPAWN_TOP
from cartridges.tetris.placement import Placement, outcomes
from cartridges.tetris.reach import Reach, free_corners, straight_down
from kernel.errors import UsageError
from kernel.opcode import Instruction

TOPPED_OUT = "topped out: there is no room for the next piece"

_ACTIONS: dict[Instruction, Action] = {instruction: key for key, instruction in KEYS.items()}
_SPOTS = {instruction: spot for spot, instruction in SPOTS.items()}


class TetrisEngine:
    """One game. `opcodes` says what may be said: `moves` (the five keys), else whole placements.

    `apply` is the checked door; `press` trusts its caller. Raises UsageError for another set of opcodes.
    """

    __slots__ = (
        "_bag", "_column", "_ended", "_free", "_kind", "_lines", "_next", "_paint",
        "_pieces", "_placements", "_random", "_reached", "_rotation", "_top", "board", "opcodes",
    )  # fmt: skip

    def __init__(self, opcodes: OpcodeSet = "moves", seed: int = 0) -> None:
        opcode_set(NAME, opcodes, OPCODES)
        self.opcodes: OpcodeSet = opcodes
        self.reset(seed)

    # -- the contract ---------------------------------------------------------------------------------------------

    def reset(self, seed: int) -> None:
        """Start anew with an empty board; seeds are equal modulo 2**64."""
        self.board = 0
        """The locked cells, as bits (the module `board` says which is which)."""
        self._paint: Paint = (0, 0, 0)
        self._pieces = self._lines = 0
        self._ended: str | None = None
        self._reached: Reach | None = None
        self._placements: tuple[Placement, ...] | None = None
        self._next, self._bag, self._random = draw((), seed & WORD)
        self._enter()

    def legal(self) -> Sequence[Instruction]:
        """Return what changes something now: keys in their order, or placements by column and rotation."""
        if self._ended is not None:
            return []
        if self.opcodes != "moves":
            return [SPOTS[spot] for spot in sorted(self._spots())]
        return [instruction for key, instruction in KEYS.items() if self._fits(key)]

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and say what happened; raises IllegalInstructionError and changes nothing if it may not be."""
        if self.opcodes == "moves":
            key = _ACTIONS.get(instruction)
            if self._ended is not None or key is None or not self._fits(key):
                raise refusal(self, instruction)
            return self.press(key)
        spot = _SPOTS.get(instruction)
        top = None if self._ended is not None or spot is None else self._spots().get(spot)
        if spot is None or top is None:
            raise refusal(self, instruction)
        self._column, self._rotation, self._top = *spot, top
        return self._lock()

    def copy(self) -> Self:
        """Return an independent engine in the same state."""
        twin = object.__new__(type(self))
        for name in TetrisEngine.__slots__:
            setattr(twin, name, getattr(self, name))  # numbers, strings, tuples, and a list that nobody changes
        return twin

    def state_hash(self) -> str:
        """Return `b2:` and 16 hex digits over the board, the colours, the piece, what comes and the counts."""
        state = (
            self.board, *self._paint, self._kind, self._rotation, self._column, self._top, self._next,
            self._bag, self._random, self._pieces, self._lines, self._ended is None,
        )  # fmt: skip
        return hashed(repr(state))

    def ended(self) -> str | None:
        """Return TOPPED_OUT once a piece finds no room, else None."""
        return self._ended

    def summary(self) -> Mapping[str, int | float | str]:
        """Return locked pieces, cleared lines and the height of the stack in rows."""
        height = -(-self.board.bit_length() // WIDTH)
        return {"pieces": self._pieces, "lines": self._lines, "height": height}

    # -- for the planner and the view -----------------------------------------------------------------------------

    @property
    def piece(self) -> str:
        """The letter of the falling piece."""
        return KINDS[self._kind]

    @property
    def next_piece(self) -> str:
        """The letter of the piece that comes after it."""
        return KINDS[self._next]

    def placements(self) -> Sequence[Placement]:
        """Return every resting place that the opcodes of this engine can still reach, from the highest row down.

        In moves mode these are all, tucks under an overhang included; else one for each legal `place`.
        Empty after the end. They are kept until the state changes.
        """
        if self._ended is not None:
            return ()
        if self._placements is None:
            piece, spawn = PIECES[self._kind], PIECES[self._next].spawn
            self._placements = outcomes(self._reach(), piece, self.board, spawn, every=self.opcodes == "moves")
        return self._placements

    def rows(self) -> list[str]:
        """Return the picture as `board.picture` draws it, top row first."""
        falling = 0 if self._ended is not None else self._here()
        return picture(self.board, self._paint, falling, self._kind)

    def __str__(self) -> str:
        return "\n".join([*self.rows(), f"piece {self.piece}, next {self.next_piece}, lines {self._lines}"])

    # -- the trusted door and the rules ---------------------------------------------------------------------------

    def press(self, key: Action) -> str:
        """Press a key that the caller knows to be legal; say what happened."""
        free = self._free
        if key == "drop":
            self._top = straight_down(free[self._rotation], self._column, self._top)
            return self._lock()
        if key == "left":
            self._column -= 1
        elif key == "right":
            self._column += 1
        elif key == "rotate":
            self._rotation = (self._rotation + 1) % len(free)
            self._column += PIECES[self._kind].shapes[self._rotation].shift
        if self._top and free[self._rotation] >> WIDTH * (self._top - 1) + self._column & 1:
            self._top -= 1
            self._reached = self._placements = None
            return "fell one row"
        return self._lock()

    @classmethod
    def drawn(
        cls, rows: Sequence[str], piece: str, next_piece: str = "T", opcodes: OpcodeSet = "moves", seed: int = 0
    ) -> Self:
        """Return a game with a board drawn as in `rows` (rows missing above are empty) and a piece that enters.

        Raises UsageError for a drawing that `board.parse` refuses and for an unknown piece.
        """
        for letter in (piece, next_piece):
            if letter not in KINDS or len(letter) != 1:
                raise UsageError(f"tetris: no piece {letter!r}; there is: {', '.join(KINDS)}")
        game = cls(opcodes, seed)
        game.board, game._paint = parse(rows)
        game._next, game._bag = KINDS.index(piece), (KINDS.index(next_piece),)
        game._enter()
        return game

    def _here(self) -> int:
        """The cells of the falling piece."""
        shape = PIECES[self._kind].shapes[self._rotation]
        return shape.mask << WIDTH * (self._top - shape.height + 1) + self._column

    def _fits(self, key: Action) -> bool:
        rotation, column = self._rotation, self._column
        if key == "left":
            column -= 1
        elif key == "right":
            column += 1
        elif key == "rotate":
            rotation = (rotation + 1) % len(self._free)
            if rotation == self._rotation:
                return False  # turning O changes nothing
            column += PIECES[self._kind].shapes[rotation].shift
        return 0 <= column < WIDTH and bool(self._free[rotation] >> WIDTH * self._top + column & 1)

    def _reach(self) -> Reach:
        """Where the piece can still go; kept until the state changes, since `legal`, `apply` and planners all ask."""
        if self._reached is None:
            self._reached = Reach(PIECES[self._kind], self._free, self._rotation, self._column, self._top)
        return self._reached

    def _spots(self) -> dict[tuple[int, int], int]:
        """Map each (column, rotation) that `place` may name to the top row where the piece rests."""
        spots: dict[tuple[int, int], int] = {}
        for rotation, column, top in self._reach().rests():
            spots.setdefault((column, rotation), top)
        return spots

    def _lock(self) -> str:
        """Lock the piece where it is, clear rows, bring in the next; say what happened."""
        height, cells = PIECES[self._kind].shapes[self._rotation].height, self._here()
        where = f"{self.piece} locked at column {self._column}"
        self.board, full = full_rows(self.board | cells, self._top - height + 1, height)
        self._paint = painted(self._paint, cells, self._kind, full)
        self._pieces += 1
        self._lines += len(full)
        self._enter()
        if full:
            where += f", cleared {len(full)} line{'s' if len(full) > 1 else ''}"
        return where if self._ended is None else f"{where}, {TOPPED_OUT}"

    def _enter(self) -> None:
        """Make the next piece the falling one, or end the game."""
        self._kind = self._next
        self._next, self._bag, self._random = draw(self._bag, self._random)
        piece = PIECES[self._kind]
        self._rotation, self._column, self._top = 0, piece.column, SPAWN_TOP
        self._free = free_corners(self.board, piece)
        self._reached = self._placements = None
        if self.board & piece.spawn:
            self._ended = TOPPED_OUT
