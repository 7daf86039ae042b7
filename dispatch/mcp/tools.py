"""The tools that MCP's clients see, and what a call of one does. Knows neither the SDK nor a stream.

`request` is one turn of the session, whose engines keep their states from call to call; `choose` is a decision about
texts of the client's own, which changes nothing. Calls come one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from dispatch.session.session import Session
from dispatch.session.told import why_held
from dispatch.session.turn import Turn
from kernel.api import Kernel
from kernel.choose.outcome import Thresholds
from kernel.errors import UsageError, short
from kernel.opcode import Instruction

Result = dict[str, Any]
Agrees = Callable[[Instruction], bool | None]
"""Asks whoever is behind the client whether an instruction shall be carried out; None where nobody can be asked."""

CHOOSE = "Chooses one of some texts: the one that a small local language model prefers."

Words = Annotated[str, StringConstraints(max_length=100_000)]


class Arguments(BaseModel):
    """Of a tool; the docstrings of the fields are what a client reads."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Asked(Arguments):
    """Of `request`."""

    request: Annotated[str, StringConstraints(min_length=1, max_length=10_000)]
    """What is wanted, in plain words."""


class Chosen(Arguments):
    """Of `choose`."""

    prompt: Words
    """A text that ends where the option begins."""
    options: Annotated[list[Words], Field(min_length=2, max_length=1000)]
    """The texts to choose from."""
    null: Annotated[list[Words], Field(max_length=100)] = []
    """The same prompt asking for nothing: what the model says there counts for nothing, and it may choose none."""


class Tools:
    """What a client may call.

    Args:
        session: takes the requests.
        kernel: chooses among texts.

    Attributes:
        lock: is held while a call is carried out.
    """

    def __init__(self, session: Session, kernel: Kernel) -> None:
        self.session, self.kernel = session, kernel
        self.lock = threading.Lock()

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools as MCP's `tools/list` writes them."""
        cartridges = self.session.cartridges.values()
        confirms = any(opcode.confirm for cartridge in cartridges for opcode in cartridge.opcodes)
        acts = any(cartridge.acts_outside for cartridge in cartridges)
        hints = {"readOnlyHint": False, "destructiveHint": confirms, "openWorldHint": acts}
        about = " ".join(f"{cartridge.name}: {cartridge.summary}" for cartridge in cartridges)
        what = "Carries out one request in plain words, or says why nothing was done."
        return [
            _tool("request", f"{what} {about}", Asked, hints),
            _tool("choose", CHOOSE, Chosen, {"readOnlyHint": True, "openWorldHint": False}),
        ]

    def call(self, name: str, arguments: dict[str, Any], agrees: Agrees) -> Result:
        """Carry a call out and return what MCP calls its structured content.

        Raises KernelError where it fails, UsageError for a tool or arguments that are none.
        """
        if name == "request":
            asked = _read(Asked, arguments)
            with self.lock:
                return self._request(asked.request, agrees)
        if name == "choose":
            return self._choose(_read(Chosen, arguments))
        raise UsageError(f"there is no tool {short(name)}; there is: request, choose")

    def _request(self, request: str, agrees: Agrees) -> Result:
        session = self.session
        if session.over():
            raise UsageError(f"the session has ended: {session.detail or session.ending}; start the server again")
        turn = session.turn(" ".join(request.split()))
        if (pending := turn.pending) is not None and not turn.close:
            answer = agrees(turn.instruction)
            turn = pending.take() if answer else pending.drop() if answer is not None else turn
        session.lapse()
        return _told(turn)

    def _choose(self, wanted: Chosen) -> Result:
        judge = Thresholds() if wanted.null else None
        decision = self.kernel.choose(wanted.prompt, wanted.options, null=wanted.null, judge=judge)
        shares = zip(decision.texts, decision.shares.tolist(), strict=True)
        return {
            "text": decision.text,
            "outcome": decision.outcome.value,
            "close": list(decision.close),
            "probabilities": {text: round(share, 6) for text, share in shares},
        }


def _told(turn: Turn) -> Result:
    """Return a turn as a client is told of it."""
    instruction = {"cartridge": turn.instruction.cartridge, "method": turn.instruction.method}
    return {
        "done": not turn.held and not turn.refused,
        "instruction": {**instruction, "arguments": turn.instruction.args},
        "result": turn.failed or turn.result,
        "outcome": turn.outcome.value,
        "why": why_held(turn),
        "close": [repr(each) for each in turn.close],
        "probability": None if turn.decision is None else round(turn.decision.probability, 6),
    }


def _tool(name: str, description: str, arguments: type[Arguments], hints: dict[str, bool]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    schema.pop("description", None)
    return {"name": name, "description": description, "inputSchema": schema, "annotations": hints}


def _read(kind: type[Any], arguments: dict[str, Any]) -> Any:
    try:
        return kind.model_validate(arguments)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "arguments"
        raise UsageError(f"{where}: {short(first['input'])}: {first['msg']}") from error
