"""Lets a model choose among the legal instructions, and turns what it chose into an instruction.

An opcode whose arguments cannot be listed is one leaf among the others, that ends where its arguments begin; when it is
chosen, the model writes them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dispatch.log.ledger import LedgerBuilder
from dispatch.session.learned import taught
from dispatch.session.players import Choice
from dispatch.session.situation import Leaf, Open, Situation, is_written
from dispatch.session.unsettled import unsettled
from dispatch.wire.open_arguments import ArgumentWriter
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge, Outcome
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge, Option
from kernel.errors import NoLegalOpcodeError
from kernel.memory.passes import common_prefix
from kernel.opcode import HALT_INSTRUCTION, Instruction, commands
from kernel.opcode.opcode import SchemaOpcode
from kernel.recent import keep, recall
from kernel.tools.caller import name_of, ranked
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.trie.subset import Subset
from kernel.write.writer import TOKENS

RESULT = "\nResult:"
"""A request with such a line goes on from what earlier calls have given, and may be done."""

SPELLED_KEPT = 32
"""The texts of so many cartridges are kept, those that left included."""

Spelled = tuple[Cartridge, dict[Leaf, Literal]]


@dataclass
class ModelPlayer:
    """Lets the model choose among the legal opcodes, then parses what it decoded.

    Opcodes are compiled once; the model cannot write anything else, so parsing cannot fail and is not repeated.

    Attributes:
        ledger: keep the strongest tokens of every choosing step; what is written after the choice has none.
        max_tokens: budget of an instruction that is written.
        judge: says how decisions on requests end; None always chooses.
    """

    kernel: Kernel
    wire: Wire
    cartridges: Sequence[Cartridge]
    rule: Rule | None = None
    name: str = "model"
    ledger: bool = False
    max_tokens: int = TOKENS
    judge: Judge | None = None
    opcodes: OpcodeSet = field(init=False)
    _index: dict[Leaf, int] = field(default_factory=dict, init=False)
    _leaves: list[Leaf] = field(default_factory=list, init=False)
    _spelled: OrderedDict[str, Spelled] = field(default_factory=OrderedDict, init=False)
    _tools: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._ledger = LedgerBuilder(self.kernel.vocabulary.pieces)
        self._writer = ArgumentWriter(self.kernel)
        self.use(self.cartridges)

    def use(self, cartridges: Sequence[Cartridge]) -> None:
        """See Player. The texts of a cartridge are kept when it leaves, and the kernel keeps sets that it compiled."""
        wire = Wire(cartridges, self.wire.form)
        literals: dict[Leaf, Literal] = {}
        for cartridge in sorted(cartridges, key=lambda c: c.name):  # one set for every order in which they came
            literals.update(self._texts(cartridge, wire))
        self.opcodes = self.kernel.compile(list(literals.values()))
        self._leaves = list(literals)
        self._tools = {cartridge.name for cartridge in cartridges if cartridge.tools}
        self._index = {leaf: n for n, leaf in enumerate(literals)}
        self.wire, self.cartridges = wire, cartridges
        if self.rule is not None and self.rule.name is RuleName.LEARNED:
            taught(self.kernel, cartridges)

    def prepare(self, situation: Situation) -> None:
        """Read what stays the same from decision to decision (heads, null prompts), so that the first one is quick."""
        if situation.choices:
            prompt = self.kernel.ids(situation.prompt)
            self.kernel.decide(Question(prompt, self.opcodes, self._legal(situation), self.rule_for(prompt)))

    def choose(self, situation: Situation) -> Choice:
        """See Player."""
        started = time.perf_counter()
        choice = self.answer(situation, self.kernel.ids(situation.prompt))
        return replace(choice, model_ms=1000 * (time.perf_counter() - started))

    def answer(self, situation: Situation, prompt: PromptIds) -> Choice:
        """Choose behind ids that are given, such as those that a log has."""
        question = self.question(situation, prompt)
        if self.ledger:
            question = replace(question, watch=self._ledger.start())
        decision = self.kernel.decide(question)
        choice = self.said(decision, situation.number, situation.request)
        said = choice.decision or decision
        shared = said.ids[: common_prefix(decision.ids, said.ids)]  # what was written may begin with other ids
        return replace(choice, ledger=self._ledger.ledger(shared) if self.ledger else ())

    def question(self, situation: Situation, prompt: PromptIds) -> Question:
        """Return what a situation asks behind a prompt."""
        prior, asked = self.prior(situation.options), situation.asked and not situation.ratified
        rule = self.rule_for(prompt)
        question = Question(prompt, self.opcodes, self._legal(situation), rule, prior, situation.number)
        if asked and len(self.cartridges) == 1 and self._tools:
            opcodes = [self._tool(leaf) for leaf in self._leaves]
            return ranked(question, opcodes, situation.request, always=self.judge is None)
        return replace(question, beyond=True, judge=self.judge) if asked else question

    def rule_for(self, prompt: PromptIds) -> Rule | None:
        """Return the rule behind a prompt: where nothing was learned behind it, `learned` is the default rule."""
        if self.rule is None or self.rule.name is not RuleName.LEARNED:
            return self.rule
        if self.kernel.learned_of(self.opcodes, prompt) is not None:
            return self.rule
        name = RuleName.CALIBRATED if prompt.nulls else RuleName.EXACT
        return Rule(name, planner_weight=self.rule.planner_weight)

    def said(self, decision: Decision, number: int, request: str) -> Choice:
        """Return the instruction of a decision; one with open arguments is written first, unless nothing was chosen.

        Args:
            number: of the decision, for `sample`.
            request: what was asked for: the arguments of a tool are found in it.
        """
        if decision.outcome is not Outcome.CHOSEN:
            return unsettled(self, decision, number, request)
        return self.written(decision, number, request)

    def written(self, decision: Decision, number: int, request: str) -> Choice:
        """Return the instruction of a decision, whatever its outcome; `said` has the arguments."""
        leaf = self._leaves[decision.index]
        if isinstance(leaf, Open) and leaf.cartridge in self._tools:
            decision = self._writer.called(decision, self.wire, *leaf, request=request)
            text = decision.text
        elif isinstance(leaf, Open):
            decision = self._writer.write(
                decision, self.wire, *leaf, rule=self._writing, number=number, max_tokens=self.max_tokens
            )
            text = decision.text
        else:
            text = self.opcodes.texts[decision.index]
        return Choice(self.wire.parse(text), text, decision)

    def named_leaf(self, instruction: Instruction) -> Leaf:
        """Return what a model chooses for an instruction: itself, or its opcode where the arguments come later."""
        opened = Open(instruction.cartridge, instruction.method)
        return opened if opened in self._index else instruction

    def named(self, index: int) -> Instruction:
        """Return the instruction at a place in `opcodes`, without the arguments that have to be written."""
        leaf = self._leaves[index]
        return leaf if isinstance(leaf, Instruction) else Instruction(leaf.cartridge, leaf.method)

    @property
    def _writing(self) -> Rule | None:
        """The rule by which open arguments are written: nothing is learned of them."""
        learned = self.rule is not None and self.rule.name is RuleName.LEARNED
        return None if learned else self.rule

    def leaf(self, choice: Leaf) -> int:
        """Return the place of a choice in `opcodes`; raises NoLegalOpcodeError for one that is not there."""
        try:
            return self._index[choice]
        except KeyError:
            raise NoLegalOpcodeError(f"{choice!r} is legal but none of its cartridge's opcodes") from None

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

    def _tool(self, leaf: Leaf) -> type[SchemaOpcode] | None:
        opcode = self.wire.opcodes.get((leaf.cartridge, leaf.method))
        return opcode if opcode is not None and issubclass(opcode, SchemaOpcode) else None

    def _legal(self, situation: Situation) -> Subset:
        choices = situation.choices
        if self._tools:  # of a tool one leaf stands for all its calls, and nobody asks tools to end the session
            ends = not situation.asked or RESULT in situation.request
            choices = [c for c in choices if isinstance(c, Open) or c.cartridge not in self._tools]
            choices = [c for c in choices if ends or c != HALT_INSTRUCTION]
        return self.opcodes.subset_of([self.leaf(choice) for choice in choices])

    def _texts(self, cartridge: Cartridge, wire: Wire) -> dict[Leaf, Literal]:
        known = recall(self._spelled, cartridge.name)
        if known is None or known[0] is not cartridge:
            known = (cartridge, leaves(cartridge, wire))
            keep(self._spelled, cartridge.name, known, SPELLED_KEPT)
        return known[1]


def leaves(cartridge: Cartridge, wire: Wire) -> dict[Leaf, Literal]:
    """Return what a model chooses among with its text, in declaration order; an open opcode is one leaf."""
    found: dict[Leaf, Literal] = {}
    for opcode in cartridge.opcodes:
        if is_written(cartridge, opcode):
            found[Open(cartridge.name, opcode.method)] = (
                replace(name_of(opcode), closer=f"\n@{cartridge.name}\n")
                if issubclass(opcode, SchemaOpcode) and cartridge.tools
                else wire.opening(cartridge.name, opcode.method)
            )
        else:
            found.update((instruction, wire.literal(instruction)) for instruction in commands(cartridge.name, [opcode]))
    return found
