"""Open opcodes, whose arguments a model writes: one is chosen by how its text begins, then the text is written.

A rule compares whole texts, and an open opcode has none until it is written. So it stands among the others as one text
that ends where its arguments begin (`Wire.opening`). Once it is chosen, the model writes the whole text token by token
behind the same prompt, held to the shape of the opcode (`Form.shape`).
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision, Stop
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.errors import BuildError, NoLegalOpcodeError
from kernel.memory.listed import flat_of
from kernel.memory.rows import Watch
from kernel.opcode import Instruction, Opcode, canonical
from kernel.opcode.opcode import SchemaOpcode
from kernel.prompt import Prompt
from kernel.recent import keep, recall
from kernel.write.stages import Stages
from kernel.write.writer import TOKENS, Written, write

STAGES_KEPT = 64
"""Compiled open opcodes that are kept."""

Key = tuple[str, tuple[tuple[str, type[Opcode]], ...]]
"""A wire form and the opcodes that are compiled together, each with its cartridge."""


@dataclass(frozen=True)
class Call:
    """What came of a request.

    Attributes:
        decision: the choice of the method; None where there is only one, or where it is written with its arguments.
        written: the instruction as the model wrote it.
    """

    instruction: Instruction
    decision: Decision | None
    written: Written


class ArgumentWriter:
    """Writes the instructions of open opcodes, and keeps their compiled shapes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._stages: OrderedDict[Key, Stages] = OrderedDict()

    def write(
        self,
        decision: Decision,
        wire: Wire,
        cartridge: str,
        method: str,
        *,
        rule: Rule | None = None,
        number: int = 0,
        max_tokens: int = TOKENS,
    ) -> Decision:
        """Return the decision for an open opcode with the text that the model wrote.

        It is written behind the same prompt: the most probable legal id each time, and with the rule `sample` a draw
        that follows from its seed and the number of the decision. `max_tokens` is its budget, less where n_ctx leaves
        less.

        Returns:
            The decision with text, ids and costs of what was written. Its margin is the smallest along the way, so that
            a text that may come out differently is known by it.
        Raises:
            ContextError: the shortest text does not fit.
        """
        sampled = rule is not None and rule.name is RuleName.SAMPLE
        written = write(
            self.kernel.memory,
            self._compiled(wire, [(cartridge, method)]),
            flat_of(decision.prompt),  # what is written stands behind the lines as a list
            max_tokens=max_tokens,
            temperature=rule.temperature if rule is not None and sampled else 0.0,
            seed=[rule.seed, number] if rule is not None and sampled else 0,
        )
        return _joined(decision, written)

    def called(self, decision: Decision, wire: Wire, cartridge: str, method: str, *, request: str) -> Decision:
        """Return the decision for a tool with the text of its call: its arguments are found in the request.

        Raises:
            ContextError, LogitsError.
        """
        return _joined(decision, self.found(wire, cartridge, method, request).written)

    def found(self, wire: Wire, cartridge: str, method: str, request: str) -> Call:
        """Return the call of a tool, its arguments found in a request."""
        opcode = wire.opcodes[cartridge, method]
        assert issubclass(opcode, SchemaOpcode), "tools have schemas"
        filled = self.kernel.caller.arguments(opcode, request)
        made = Instruction(cartridge, method, canonical(filled.arguments))
        text = wire.literal(made).text
        ids = tuple(self.kernel.vocabulary.literal(text))
        forced = max(0, len(ids) - filled.chosen)
        return Call(made, None, Written(text, ids, filled.chosen, forced, filled.closed, filled.cost, filled.margin))

    def call(
        self,
        wire: Wire,
        prompt: Prompt,
        *,
        rule: Rule | None = None,
        max_tokens: int = TOKENS,
        temperature: float = 0.0,
        seed: int = 0,
    ) -> Call:
        """Choose one of the wire's methods, by its name alone, and write its arguments behind the same prompt.

        Raises:
            NoLegalOpcodeError: there is no method.
            ContextError, LogitsError.
        """
        question = self.which(wire, prompt, rule)
        decision = None if question is None else self.kernel.decide(question)
        return self.fill(wire, prompt, decision, max_tokens=max_tokens, temperature=temperature, seed=seed)

    def which(self, wire: Wire, prompt: Prompt, rule: Rule | None = None) -> Question | None:
        """Return what asks for a method by its name alone; None where the arguments are written together with it.

        Raises NoLegalOpcodeError without a method.
        """
        methods = list(wire.opcodes)
        if not methods:
            raise NoLegalOpcodeError("there is no method to call")
        if len(methods) == 1:
            return None
        try:
            names = [replace(wire.opening(*each, name_only=True), label=each[1]) for each in methods]
        except BuildError:  # a phrase begins with an argument, so the method is written together with its arguments
            return None
        return Question(self.kernel.ids(prompt), self.kernel.compile(names), rule=rule)

    def fill(
        self,
        wire: Wire,
        prompt: Prompt,
        decision: Decision | None,
        *,
        max_tokens: int = TOKENS,
        temperature: float = 0.0,
        seed: int = 0,
        watch: Watch | None = None,
    ) -> Call:
        """Write the arguments of the method that a decision chose, or of any method where there is no decision.

        `watch` sees each choice as it is made.
        """
        methods = list(wire.opcodes)
        written = write(
            self.kernel.memory,
            self._compiled(wire, methods if decision is None else [methods[decision.index]]),
            self.kernel.vocabulary.prompt(prompt.parts),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
            watch=watch,
        )
        return Call(wire.parse(written.text), decision, written)

    async def acall(self, wire: Wire, prompt: Prompt, *, rule: Rule | None = None, max_tokens: int = TOKENS) -> Call:
        """Do as `call` does, without blocking the event loop."""
        return await self.kernel.aside(self.call, wire, prompt, rule=rule, max_tokens=max_tokens)

    def _compiled(self, wire: Wire, methods: Iterable[tuple[str, str]]) -> Stages:
        opcodes = tuple((cartridge, wire.opcodes[cartridge, method]) for cartridge, method in methods)
        key = wire.form.name, opcodes
        with self.kernel.lock:
            known = recall(self._stages, key)
            if known is None:
                known = Stages([wire.form.shape(*each) for each in opcodes], self.kernel.vocabulary)
                keep(self._stages, key, known, STAGES_KEPT)
            return known


def _joined(decision: Decision, written: Written) -> Decision:
    asked = decision.chosen_tokens + written.chosen
    return replace(
        decision,
        text=written.text,
        ids=written.ids,
        margin=min(decision.margin, written.margin) if asked else math.inf,
        chosen_tokens=asked,
        forced_tokens=max(0, len(written.ids) - asked),
        passes=decision.passes + written.cost.passes,
        tokens_evaluated=decision.tokens_evaluated + written.cost.tokens,
        refused_removals=decision.refused_removals + written.cost.refused_removals,
        stop=Stop.CLOSED if written.closed else Stop.COMPLETE if asked else Stop.FORCED,
    )
