"""A cartridge as a model: a request becomes one of its commands, decided as a session of it would decide.

The view writes the prompt, guide and null prompts included, and the model chooses among whole commands. Each request
finds the cartridge as its engine begins; nothing is carried out, so nothing is remembered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from dispatch.serve.errors import RequestError
from dispatch.serve.pieces import Token
from dispatch.session.judging import judge_for
from dispatch.session.learned import default_rule
from dispatch.session.model_player import ModelPlayer
from dispatch.session.situation import Leaf, Situation, situation
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge
from kernel.choose.question import Question
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import short
from kernel.opcode import HALT_INSTRUCTION, Instruction
from kernel.opcode.opcode import SchemaOpcode

NUMBER = 1
"""Of the decision: each one is the first of its session."""


class Commands:
    """What answers for one cartridge; everything but `names` on the kernel's thread."""

    def __init__(self, cartridge: Cartridge, rule: Rule | None, seed: int) -> None:
        self.cartridge = cartridge
        self.names = {o.method: o.original if issubclass(o, SchemaOpcode) else o.method for o in cartridge.opcodes}
        self._rule = rule
        self._seed = seed
        self._player: ModelPlayer | None = None
        self._judges: dict[RuleName, Judge] = {}

    def check(self, tools: Sequence[str] | None) -> None:
        """Raise RequestError for the name of a command that is none."""
        for name in tools or ():
            if name not in self.names.values():
                raise RequestError(
                    f"tool_choice: there is no tool {short(name)}; there is: {', '.join(self.names.values())}",
                    param="tool_choice",
                    code="unknown_tool",
                )

    def question(self, kernel: Kernel, request: str, tools: Sequence[str] | None, *, always: bool) -> Question:
        """Return what a request asks.

        Args:
            tools: the commands that may be called; None is all.
            always: choose, also where nothing seems to be meant.
        """
        player, seen = self._of(kernel), self._situation(request, tools)
        question = player.question(seen, kernel.ids(seen.prompt))
        # where everything is legal nothing is beyond it, and decisions that do not look there share passes
        beyond = question.beyond and len(question.legal) < len(player.opcodes)
        return replace(question, beyond=beyond, judge=None if always else self._judge(kernel, question.by))

    def instruction(self, kernel: Kernel, decision: Decision, request: str) -> tuple[Instruction, Decision]:
        """Return what was decided for a request; open arguments are written now."""
        choice = self._of(kernel).said(decision, NUMBER, request)
        return choice.instruction, choice.decision or decision

    def token(self, decision: Decision, top: int) -> Token:
        """Return the choice as one token: the command in words, and how probable it is under the rule."""
        rows = zip(decision.texts, decision.shares.tolist(), strict=True)
        known = sorted(((share, text) for text, share in rows if not math.isnan(share)), reverse=True)
        best = tuple((_words(text), logarithm(share)) for share, text in known[:top])
        return Token(_words(decision.texts[decision.position]), logarithm(decision.probability), best)

    def _of(self, kernel: Kernel) -> ModelPlayer:
        if self._player is None or self._player.kernel is not kernel:
            wire = Wire([self.cartridge], FORMS["compact"])
            rule = self._rule or default_rule(kernel, [self.cartridge], wire.form.name)
            self._player = ModelPlayer(kernel, wire, [self.cartridge], rule)
            self._judges = {}
        return self._player

    def _judge(self, kernel: Kernel, rule: Rule) -> Judge:
        """Return the judge under a rule; what was learned is read from its file once."""
        if rule.name not in self._judges:
            self._judges[rule.name] = judge_for(kernel, [self.cartridge], rule)
        return self._judges[rule.name]

    def _situation(self, request: str, tools: Sequence[str] | None) -> Situation:
        engine = self.cartridge.engine()
        engine.reset(self._seed)
        seen, _ = situation({self.cartridge.name: self.cartridge}, {self.cartridge.name: engine}, NUMBER, request)

        def allowed(leaf: Leaf) -> bool:
            return leaf != HALT_INSTRUCTION and (tools is None or self.names[leaf.method] in tools)

        legal, written = [i for i in seen.legal if allowed(i)], [o for o in seen.open if allowed(o)]
        return replace(seen, legal=legal, open=written, ratified=[i for i in seen.ratified if allowed(i)])


def _words(text: str) -> bytes:
    return text.strip().split("\n")[0].encode()


def logarithm(share: float) -> float:
    """Return the logarithm of a probability, of which 0 is none.

    >>> logarithm(1.0), logarithm(0.0)
    (0.0, -inf)
    """
    return math.log(share) if share > 0 else -math.inf
