"""The rules of the scavenger's game: walking, taking and delivering objects, and the three ways in which it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, cast

from cartridges.kit.rules import hashed, refusal
from cartridges.scavenger.board import BUDGET, STEPS, Cell, draw
from cartridges.scavenger.opcodes import COMMANDS, Go, Item, Take
from kernel.opcode import Instruction

DELIVERED = "everything is delivered"
FELL = "fell into a pit"
SPENT = "no moves are left"


class ScavengerEngine:
    """The rules of the game.

    - One walks to the four sides, not through walls and not off the map. A pit can be walked into; that is the end.
    - An object is taken where it lies and delivered at home; hands hold one.
    - Each instruction is a move. It ends when all is delivered, in a pit, or when the moves are spent.
    """

    def __init__(self, seed: int = 0) -> None:
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Start at home on the map of the seed."""
        self.board = draw(seed)
        self.position = self.board.home
        self.carried: Item | None = None
        self.delivered = 0
        self.moves = 0
        self.lying: tuple[tuple[Item, Cell], ...] = self.board.items
        """The objects that nobody has taken yet, and where."""

    def legal(self) -> Sequence[Instruction]:
        """Return what can be done here, in declaration order; nothing after the end."""
        if self.ended() is not None:
            return ()
        return tuple(command for command in COMMANDS if self._may(command))

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and say what happened."""
        if self.ended() is not None or instruction not in COMMANDS or not self._may(instruction):
            raise refusal(self, instruction)
        self.moves += 1
        args = instruction.args
        match instruction.method:
            case Go.method:
                self.position = self._beside(args["direction"])
                return FELL if self.position in self.board.pits else f"walked {args['direction']}"
            case Take.method:
                self.carried = cast(Item, args["item"])
                self.lying = tuple(lying for lying in self.lying if lying[0] != self.carried)
                return f"took the {self.carried}"
            case _:
                self.carried = None
                self.delivered += 1
                return f"delivered the {args['item']}"

    def copy(self) -> Self:
        """Return an independent engine in the same state."""
        twin = type(self).__new__(type(self))  # `copy.copy` takes five times as long, and planners copy at every step
        vars(twin).update(vars(self))  # all that it holds are values that never change
        return twin

    def state_hash(self) -> str:
        """Return a hash of the map and of everything that changes, the moves too."""
        board = self.board
        fixed = (sorted(board.walls), sorted(board.pits), board.home, board.items)
        state = (fixed, self.position, self.carried, self.lying, self.delivered, self.moves)
        return hashed(repr(state))

    def ended(self) -> str | None:
        """Return DELIVERED, FELL, SPENT or None."""
        if self.delivered == len(self.board.items):
            return DELIVERED
        if self.position in self.board.pits:
            return FELL
        return SPENT if self.moves >= BUDGET else None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return moves made and objects delivered."""
        return {"moves": self.moves, "delivered": self.delivered}

    def _beside(self, direction: str) -> Cell:
        dx, dy = STEPS[direction]
        return self.position[0] + dx, self.position[1] + dy

    def _may(self, instruction: Instruction) -> bool:
        args = instruction.args
        match instruction.method:
            case Go.method:
                return self.board.open(self._beside(args["direction"]))
            case Take.method:
                return self.carried is None and (args["item"], self.position) in self.lying
            case _:
                return self.position == self.board.home and self.carried == args["item"]
