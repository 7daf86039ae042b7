"""What a call is chosen from: the tools of a request as opcodes, and the prompt that lists them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dispatch.serve.errors import RequestError
from dispatch.serve.messages import Talk
from dispatch.wire.form import FORMS
from dispatch.wire.wire import Wire
from kernel.canon import canonical
from kernel.errors import short
from kernel.opcode.opcode import Opcode
from kernel.opcode.tool_prompt import ToolPrompt, Turn
from kernel.opcode.tools import read_tools
from kernel.prompt import Prompt
from kernel.recent import keep, recall

NAME = "tools"
"""The name of the cartridge that the tools of a request become."""

SETS_KEPT = 32
"""Tool lists that are kept as opcodes, so that a client that sends the same list again waits for no compiling."""

FORM = FORMS["tagged"]


@dataclass(frozen=True)
class Toolset:
    """What a call is chosen from.

    Attributes:
        wire: its methods in the wire form of `call`.
        names: the name of each method, as the client knows it.
        prompt: writes the prompt of a talk, on the kernel's thread.
        notes: what of the schemas only describes.
    """

    wire: Wire
    names: Mapping[str, str]
    prompt: Callable[[Talk], Prompt]
    notes: tuple[str, ...] = ()

    @property
    def cartridge(self) -> str:
        """The cartridge of the methods."""
        return next(iter(self.wire.opcodes))[0]

    def only(self, names: Sequence[str], field: str) -> Toolset:
        """Return a set of these names alone; raises RequestError, which names `field`, for one that is not there."""
        for name in names:
            if name not in self.names.values():
                raise RequestError(
                    f"{field}: there is no tool {short(name)}; there is: {', '.join(self.names.values())}",
                    param=field,
                    code="unknown_tool",
                )
        opcodes = tuple(o for (_, method), o in self.wire.opcodes.items() if self.names[method] in names)
        return replace(self, wire=_wire(self.cartridge, opcodes))


class Toolsets:
    """Makes the set of a tool list, and keeps those that were used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Toolset] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, tools: Sequence[Any]) -> Toolset:
        """Return the set of a tool list; raises RequestError for a tool that cannot be held exactly."""
        key = canonical(tools)
        with self._lock:
            known = recall(self._kept, key)
        if known is None:
            known = _of_tools(tools)
            with self._lock:
                keep(self._kept, key, known, SETS_KEPT)
        return known


def _of_tools(tools: Sequence[Any]) -> Toolset:
    found = read_tools(tools)
    if found.refusals:
        refusal = found.refusals[0]
        place = next((n for n, tool in enumerate(tools) if refusal.tool in (_name(tool), f"tool {n}")), 0)
        raise RequestError(f"tools[{place}]: {refusal.reason}", param=f"tools[{place}]", code="unsupported_tool")
    writer = ToolPrompt(found.opcodes)
    methods = {opcode.original: opcode.method for opcode in found.opcodes}

    def prompt(talk: Talk) -> Prompt:
        turns = list(talk.turns)
        for place, (name, arguments) in talk.calls.items():  # as the model would have said it
            turns[place] = Turn("Call", f"<|call|>{NAME}.{methods.get(name, name)} {arguments}<|/call|>")
        return writer.behind(turns, talk.told)

    names = {opcode.method: opcode.original for opcode in found.opcodes}
    notes = tuple(str(note) for note in found.notes)
    return Toolset(_wire(NAME, found.opcodes), names, prompt, notes)


class _Declared(NamedTuple):
    name: str
    opcodes: tuple[type[Opcode], ...]


def _wire(name: str, opcodes: Sequence[type[Opcode]]) -> Wire:
    return Wire([_Declared(name, tuple(opcodes))], FORM)


def _name(tool: Any) -> str | None:
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    return name if isinstance(name, str) else None
