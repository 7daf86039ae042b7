"""Makes one answer of a chat, on the queue: which tool, then what is written, told piece by piece as it comes."""

from __future__ import annotations

import asyncio
import codecs
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dispatch.serve.commands import Commands, logarithm
from dispatch.serve.form import ChatForm
from dispatch.serve.messages import Talk
from dispatch.serve.pieces import Argument, Cut, Line, Pieces, Token
from dispatch.serve.place import Place
from dispatch.serve.services import Services
from dispatch.serve.toolset import Toolset
from dispatch.serve.values import Asked
from dispatch.session.told import NOTHING_MEANT, body, not_legal
from dispatch.wire.open_arguments import Call
from dispatch.wire.value import TOKENS as VALUE_TOKENS
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.outcome import Outcome
from kernel.choose.question import Question
from kernel.memory.listed import flat_of
from kernel.opcode.opcode import SchemaOpcode
from kernel.prompt import Prompt
from kernel.tools.caller import name_of, ranked
from kernel.write.writer import TOKENS as CALL_TOKENS
from kernel.write.writer import Written, write


@dataclass(frozen=True)
class Delta:
    """The next piece of an answer: text, and the tokens that are told with it."""

    text: str
    tokens: tuple[Token, ...] = ()


@dataclass
class Answer:
    """An answer as it is made.

    Attributes:
        tool: the tool that is called, None where text answers; known before the first piece.
        finish: why it ended, in OpenAI's words.
        kernel: what the kernel says of it beyond OpenAI's fields.
        pieces: gets each Delta.
    """

    tool: str | None = None
    finish: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    kernel: dict[str, Any] = field(default_factory=dict)
    pieces: asyncio.Queue[Delta] = field(default_factory=asyncio.Queue)

    @property
    def usage(self) -> dict[str, int]:
        """Tokens of prompt and answer, forced ones included."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


class Teller:
    """Takes tokens on the kernel's thread, and gives their text to an answer on the event loop."""

    def __init__(self, answer: Answer, cut: Cut) -> None:
        self._answer = answer
        self._cut = cut
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held: list[Token] = []

    def tell(self, tokens: Sequence[Token]) -> None:
        """Take tokens, in any thread."""
        self._loop.call_soon_threadsafe(self._take, tuple(tokens))

    def _take(self, tokens: Sequence[Token]) -> None:
        text = ""
        for token in tokens:
            shown = self._cut.take(self._decoder.decode(token.data))
            text += shown
            if shown or not token.data.isascii():  # a part of a character is shown with its last byte
                self._held.append(token)
        if text:
            self._answer.pieces.put_nowait(Delta(text, tuple(self._held)))
            self._held = []


@dataclass(frozen=True)
class Wanted:
    """How an answer is written: a chat, as it was asked for, at its place in the queue."""

    services: Services
    place: Place
    form: ChatForm
    talk: Talk
    always: bool

    async def call(self, answer: Answer, toolset: Toolset) -> None:
        """Choose a tool and find its arguments, exactly as the command `call` does.

        Where log-probabilities or a temperature are asked for, the arguments are written token by token instead.
        """
        services, wire, form, writers = self.services, toolset.wire, self.form, self.services.writers
        prompts: list[Prompt] = []
        written = bool(form.temperature) or form.top is not None
        opcodes = [opcode for opcode in wire.opcodes.values() if issubclass(opcode, SchemaOpcode)]

        def prompt() -> Prompt:
            if not prompts:
                prompts.append(toolset.prompt(self.talk))
            return prompts[0]

        def which(kernel: Kernel) -> Question:
            names = kernel.compile([name_of(opcode) for opcode in opcodes])
            question = Question(kernel.ids(prompt()), names, rule=services.rule)
            return ranked(question, opcodes, self.talk.request, always=self.always)

        methods = list(wire.opcodes)
        decision = await self.place.decide(which, followed=True)
        _told(answer, decision, {name: toolset.names[name] for name in decision.texts})
        if decision.outcome is not Outcome.CHOSEN:
            answer.prompt_tokens = len(flat_of(decision.prompt))
            return
        cartridge, method = methods[decision.index]
        answer.tool = toolset.names[method]
        teller = Teller(answer, Argument(f"<|call|>{cartridge}.{method} "))
        if len(methods) > 1:  # the name of the only one is forced, and told with the arguments
            answer.pieces.put_nowait(Delta("", (self._method(decision, toolset),)))

        def fill(kernel: Kernel) -> Call:
            pieces = Pieces(kernel.vocabulary, teller.tell, self.place.check, form.top)
            writer = writers.of(kernel)
            called = None if written else writer.found(wire, cartridge, method, self.talk.said)
            if called is None or len(called.written.ids) > (form.budget or math.inf):
                called = writer.fill(
                    wire,
                    prompt(),
                    decision,
                    max_tokens=form.budget or CALL_TOKENS,
                    temperature=form.temperature or 0.0,
                    seed=form.seed or 0,
                    watch=pieces,
                )
            answer.prompt_tokens = len(kernel.vocabulary.prompt(prompt().parts))
            pieces.finish(called.written.ids)
            return called

        called = await self.place.run(fill)
        self._written(answer, called.written, "tool_calls", toolset.notes)

    async def command(self, answer: Answer, commands: Commands, tools: Sequence[str] | None) -> None:
        """Choose a command of a cartridge, as a session of it does; `tools` are those that may be called."""
        request, form = self.talk.request, self.form
        always = self.always
        decision = await self.place.decide(lambda kernel: commands.question(kernel, request, tools, always=always))
        _told(answer, decision, {text: body(text) for text in decision.texts})
        answer.prompt_tokens = len(flat_of(decision.prompt))
        if decision.outcome is not Outcome.CHOSEN:
            return
        made, said = await self.place.run(lambda kernel: commands.instruction(kernel, decision, request))
        answer.tool, answer.finish = commands.names[made.method], "tool_calls"
        answer.completion_tokens = len(said.ids)
        answer.pieces.put_nowait(Delta(made.arguments, (commands.token(decision, form.top or 0),)))
        answer.kernel |= {"passes": said.passes, "tokens_evaluated": said.tokens_evaluated}
        answer.kernel["confirm"] = any(o.confirm for o in commands.cartridge.opcodes if o.method == made.method)

    async def value(self, answer: Answer, asked: Asked) -> None:
        """Write a value of a schema."""
        form, teller = self.form, Teller(answer, Line())

        def fill(kernel: Kernel) -> Written:
            ids = kernel.vocabulary.prompt(asked.parts(self.talk))
            pieces = Pieces(kernel.vocabulary, teller.tell, self.place.check, form.top)
            written = write(
                kernel.memory,
                asked.stages(kernel.vocabulary),
                ids,
                max_tokens=form.budget or VALUE_TOKENS,
                temperature=form.temperature or 0.0,
                seed=form.seed or 0,
                watch=pieces,
            )
            answer.prompt_tokens = len(ids)
            pieces.finish(written.ids)
            return written

        self._written(answer, await self.place.run(fill), "stop", asked.notes)

    def _written(self, answer: Answer, written: Written, finish: str, notes: Sequence[str]) -> None:
        answer.completion_tokens = len(written.ids)
        answer.finish = "length" if written.closed else finish
        answer.kernel |= {
            "chosen_tokens": written.chosen,
            "forced_tokens": written.forced,
            "closed_tokens": written.closed,
            "passes": answer.kernel.get("passes", 0) + written.cost.passes,
            "tokens_evaluated": answer.kernel.get("tokens_evaluated", 0) + written.cost.tokens,
        }
        if notes:
            answer.kernel["notes"] = list(notes)

    def _method(self, decision: Decision, toolset: Toolset) -> Token:
        """Return the choice of the tool as one token: its name, and how probable it is under the rule."""
        shares = [(text, share) for text, share in zip(decision.texts, decision.shares.tolist(), strict=True)]
        known = sorted(((share, text) for text, share in shares if not math.isnan(share)), reverse=True)
        top = [(toolset.names[text].encode(), logarithm(share)) for share, text in known[: self.form.top or 0]]
        chosen = decision.texts[decision.position]
        return Token(toolset.names[chosen].encode(), logarithm(decision.probability), tuple(top))


def _told(answer: Answer, decision: Decision, names: Mapping[str, str]) -> None:
    """Say what the kernel knows of a choice; where nothing was chosen, the answer is a sentence that says why.

    Args:
        names: what each text of the decision is called.
    """
    answer.kernel |= {
        "outcome": decision.outcome.value,
        "close": [names[text] for text in decision.close],
        "choices": {names[text]: round(share, 4) for text, share in decision.probabilities.items() if share == share},
        "margin": decision.margin if math.isfinite(decision.margin) else None,
        "legal_mass": decision.legal_mass,
        "passes": decision.passes,
        "tokens_evaluated": decision.tokens_evaluated,
    }
    said = {
        Outcome.NONE: NOTHING_MEANT,
        Outcome.UNSURE: f"nothing was done: {' or '.join(answer.kernel['close'])}?",
        Outcome.NOT_LEGAL: not_legal(decision.preferred_text or ""),
    }
    if decision.outcome in said:
        answer.pieces.put_nowait(Delta(said[decision.outcome]))
