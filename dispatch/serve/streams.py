"""Server-sent events (WHATWG HTML, section 9.2) that end with the server, and with the client that reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from sse_starlette import EventSourceResponse

from dispatch.serve.services import Services

PING_SECONDS = 15
SEND_SECONDS = 30
"""A client that takes nothing for so long is given up."""

Event = dict[str, str]
"""`data`, and where they are given `event`, `id` and `retry`."""


def events(services: Services, source: AsyncIterator[Event]) -> EventSourceResponse:
    """Return a response that sends what an asynchronous generator yields, until it, the client or the server ends.

    The generator is closed then; what it has to give back belongs into its `finally`.
    """
    return EventSourceResponse(_until_the_end(services, source), ping=PING_SECONDS, sep="\n", send_timeout=SEND_SECONDS)


async def _until_the_end(services: Services, source: AsyncIterator[Event]) -> AsyncIterator[Event]:
    ending = asyncio.ensure_future(services.ending.wait())
    coming: asyncio.Future[Event] | None = None
    try:
        while True:
            coming = asyncio.ensure_future(anext(source))
            await asyncio.wait({coming, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            try:
                event = coming.result()
            except StopAsyncIteration:
                return
            yield event
    finally:
        ending.cancel()
        if coming is not None and not coming.done():
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await coming
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
