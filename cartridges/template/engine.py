"""The rules of the lift: what is legal, what it changes, and when it ends. No other module holds a rule."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from cartridges.kit.rules import hashed, refusal
from kernel.opcode import Instruction

from .opcodes import COMMANDS, Move

FLOORS = 5
PEOPLE = 3
BUDGET = 40

ARRIVED = "everyone has arrived"
SPENT = "no moves are left"


@dataclass(frozen=True, slots=True)
class State:
    """Where the lift is, who waits (from, to), where those inside want to go, how many have arrived."""

    floor: int
    waiting: tuple[tuple[int, int], ...]
    inside: tuple[int, ...] = ()
    arrived: int = 0
    moves: int = 0


class Lift:
    """A lift with room for everyone. It ends when all have arrived or the moves are spent."""

    def __init__(self) -> None:
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Start anew; where people are and where they want to go follows from the seed."""
        rng = random.Random(seed)
        people = [tuple(rng.sample(range(FLOORS), 2)) for _ in range(PEOPLE)]
        self.state = State(rng.randrange(FLOORS), tuple((a, b) for a, b in people))

    def legal(self) -> Sequence[Instruction]:
        """Return what can be done now: nothing after the end."""
        if self.ended() is not None:
            return ()
        return tuple(command for command in COMMANDS if self._may(command))

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and say what happened."""
        if instruction not in self.legal():
            raise refusal(self, instruction)
        state = replace(self.state, moves=self.state.moves + 1)
        if instruction.method == Move.method:
            self.state = replace(state, floor=state.floor + (1 if instruction.args["way"] == "up" else -1))
            return f"now on floor {self.state.floor}"
        here = state.floor
        out = state.inside.count(here)
        entering = tuple(to for start, to in state.waiting if start == here)
        self.state = replace(
            state,
            waiting=tuple(person for person in state.waiting if person[0] != here),
            inside=tuple(to for to in state.inside if to != here) + entering,
            arrived=state.arrived + out,
        )
        return f"{out} got out, {len(entering)} got in"

    def copy(self) -> Self:
        """Return an independent lift in the same state."""
        return copy.copy(self)  # the state is a value that never changes

    def state_hash(self) -> str:
        """Return a hash of the whole state."""
        return hashed(repr(self.state))

    def ended(self) -> str | None:
        """Return ARRIVED, SPENT or None."""
        if self.state.arrived == PEOPLE:
            return ARRIVED
        return SPENT if self.state.moves >= BUDGET else None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return the moves made and the people who have arrived."""
        return {"moves": self.state.moves, "arrived": self.state.arrived}

    def wishes(self) -> set[int]:
        """Return the floors where somebody waits to get in or out."""
        return {start for start, _ in self.state.waiting} | set(self.state.inside)

    def _may(self, command: Instruction) -> bool:
        if command.method != Move.method:
            return self.state.floor in self.wishes()
        return self.state.floor < FLOORS - 1 if command.args["way"] == "up" else self.state.floor > 0
