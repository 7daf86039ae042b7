"""Chooses a tool for a request and finds its arguments. Knows no cartridge, no log and nothing that carries a call out.

The tool is chosen first, by its name, as any option is. Then the model writes its arguments, held to their shape.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from kernel.choose.aio import AsyncCalls, awaited
from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge, Outcome, Thresholds
from kernel.choose.question import PromptIds, Question
from kernel.errors import UsageError
from kernel.memory.memory import Memory
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tool_prompt import ToolPrompt
from kernel.prompt import Prompt
from kernel.recent import keep, recall
from kernel.shape.shape import seq
from kernel.text.vocabulary import Vocabulary
from kernel.tools.call import Call
from kernel.tools.tools import Tools
from kernel.trie.opcodes import Literal, OpcodeSet
from kernel.write.stages import Stages
from kernel.write.writer import TOKENS, write

STAGES_KEPT = 64
"""Tools whose compiled arguments are kept."""

JUDGE = Thresholds()


class Deciding(Protocol):
    """As much of a kernel as it takes to make a call."""

    memory: Memory
    vocabulary: Vocabulary

    def compile(self, literals: Sequence[Literal | str], *, keep: bool = True) -> OpcodeSet:
        """See Kernel."""

    def ids(self, prompt: Prompt) -> PromptIds:
        """See Kernel."""

    def decide(self, question: Question) -> Decision:
        """See Kernel."""


class Caller:
    """Makes calls with one kernel, and keeps what it has compiled."""

    def __init__(self, kernel: Deciding) -> None:
        self.kernel = kernel
        self._stages: OrderedDict[type[SchemaOpcode], Stages] = OrderedDict()

    def call(
        self, opcodes: Sequence[type[SchemaOpcode]], request: str, judge: Judge | None = JUDGE, told: str = ""
    ) -> Call:
        """Return the call that a request asks for; see `Kernel.call`."""
        if not opcodes:
            raise UsageError("there is no tool to call")
        with self.kernel.memory.lock:
            before = self.kernel.memory.cost
            prompt = ToolPrompt(opcodes).asked(request)
            chosen, call = opcodes[0], Call("")
            if len(opcodes) > 1:
                names = [Literal(f" {opcode.method}", " ", label=opcode.original) for opcode in opcodes]
                question = Question(self.kernel.ids(prompt), self.kernel.compile(names), judge=judge)
                decision = self.kernel.decide(question)
                chosen = opcodes[decision.index]
                call = replace(
                    call,
                    outcome=decision.outcome,
                    probability=decision.probability,
                    probabilities=decision.probabilities,
                    close=decision.close,
                )
            if call.outcome is Outcome.CHOSEN:
                call = replace(call, name=chosen.original, arguments=self._arguments(chosen, prompt))
            cost = self.kernel.memory.cost - before
            return replace(call, passes=cost.passes, tokens=cost.tokens)

    def _arguments(self, opcode: type[SchemaOpcode], prompt: Prompt) -> dict[str, Any]:
        stages = recall(self._stages, opcode)
        if stages is None:
            stages = Stages([seq(" ", opcode.method, " ", opcode.arguments_shape(), "\n")], self.kernel.vocabulary)
            keep(self._stages, opcode, stages, STAGES_KEPT)
        ids = self.kernel.vocabulary.prompt(prompt.parts)
        written = write(self.kernel.memory, stages, ids, max_tokens=TOKENS)
        values: dict[str, Any] = json.loads(written.text.strip().partition(" ")[2])
        return values


class ToolCalls(AsyncCalls):
    """What `Kernel` offers to callers of tools."""

    _caller: Caller | None = None

    @property
    def caller(self: Any) -> Caller:
        """What makes calls, for programs that decide and fill in apart; made at the first use."""
        if self._caller is None:
            self._caller = Caller(self)
        made: Caller = self._caller
        return made

    def call(self: Any, tools: Tools, request: str, *, judge: Judge | None = JUDGE, told: str = "") -> Call:
        """Return the call that a request asks for: which tool, and its arguments. Nothing is carried out.

        Args:
            request: what somebody wants, in plain words: data.
            judge: says whether a tool fits at all; None always calls one.
            told: what the request is read behind, such as results of earlier calls: data.

        Raises:
            UsageError: there is no tool.
            ContextError, LogitsError.
        """
        caller: Caller = self.caller
        return caller.call(tools.opcodes, request, judge, told)

    acall = awaited(call)
