"""Writes the arguments of an opcode that was chosen by how it begins. Knows no session, no screen and no file.

A rule compares whole texts, and an open opcode has none until it is written. So it stands among the others as one leaf
that ends where its arguments begin; once it is chosen, the model writes it token by token under the matcher.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import replace

from dispatch.wire.calling import opcode_shape
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision, Stop
from kernel.choose.rule import Rule, RuleName
from kernel.opcode import Opcode
from kernel.recent import keep, recall
from kernel.write.stages import Stages
from kernel.write.writer import TOKENS, Written, write

STAGES_KEPT = 64
"""Compiled open opcodes that are kept."""


class Writer:
    """Keeps the compiled shapes of open opcodes."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._stages: OrderedDict[tuple[str, str, type[Opcode]], Stages] = OrderedDict()

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
            self._compiled(wire, cartridge, method),
            decision.prompt,
            max_tokens=max_tokens,
            temperature=rule.temperature if rule is not None and sampled else 0.0,
            seed=[rule.seed, number] if rule is not None and sampled else 0,
        )
        return _joined(decision, written)

    def _compiled(self, wire: Wire, cartridge: str, method: str) -> Stages:
        opcode = wire.opcodes[cartridge, method]
        key = (wire.form.name, cartridge, opcode)
        known = recall(self._stages, key)
        if known is None:
            known = Stages([opcode_shape(cartridge, opcode, wire.form.name)], self.kernel.vocabulary)
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
