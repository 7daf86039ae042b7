"""The rules of the robot's floor: which commands are legal, and what they change."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

from cartridges.kit.rules import hashed, refusal
from cartridges.robot.opcodes import COMMANDS, Drive, Speak, Turn
from kernel.opcode import Instruction

WIDTH, HEIGHT = 8, 6
CELL_CM = 50
BOXES = 5
MARKS = "ABC"
BATTERY = 100
HEADINGS = ("north", "east", "south", "west")

ARRIVED = "all marks reached"
EMPTY = "the battery is empty"

Cell = tuple[int, int]
"""Column from the left, row from the top."""

_AHEAD: tuple[Cell, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))
_QUARTERS = {"left": -1, "right": 1, "around": 2}
_TOLD = {command: command.args for command in COMMANDS}
"""The arguments of every command, read once: planners ask for what is legal a hundred thousand times."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything that changes or was drawn by lot. `reached` counts the marks reached so far."""

    boxes: frozenset[Cell] = frozenset()
    marks: tuple[Cell, ...] = ()
    person: Cell = (0, 0)
    robot: Cell = (0, 1)
    heading: int = 1
    reached: int = 0
    battery: int = BATTERY
    motors: bool = False


class RobotEngine:
    """The rules of the floor.

    - The floor is 4 by 3 metres in cells of half a metre; boxes stand on it, and a person.
    - A drive is legal only when every cell on its way is free: a collision cannot be said, let alone happen.
    - The robot has to stand on the marks A, B, C in this order.
    - Half a metre costs one unit of battery, a quarter turn one; words and stopping cost nothing.
    - A person right in front of the robot steps aside at `excuse-me`, to the first free cell of left, right, ahead as
      the robot sees them. Boxes never stand at a wall nor next to each other, so there always is one.
    - It ends when all marks are reached or the battery is empty.
    """

    def __init__(self, seed: int = 0) -> None:
        self.reset(seed)

    def reset(self, seed: int) -> None:
        """Set up the floor that follows from the seed."""
        rng = random.Random(seed)
        inner = [(x, y) for y in range(1, HEIGHT - 1) for x in range(1, WIDTH - 1)]
        rng.shuffle(inner)
        boxes: list[Cell] = []
        for x, y in inner:
            if len(boxes) < BOXES and all(max(abs(x - a), abs(y - b)) > 1 for a, b in boxes):
                boxes.append((x, y))
        free = [(x, y) for y in range(HEIGHT) for x in range(WIDTH) if (x, y) not in boxes]
        person, robot, *marks = rng.sample(free, 2 + len(MARKS))
        self.state = State(frozenset(boxes), tuple(marks), person, robot, rng.randrange(4))
        self.done = 0

    def legal(self) -> Sequence[Instruction]:
        """Return what can be done without touching anything, in declaration order; nothing after the end."""
        if self.ended() is not None:
            return ()
        return tuple(command for command in COMMANDS if self._may(command))

    def apply(self, instruction: Instruction) -> str:
        """Carry it out and say what happened."""
        if self.ended() is not None or instruction not in _TOLD or not self._may(instruction):
            raise refusal(self, instruction)
        self.done += 1
        told = _TOLD[instruction]
        match instruction.method:
            case Drive.method:
                return self._drive(told["way"], told["cm"])
            case Turn.method:
                quarters = _QUARTERS[told["way"]]
                heading = (self.state.heading + quarters) % 4
                left = self.state.battery - abs(quarters)
                self.state = replace(self.state, heading=heading, battery=left, motors=True)
                return f"facing {HEADINGS[heading]}"
            case Speak.method:
                return self._speak(told["phrase"])
            case _:
                self.state = replace(self.state, motors=False)
                return "standing still"

    def copy(self) -> Self:
        """Return an independent engine in the same state."""
        twin = type(self).__new__(type(self))  # `copy.copy` takes five times as long, and planners copy 100,000 times
        twin.state, twin.done = self.state, self.done  # the state is a value that never changes
        return twin

    def state_hash(self) -> str:
        """Return a hash of floor, body and battery; how many instructions it took is not part of it."""
        boxes, *rest = (getattr(self.state, each.name) for each in fields(self.state))
        return hashed(repr((sorted(boxes), rest)))

    def ended(self) -> str | None:
        """Return ARRIVED, EMPTY or None."""
        if self.state.reached == len(self.state.marks):
            return ARRIVED
        return EMPTY if self.state.battery == 0 else None

    def summary(self) -> Mapping[str, int | float | str]:
        """Return instructions carried out, marks reached and battery left."""
        return {"instructions": self.done, "marks": self.state.reached, "battery": self.state.battery}

    def ahead(self, cells: int = 1, quarters: int = 0) -> Cell:
        """Return the cell that lies so many cells ahead (behind if negative), seen after so many quarter turns."""
        (x, y), (dx, dy) = self.state.robot, _AHEAD[(self.state.heading + quarters) % 4]
        return x + cells * dx, y + cells * dy

    def free(self, cell: Cell) -> bool:
        """Return whether the robot or the person could stand there."""
        inside = 0 <= cell[0] < WIDTH and 0 <= cell[1] < HEIGHT
        return inside and cell not in self.state.boxes and cell not in (self.state.person, self.state.robot)

    def _may(self, instruction: Instruction) -> bool:
        told = _TOLD[instruction]
        if instruction.method == Drive.method:
            sign, cells = (1 if told["way"] == "forward" else -1), told["cm"] // CELL_CM
            return cells <= self.state.battery and all(self.free(self.ahead(sign * n)) for n in range(1, cells + 1))
        if instruction.method == Turn.method:
            return abs(_QUARTERS[told["way"]]) <= self.state.battery
        return True

    def _drive(self, way: str, cm: int) -> str:
        cells = cm // CELL_CM
        robot = self.ahead(cells if way == "forward" else -cells)
        state = replace(self.state, robot=robot, battery=self.state.battery - cells, motors=True)
        said = f"drove {way} {cm} cm"
        if state.robot == state.marks[state.reached]:
            said += f", reached mark {MARKS[state.reached]}"
            state = replace(state, reached=state.reached + 1)
        self.state = state
        return said

    def _speak(self, phrase: str) -> str:
        said = f"said {phrase}"
        if self.ahead() != self.state.person:
            return f"{said}, nobody is in front"
        if phrase != "excuse-me":
            return f"{said}, the person nods"
        x, y = self.state.person
        for quarters in (-1, 1, 0):
            dx, dy = _AHEAD[(self.state.heading + quarters) % 4]
            if self.free((x + dx, y + dy)):
                self.state = replace(self.state, person=(x + dx, y + dy))
                return f"{said}, the person steps aside"
        return f"{said}, the person cannot step aside"
