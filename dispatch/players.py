"""Who chooses: the model, the planner or chance. Knows no rules of any game, writes no log."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from dispatch.wire import Wire
from kernel.api import Kernel
from kernel.compile import OpcodeSet
from kernel.contract import Cartridge, Option, Prompt
from kernel.decision import Decision
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction
from kernel.rule import Rule


@dataclass(frozen=True)
class Situation:
    """What a player sees before it chooses.

    Attributes:
        number: of the decision, from 1.
        legal: every instruction that may be chosen now.
        options: the planner's, best first; of several cartridges one after the other.
        prompt: what a model would read.
    """

    number: int
    legal: Sequence[Instruction]
    options: Sequence[Option]
    prompt: Prompt


@dataclass(frozen=True)
class Choice:
    """What a player chose; a model adds the text that it decoded and the decision behind it."""

    instruction: Instruction
    text: str = ""
    decision: Decision | None = None
    model_ms: float = 0.0


class Player(Protocol):
    """Anything that picks one of the legal instructions."""

    name: str

    def choose(self, situation: Situation) -> Choice:
        """Return one of `situation.legal`."""


class PlannerPlayer:
    """Takes the planner's first option."""

    name = "planner"

    def choose(self, situation: Situation) -> Choice:
        """See Player. Raises NoLegalOpcodeError where the planner has nothing to offer."""
        if not situation.options:
            raise NoLegalOpcodeError("the planner offers nothing here; let the model or chance play")
        return Choice(situation.options[0].instruction)


class RandomPlayer:
    """Takes any legal instruction, seeded."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        if not situation.legal:
            raise NoLegalOpcodeError("nothing is legal here")
        return Choice(self._random.choice(list(situation.legal)))


@dataclass
class ModelPlayer:
    """Lets the model choose among the legal opcodes, then parses what it decoded.

    Opcodes are compiled once; the model cannot write anything else, so parsing cannot fail and is not repeated.
    """

    kernel: Kernel
    wire: Wire
    cartridges: Sequence[Cartridge]
    rule: Rule | None = None
    name: str = "model"
    _index: dict[Instruction, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        instructions = declared(self.cartridges)
        self.opcodes: OpcodeSet = self.kernel.compile([self.wire.literal(i) for i in instructions])
        self._index = {instruction: n for n, instruction in enumerate(instructions)}

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        legal = self.opcodes.subset_of([self._leaf(i) for i in situation.legal])
        started = time.perf_counter()
        decision = self.kernel.decide(
            situation.prompt,
            self.opcodes,
            legal,
            rule=self.rule,
            prior=self._prior(situation.options),
            number=situation.number,
        )
        elapsed = time.perf_counter() - started
        text = self.opcodes.texts[decision.index]
        return Choice(self.wire.parse(text), text, decision, 1000 * elapsed)

    def _leaf(self, instruction: Instruction) -> int:
        try:
            return self._index[instruction]
        except KeyError:
            raise NoLegalOpcodeError(f"{instruction!r} is legal but none of its cartridge's opcodes") from None

    def _prior(self, options: Sequence[Option]) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        if self.rule is None or not self.rule.planner_weight:
            return None
        prior = np.full(len(self.opcodes), np.nan)
        for option in options:
            prior[self._leaf(option.instruction)] = option.score
        return prior


def declared(cartridges: Sequence[Cartridge]) -> list[Instruction]:
    """Return every instruction of some cartridges in declaration order; the halt that they share stands once."""
    found: dict[Instruction, None] = {}
    for cartridge in cartridges:
        for opcode in cartridge.opcodes:
            if issubclass(opcode, Halt):
                found[HALT_INSTRUCTION] = None
            else:
                found.update((instance.instruction(cartridge.name), None) for instance in opcode.instances())
    return list(found)
