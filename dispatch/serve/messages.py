"""Reads the messages of a chat: what is told in front, and the requests, calls, results and answers in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dispatch.serve.errors import RequestError
from kernel.errors import short
from kernel.opcode.tool_prompt import Turn

FIELDS = {
    "system": ("content", "name"),
    "developer": ("content", "name"),
    "user": ("content", "name"),
    "assistant": ("content", "name", "tool_calls", "refusal", "audio", "function_call", "annotations", "reasoning"),
    "tool": ("content", "tool_call_id"),
}
"""The roles, and what a message of each may have. Clients send back the messages that they got, empty fields too."""

EMPTY = ("refusal", "audio", "function_call", "annotations", "reasoning")
"""Fields that say nothing here and have to be empty."""


@dataclass(frozen=True)
class Talk:
    """The messages of a chat.

    Attributes:
        told: what system and developer messages say, in their order.
        turns: the rest; the last one is a request, or the results of calls.
        calls: name and arguments of each call in `turns`, by the place of its turn.
    """

    told: str
    turns: tuple[Turn, ...]
    calls: Mapping[int, tuple[str, str]]

    @property
    def request(self) -> str:
        """The last thing that a person asked for."""
        return next(turn.text for turn in reversed(self.turns) if turn.said == "Request")

    @property
    def said(self) -> str:
        """The last request, and behind it what its calls gave, a line each: what arguments are found in."""
        last = max(place for place, turn in enumerate(self.turns) if turn.said == "Request")
        return "\n".join(" ".join(turn.text.split()) for turn in self.turns[last:])

    @property
    def results(self) -> tuple[str, ...]:
        """What the calls behind the last request gave, where nothing has been asked since."""
        found: list[str] = []
        for turn in reversed(self.turns):
            if turn.said != "Result":
                break
            found.append(turn.text)
        return tuple(reversed(found))


def read_messages(messages: Sequence[Mapping[str, Any]]) -> Talk:
    """Return what the messages say; raises RequestError for one that cannot be read."""
    told: list[str] = []
    turns: list[Turn] = []
    calls: dict[int, tuple[str, str]] = {}
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        role = message.get("role")
        if role not in FIELDS:
            raise _wrong(f"{where}.role", f"{short(role)} is none of {', '.join(FIELDS)}")
        for name in message:
            if name != "role" and name not in FIELDS[role]:
                raise _wrong(f"{where}.{name}", f"a message of {role!r} has no such field")
            if name in EMPTY and message[name]:
                raise _wrong(f"{where}.{name}", "is not supported")
        text = _content(message.get("content"), where, may_be_missing=role == "assistant")
        if role in ("system", "developer"):
            told.append(text)
        elif role == "user":
            turns.append(Turn("Request", text))
        elif role == "tool":
            turns.append(Turn("Result", text))
        else:
            if text.strip():
                turns.append(Turn("Answer", text))
            for name, arguments in _calls(message.get("tool_calls"), where):
                calls[len(turns)] = (name, arguments)
                turns.append(Turn("Call", f"{name} {arguments}"))
    if not any(turn.said == "Request" for turn in turns):
        raise _wrong("messages", "there is no message of 'user', so nothing is asked")
    if turns[-1].said not in ("Request", "Result"):
        raise _wrong(f"messages[{len(messages) - 1}].role", "the last message is one of 'user' or 'tool'")
    return Talk("\n".join(told), tuple(turns), calls)


def _content(content: Any, where: str, *, may_be_missing: bool) -> str:
    if isinstance(content, str):
        return content
    if content is None and may_be_missing:
        return ""
    if not isinstance(content, list):
        raise _wrong(f"{where}.content", f"{short(content)} is no text")
    texts = []
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind != "text":
            raise _wrong(f"{where}.content[{place}].type", f"{short(kind)} is not supported; a part is 'text'")
        if not isinstance(part.get("text"), str):
            raise _wrong(f"{where}.content[{place}].text", f"{short(part.get('text'))} is no text")
        texts.append(part["text"])
    return "\n".join(texts)


def _calls(found: Any, where: str) -> list[tuple[str, str]]:
    if found is None:
        return []
    if not isinstance(found, list):
        raise _wrong(f"{where}.tool_calls", f"{short(found)} is no list")
    calls = []
    for place, call in enumerate(found):
        function = call.get("function") if isinstance(call, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not isinstance(arguments, str):
            raise _wrong(f"{where}.tool_calls[{place}].function", "a call has a function with a name and arguments")
        calls.append((name, arguments))
    return calls


def _wrong(field: str, why: str) -> RequestError:
    return RequestError(f"{field}: {why}", param=field, code="invalid_value")
