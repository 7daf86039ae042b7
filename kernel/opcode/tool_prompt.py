"""The prompt of a tool list: each tool on a line, what was said before, the request, and a blank for the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from kernel.opcode.opcode import Opcode
from kernel.prompt import NOTHING, Part, Prompt
from kernel.shown import shown


class Turn(NamedTuple):
    """Something that was said; `text` is data, and stands on one line."""

    said: Literal["Request", "Call", "Result", "Answer"]
    text: str


class ToolPrompt:
    """Writes the prompt for a call of one of some tools."""

    def __init__(self, opcodes: Sequence[type[Opcode]]) -> None:
        self._list = "".join(f"- {tool_line(opcode)}\n" for opcode in opcodes)

    def behind(self, turns: Sequence[Turn], told: str = "") -> Prompt:
        """Return the tools, what was said, and a blank for the call; the last request of the null asks for nothing.

        Args:
            turns: in their order; one of them at least is a request.
            told: what stands in front of it all: data.
        """
        last = max(place for place, turn in enumerate(turns) if turn.said == "Request")
        null = [*turns[:last], Turn("Request", NOTHING), *turns[last + 1 :]]
        return Prompt(self._parts(turns, told), (self._parts(null, told),))

    def asked(self, request: str, told: str = "") -> Prompt:
        """Return the prompt of a request alone, perhaps behind what is told."""
        return self.behind([Turn("Request", request)], told)

    def _parts(self, turns: Sequence[Turn], told: str) -> tuple[Part, ...]:
        parts = [Part(f"{told.strip()}\n\n")] if told.strip() else []
        parts += [Part("Tools:\n", trusted=True), Part(self._list)]
        for turn in turns:
            parts += [Part(f"\n{turn.said}:", trusted=True), Part(f" {' '.join(turn.text.split()) or NOTHING}")]
        return (*parts, Part("\nCall:", trusted=True))


def tool_line(opcode: type[Opcode]) -> str:
    """Return a tool as one line: its method, the names of its arguments, the first sentence that describes it."""
    names = ", ".join(shown(a.name) if a.required else f"{shown(a.name)}?" for a in opcode.arguments())
    told = " ".join((opcode.__doc__ or "").split())
    first = told.split(". ")[0].rstrip(".")
    return f"{opcode.method}({names}): {first[:200]}"
