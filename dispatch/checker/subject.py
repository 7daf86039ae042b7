"""The cartridge under test, with what the checks share: its instructions, and states of seeded random games."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dispatch.checker.report import FaultError, SkipError
from dispatch.wire.wire import Wire
from kernel.contract import Cartridge, Engine, Option
from kernel.opcode import HALT_INSTRUCTION, Instruction, Opcode, commands
from kernel.prompt import Piece
from kernel.text.vocabulary import Vocabulary

STEPS = 1000
"""What the random player has to survive."""

BUDGET = 512
"""Tokens that a prompt may have: a small model reads a few hundred in a second on a laptop."""

SHORT = 40
"""Steps of a game that is looked at closely."""

READ = 12
"""States of each seed that planner and prompts are asked about: a planner may take its time."""

Trace = Sequence[str]


class State(NamedTuple):
    """A copy of an engine somewhere in a game, the planner's options, those that are offered; do not change it."""

    where: str
    engine: Engine
    ranked: tuple[Option, ...]
    offered: tuple[Option, ...]


@dataclass(frozen=True)
class Subject:
    """One cartridge under test; `check_cartridge` says what the fields are."""

    cartridge: Cartridge
    vocabularies: Mapping[str, Vocabulary] = field(default_factory=dict)
    wires: Mapping[str, Wire] = field(default_factory=dict)
    steps: int = STEPS
    budget: int = BUDGET
    seeds: Sequence[int] = (0, 1, 2)
    elsewhere: Callable[[Sequence[int], int], Sequence[Trace]] | None = None
    _ids: dict[tuple[str, tuple[Piece, ...]], list[int]] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def open(self) -> tuple[type[Opcode], ...]:
        """The opcodes that cannot be written out."""
        return tuple(opcode for opcode in self.cartridge.opcodes if opcode.is_open())

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """Every instruction of the opcodes that can be written out, the halt included if there is one."""
        return commands(self.cartridge.name, self.cartridge.opcodes)

    def ids(self, name: str, parts: Sequence[Piece]) -> list[int]:
        """Return the ids of a prompt on a vocabulary; what stays the same from state to state is tokenized once."""
        key = name, tuple(parts)
        if key not in self._ids:
            self._ids[key] = self.vocabularies[name].prompt(parts)
        return self._ids[key]

    def by_chance(self) -> None:
        """Raise SkipError where every opcode is open: chance writes no arguments, so it cannot play."""
        if self.open and not set(self.instructions) - {HALT_INSTRUCTION}:
            raise SkipError("every opcode is open, and chance writes no arguments")

    def engine(self, seed: int) -> Engine:
        """Return a new engine at the start of a seed."""
        engine = self.cartridge.engine()
        engine.reset(seed)
        return engine

    def game(self, seed: int, steps: int = SHORT) -> Iterator[tuple[str, Engine]]:
        """Yield (where, engine) before each step of a random game, which starts anew when it has ended."""
        self.by_chance()
        engine = self.engine(seed)
        rng = random.Random(seed)
        for step in range(steps):
            legal = engine.legal()
            if not legal:
                seed += 1
                engine.reset(seed)
                if not (legal := engine.legal()):
                    raise FaultError(f"seed {seed}: nothing is legal right after reset: {engine.ended()!r}")
            yield f"seed {seed}, step {step}", engine
            engine.apply(rng.choice(legal))

    @cached_property
    def states(self) -> tuple[State, ...]:
        """The first READ states of a random game of each seed."""
        planner = self.cartridge.planner
        found = []
        for seed in self.seeds:
            for where, engine in self.game(seed, READ):
                twin = engine.copy()
                ranked = tuple(planner.rank(twin)) if planner is not None else ()
                found.append(State(where, twin, ranked, ranked[: self.cartridge.offered]))
        return tuple(found)

    def foreign(self) -> list[Instruction]:
        """Return instructions that no state of this cartridge allows."""
        name = self.cartridge.name
        made_up = [Instruction.of(f"{name}-not", "nothing"), Instruction.of(name, "no-such-method")]
        if HALT_INSTRUCTION not in self.instructions:
            made_up.append(HALT_INSTRUCTION)
        return made_up + [Instruction.of(name, o.method, no_such_argument=1) for o in self.cartridge.opcodes]


def text(parts: Sequence[Piece]) -> str:
    """Return what the parts of a prompt say."""
    return "".join(part.text for part in parts)


def trace(engine: Engine, seed: int, steps: int) -> list[str]:
    """Return one line for each step of a random game: state, what is legal, what happened; it ends with the game."""
    engine.reset(seed)
    rng = random.Random(seed)
    lines = []
    for _ in range(steps):
        legal = engine.legal()
        line = f"{engine.state_hash()} {list(legal)!r}"
        if not legal:
            lines.append(f"{line} ended: {engine.ended()}")
            break
        lines.append(f"{line} -> {engine.apply(rng.choice(legal))}")
    lines.append(f"{engine.state_hash()} {dict(engine.summary())!r}")
    return lines


def part(a: Trace, b: Trace) -> str | None:
    """Return where two traces part, or None.

    >>> part(["x", "y"], ["x", "z"])
    "step 1: 'y' and 'z'"
    """
    for step, (one, other) in enumerate(itertools.zip_longest(a, b)):
        if one != other:
            return f"step {step}: {one!r} and {other!r}"
    return None
