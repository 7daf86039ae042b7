"""`POST /v1/chat/completions`: what answers a chat, and how the answer is told, whole or as a stream.

Only what is held can answer: a call of one of some tools, a value of a JSON Schema, or the results of calls as they
are. Nothing here carries a call out.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dispatch.serve.answer import Answer, Delta, Wanted
from dispatch.serve.errors import RequestError, as_request_error, document
from dispatch.serve.form import ChatForm, check_plain
from dispatch.serve.messages import Talk, read_messages
from dispatch.serve.patience import while_here, within
from dispatch.serve.pieces import Token
from dispatch.serve.reading import read
from dispatch.serve.selection import select
from dispatch.serve.services import Services
from dispatch.serve.streams import Event, events


async def chat(request: Request) -> Response:
    """Answer a chat."""
    services: Services = request.app.state.services
    form = await read(request, ChatForm)
    check_plain(form)
    talk = read_messages(form.messages)
    head = Head(form.model)
    if not form.stream:
        return JSONResponse(await while_here(request, _whole(services, form, talk, head)))
    # nothing is sent before the first piece is there, so that what fails until then is an error with its status
    stream = _Stream(services, form, talk, head)
    await while_here(request, stream.begin())
    return events(services, stream.chunks())


@dataclass(frozen=True)
class Head:
    """What every document and every chunk of an answer begins with."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{secrets.token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def of(self, kind: str, choice: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
        """Return a document with one choice, or none."""
        choices = [] if choice is None else [{"index": 0, **choice}]
        said = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return {**said, "choices": choices, **more}


async def _make(services: Services, form: ChatForm, talk: Talk, answer: Answer) -> None:
    """Make the answer, at a place in the queue."""
    with services.queue.place() as place:
        found = await asyncio.to_thread(select, services, form)
        wanted = Wanted(services, place, form, talk, found.choice == "required")
        calls = found.choice == "required" or (found.choice == "auto" and not talk.results)
        if found.commands is not None and calls:
            await wanted.command(answer, found.commands, found.only)
        elif found.toolset is not None and calls:
            await wanted.call(answer, found.toolset)
        elif found.asked is not None:
            await wanted.value(answer, found.asked)
        elif found.choice == "auto" and (found.commands or found.toolset):
            answer.pieces.put_nowait(Delta("\n".join(talk.results)))
        else:
            raise RequestError(
                "free text is not written here: give tools, and a call of one of them answers, or response_format with "
                "a JSON Schema, and a value of it answers",
                param="tools" if found.choice != "none" else "tool_choice",
                code="unconstrained",
            )


async def _whole(services: Services, form: ChatForm, talk: Talk, head: Head) -> dict[str, Any]:
    answer = Answer()
    async with within(services.limits.answer_seconds):
        await _make(services, form, talk, answer)
    deltas = [answer.pieces.get_nowait() for _ in range(answer.pieces.qsize())]
    text = "".join(delta.text for delta in deltas)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if answer.tool is not None:
        call = {"id": _call_id(), "type": "function", "function": {"name": answer.tool, "arguments": text}}
        message |= {"content": None, "tool_calls": [call]}
    choice = {"message": message, "finish_reason": answer.finish, "logprobs": _logprobs(form, deltas)}
    return head.of("chat.completion", choice, usage=answer.usage, kernel=answer.kernel)


def _call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def _logprobs(form: ChatForm, deltas: Iterable[Delta]) -> dict[str, Any] | None:
    if not form.logprobs:
        return None
    tokens: list[Token] = [token for delta in deltas for token in delta.tokens]
    return {"content": [token.document() for token in tokens], "refusal": None}


class _Stream:
    """An answer that is told while it is made, in chunks as OpenAI sends them."""

    def __init__(self, services: Services, form: ChatForm, talk: Talk, head: Head) -> None:
        self._services = services
        self._form = form
        self._head = head
        self._answer = Answer()
        self._making = asyncio.ensure_future(self._make(talk))
        self._first: Delta | None = None

    async def _make(self, talk: Talk) -> None:
        async with within(self._services.limits.answer_seconds):
            await _make(self._services, self._form, talk, self._answer)

    async def begin(self) -> None:
        """Wait for the first piece; raises what comes in its place."""
        try:
            self._first = await self._next()
        except BaseException:
            self._making.cancel()
            raise

    async def _next(self) -> Delta | None:
        """Return the next piece, None behind the last one; raises what went wrong."""
        coming = asyncio.ensure_future(self._answer.pieces.get())
        try:
            await asyncio.wait({coming, self._making}, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
            self._making.result()
            return None if self._answer.pieces.empty() else self._answer.pieces.get_nowait()
        finally:
            coming.cancel()

    async def chunks(self) -> AsyncIterator[Event]:
        """Yield the chunks; the making ends with them, whoever ends first."""
        try:
            yield self._chunk(self._opening())
            delta = self._first
            while delta is not None:
                if delta.text or self._form.logprobs:
                    yield self._chunk(self._said(delta.text), logprobs=_logprobs(self._form, [delta]))
                delta = await self._next()
            answer = self._answer
            yield self._chunk({}, answer.finish, kernel=answer.kernel)
            options = self._form.stream_options
            if options is not None and options.include_usage:
                yield _event(self._head.of("chat.completion.chunk", None, usage=answer.usage))
            yield {"data": "[DONE]"}
        except RequestError as error:
            yield _event(document(error))
        except Exception as error:
            yield _event(document(as_request_error(error)))
        finally:
            self._making.cancel()

    def _opening(self) -> dict[str, Any]:
        if self._answer.tool is None:
            return {"role": "assistant", "content": "", "refusal": None}
        function = {"name": self._answer.tool, "arguments": ""}
        call = {"index": 0, "id": _call_id(), "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None}

    def _said(self, text: str) -> dict[str, Any]:
        if self._answer.tool is None:
            return {"content": text}
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, *, logprobs: Any = None, **more: Any) -> Event:
        choice = {"delta": delta, "logprobs": logprobs, "finish_reason": finish}
        if self._form.stream_options is not None and self._form.stream_options.include_usage:
            more["usage"] = None
        return _event(self._head.of("chat.completion.chunk", choice, **more))


def _event(value: dict[str, Any]) -> Event:
    return {"data": json.dumps(value, ensure_ascii=False, separators=(",", ":"))}
