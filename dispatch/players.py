"""Who chooses: the model, the planner or chance. Knows no rules of any game, writes no log."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dispatch.keeper import RowKeeper
from dispatch.records import LedgerStep
from dispatch.wire import Wire
from kernel.api import Kernel
from kernel.compile import Literal, OpcodeSet
from kernel.contract import Cartridge, Option, Prompt
from kernel.decision import Decision
from kernel.errors import NoLegalOpcodeError
from kernel.opcode import HALT_INSTRUCTION, Halt, Instruction
from kernel.rule import Rule

SPELLED_KEPT = 32
"""The texts of so many cartridges are kept, those that left included."""

Spelled = tuple[Cartridge, dict[Instruction, Literal]]


@dataclass(frozen=True)
class Situation:
    """What a player sees before it chooses.

    Attributes:
        number: of the decision, from 1.
        legal: every instruction that may be chosen now.
        options: the planner's, best first; of several cartridges one after the other.
        prompt: what a model would read.
        ratified: the offered instructions, where the cartridge lets a model choose among those only.
    """

    number: int
    legal: Sequence[Instruction]
    options: Sequence[Option]
    prompt: Prompt
    ratified: Sequence[Instruction] = ()

    @property
    def choices(self) -> Sequence[Instruction]:
        """What a model chooses among."""
        return self.ratified or self.legal


@dataclass(frozen=True)
class Choice:
    """What a player chose; a model adds the text that it decoded, the decision behind it and its ledger."""

    instruction: Instruction
    text: str = ""
    decision: Decision | None = None
    model_ms: float = 0.0
    ledger: tuple[LedgerStep, ...] = ()


class Player(Protocol):
    """Anything that picks one of the legal instructions."""

    name: str

    def choose(self, situation: Situation) -> Choice:
        """Return one of `situation.legal`."""

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """Choose among the instructions of these from now on; what was known of others may be kept, not chosen.

        Raises BuildError when they cannot be compiled together: then everything is as it was.
        """


class PlannerPlayer:
    """Takes the planner's first option."""

    name = "planner"

    def choose(self, situation: Situation) -> Choice:
        """See Player. Raises NoLegalOpcodeError where the planner has nothing to offer."""
        if not situation.options:
            raise NoLegalOpcodeError("the planner offers nothing here; let the model or chance play")
        return Choice(situation.options[0].instruction)

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player."""


class RandomPlayer:
    """Takes any legal instruction; decision n draws from (seed, n), so that a session can go on in its middle."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        if not situation.legal:
            raise NoLegalOpcodeError("nothing is legal here")
        drawn = random.Random(f"{self.seed} {situation.number}")
        return Choice(drawn.choice(situation.legal))

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player."""


@dataclass
class ModelPlayer:
    """Lets the model choose among the legal opcodes, then parses what it decoded.

    Opcodes are compiled once; the model cannot write anything else, so parsing cannot fail and is not repeated.

    Attributes:
        ledger: keep the strongest tokens of every choosing step.
    """

    kernel: Kernel
    wire: Wire
    cartridges: Sequence[Cartridge]
    rule: Rule | None = None
    name: str = "model"
    ledger: bool = False
    opcodes: OpcodeSet = field(init=False)
    _index: dict[Instruction, int] = field(default_factory=dict, init=False)
    _spelled: OrderedDict[str, Spelled] = field(default_factory=OrderedDict, init=False)

    def __post_init__(self) -> None:
        self._keeper = RowKeeper(self.kernel.vocabulary.pieces)
        self.use(self.cartridges)

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player. The texts of a cartridge are kept when it leaves, and the kernel keeps sets that it compiled."""
        wire = Wire(cartridges, self.wire.form)
        literals: dict[Instruction, Literal] = {}
        for cartridge in sorted(cartridges, key=lambda c: c.name):  # one set for every order in which they came
            literals.update(self._texts(cartridge, wire))
        self.opcodes = self.kernel.compile(list(literals.values()))
        self._index = {instruction: n for n, instruction in enumerate(literals)}
        self.wire, self.cartridges = wire, cartridges

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        legal = self.opcodes.subset_of([self.leaf(i) for i in situation.choices])
        started = time.perf_counter()
        decision = self.kernel.decide(
            situation.prompt,
            self.opcodes,
            legal,
            rule=self.rule,
            prior=self.prior(situation.options),
            number=situation.number,
            watch=self._keeper.start() if self.ledger else None,
        )
        elapsed = time.perf_counter() - started
        text = self.opcodes.texts[decision.index]
        steps = self._keeper.ledger(decision.ids) if self.ledger else ()
        return Choice(self.wire.parse(text), text, decision, 1000 * elapsed, steps)

    def leaf(self, instruction: Instruction) -> int:
        """Return the place of an instruction in `opcodes`; raises NoLegalOpcodeError for one that is not there."""
        try:
            return self._index[instruction]
        except KeyError:
            raise NoLegalOpcodeError(f"{instruction!r} is legal but none of its cartridge's opcodes") from None

    def prior(self, options: Sequence[Option]) -> NDArray[np.float64] | None:
        """Return the planner's scores by place in `opcodes`, NaN where it has none; None when the rule asks for none.

        The scores of several planners are not on one scale, so with several cartridges there is no prior.
        """
        if self.rule is None or not self.rule.planner_weight or len(self.cartridges) > 1:
            return None
        prior = np.full(len(self.opcodes), np.nan)
        for option in options:
            prior[self.leaf(option.instruction)] = option.score
        return prior

    def _texts(self, cartridge: Cartridge, wire: Wire) -> dict[Instruction, Literal]:
        known = self._spelled.get(cartridge.name)
        if known is None or known[0] is not cartridge:
            known = (cartridge, {i: wire.literal(i) for i in declared([cartridge])})
            self._spelled[cartridge.name] = known
            if len(self._spelled) > SPELLED_KEPT:
                self._spelled.popitem(last=False)
        self._spelled.move_to_end(cartridge.name)
        return known[1]


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
