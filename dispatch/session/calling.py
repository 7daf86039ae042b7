"""One request to one cartridge, outside of a session: which method, and its arguments.

Tools answer as a session of them does (`AsPlayed`). Of other cartridges a method is chosen by its name, and its
arguments are written (`ByName`).
"""

from __future__ import annotations

from dataclasses import replace

from dispatch.session.model_player import ModelPlayer
from dispatch.session.situation import situation
from dispatch.wire.open_arguments import ArgumentWriter, Call
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge
from kernel.choose.rule import Rule
from kernel.contract import Cartridge
from kernel.memory.passes import Cost
from kernel.prompt import Prompt
from kernel.write.writer import Written


class AsPlayed:
    """A request to tools, decided as the first of a session."""

    def __init__(self, kernel: Kernel, wire: Wire, cartridge: Cartridge, rule: Rule | None, request: str) -> None:
        self._player = ModelPlayer(kernel, wire, [cartridge], rule)
        engine = cartridge.engine()
        engine.reset(0)
        self._seen, _ = situation({cartridge.name: cartridge}, {cartridge.name: engine}, 1, request)

    def decide(self, judge: Judge | None) -> Decision:
        """Return which tool is chosen."""
        kernel, self._player.judge = self._player.kernel, judge
        return kernel.decide(self._player.question(self._seen, kernel.ids(self._seen.prompt)))

    def call(self, decision: Decision | None, *, max_tokens: int, temperature: float, seed: int) -> Call:
        """Return the call of the tool that a decision chose."""
        assert decision is not None, "`decide` returns one"
        choice = self._player.written(decision, 1, self._seen.request)
        said = choice.decision or decision
        chosen = said.chosen_tokens - decision.chosen_tokens
        cost = Cost(said.passes - decision.passes, said.tokens_evaluated - decision.tokens_evaluated)
        written = Written(choice.text, said.ids, chosen, len(said.ids) - chosen, 0, cost, said.margin)
        return Call(choice.instruction, decision, written)


class ByName:
    """A method by its name alone, then its arguments, written behind the same prompt."""

    def __init__(self, kernel: Kernel, wire: Wire, prompt: Prompt, rule: Rule | None) -> None:
        self._kernel, self._wire, self._prompt, self._rule = kernel, wire, prompt, rule
        self._writer = ArgumentWriter(kernel)

    def decide(self, judge: Judge | None) -> Decision | None:
        """Return which method is chosen; None where it is written together with its arguments."""
        question = self._writer.which(self._wire, self._prompt, self._rule)
        return None if question is None else self._kernel.decide(replace(question, judge=judge))

    def call(self, decision: Decision | None, *, max_tokens: int, temperature: float, seed: int) -> Call:
        """Return the call of the method that a decision chose."""
        return self._writer.fill(
            self._wire, self._prompt, decision, max_tokens=max_tokens, temperature=temperature, seed=seed
        )
