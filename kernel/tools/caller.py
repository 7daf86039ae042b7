"""Chooses a tool for a request and finds its arguments. Knows no cartridge, no log and nothing that carries a call out.

The tool comes first: the names of all tools are scored behind a prompt that lists them, calibrated, and the words that
a tool shares with the request are the prior. Then come the arguments (`filling`). Whether any tool is meant at all is
for a judge to say, by both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from kernel.choose.aio import AsyncCalls, awaited
from kernel.choose.decision import Decision
from kernel.choose.outcome import Evidence, Outcome
from kernel.choose.question import PromptIds, Question
from kernel.choose.rule import RuleName
from kernel.errors import UsageError
from kernel.memory.memory import Memory
from kernel.opcode.opcode import SchemaOpcode
from kernel.opcode.tool_prompt import ToolPrompt
from kernel.prompt import Prompt
from kernel.text.vocabulary import Vocabulary
from kernel.tools.call import Call
from kernel.tools.filled import Filled
from kernel.tools.filling import Filler
from kernel.tools.matching import comparable, matches
from kernel.tools.meant import words_of
from kernel.tools.tools import Tools
from kernel.trie.opcodes import Literal, OpcodeSet

PRIOR = 8.0
"""Nats for each point of `Match.score`."""


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


@dataclass(frozen=True)
class Fitting:
    """Says whether a tool is meant at all, by the words of the request.

    How much likelier the request has made the best tool does not tell that: on development cases it added nothing to
    the words. Of several tools, what a rule does not know (under `exact`) holds nothing back.

    Args:
        log_odds: that a tool is meant; None where words do not tell, as in another script.
        alone: whether there is one tool only.
        margin: by so much the best tool has to be ahead of the second.
    """

    log_odds: float | None
    alone: bool = False
    margin: float = 0.05

    def judge(self, evidence: Evidence) -> Outcome:
        """See Judge."""
        outcome = Outcome.UNSURE if evidence.margin < self.margin else Outcome.CHOSEN
        if math.isnan(evidence.top) and not self.alone:
            return outcome
        return Outcome.NONE if self.log_odds is not None and self.log_odds < 0 else outcome


class Caller:
    """Makes calls with one kernel, and keeps what it has compiled."""

    def __init__(self, kernel: Deciding) -> None:
        self.kernel = kernel
        self.filler = Filler(kernel)

    def call(self, tools: Tools, request: str, *, always: bool = False, told: str = "") -> Call:
        """Return the call that a request asks for; see `Kernel.call`."""
        opcodes = tools.opcodes
        if not opcodes:
            raise UsageError("there is no tool to call")
        with self.kernel.memory.lock:
            before = self.kernel.memory.cost
            prompt = ToolPrompt(opcodes).asked(request, told)
            question = Question(self.kernel.ids(prompt), self.kernel.compile([name_of(opcode) for opcode in opcodes]))
            question = ranked(question, opcodes, request, always=always)
            decision = self.kernel.decide(question)
            original = {opcode.method: opcode.original for opcode in opcodes}
            call = Call(
                "",
                outcome=decision.outcome,
                probability=decision.probability,
                probabilities={original[method]: share for method, share in decision.probabilities.items()},
                close=tuple(original[method] for method in decision.close),
            )
            if call:
                chosen = opcodes[decision.index]
                call = replace(call, name=chosen.original, arguments=self.arguments(chosen, request).arguments)
            cost = self.kernel.memory.cost - before
            return replace(call, passes=cost.passes, tokens=cost.tokens)

    def arguments(self, opcode: type[SchemaOpcode], request: str) -> Filled:
        """Return the arguments that a request gives a tool."""
        return self.filler.fill(opcode, request)


def name_of(opcode: type[SchemaOpcode]) -> Literal:
    """Return what stands for a tool among others: its method, whatever its arguments."""
    return Literal(f" {opcode.method}", "\n", label=opcode.method)


def ranked(
    question: Question, opcodes: Sequence[type[SchemaOpcode] | None], request: str, *, always: bool = False
) -> Question:
    """Return a question among tools with the words in common as its prior, and the judge that goes by them.

    Args:
        opcodes: the tool of each opcode of the question's set; None is none of a tool.
        always: choose, also where no tool seems to be meant.
    """
    known = [opcode for opcode in opcodes if opcode is not None]
    found = matches(request, known)
    scores = iter([match.score for match in found])
    prior = np.array([np.nan if opcode is None else next(scores) for opcode in opcodes])
    rule = question.by
    if rule.name in (RuleName.CALIBRATED, RuleName.EXACT):
        spread = float(np.nanmax(prior) - np.nanmin(prior)) if known else 0.0  # the rule scales it to 1
        rule = replace(rule, planner_weight=(rule.planner_weight or PRIOR) * spread)
    if always or not known:
        return replace(question, rule=rule, prior=prior)
    log_odds = words_of(request, known, found).log_odds if comparable(request) else None
    return replace(question, rule=rule, prior=prior, judge=Fitting(log_odds, len(known) == 1))


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

    def call(self: Any, tools: Tools, request: str, *, always: bool = False, told: str = "") -> Call:
        """Return the call that a request asks for: which tool, and its arguments. Nothing is carried out.

        Args:
            request: what somebody wants, in plain words: data.
            always: call the likeliest tool, also where none seems to fit.
            told: what the request is read behind, such as results of earlier calls: data.

        Raises:
            UsageError: there is no tool.
            ContextError, LogitsError.
        """
        caller: Caller = self.caller
        return caller.call(tools, request, always=always, told=told)

    acall = awaited(call)
