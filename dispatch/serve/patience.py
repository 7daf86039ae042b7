"""How long an answer is waited for: as long as its client is there, and no longer than the limits say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from starlette.requests import Request

from dispatch.serve.errors import RequestError

T = TypeVar("T")


async def while_here(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns; it is cancelled when the client goes away, whose body has been read."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leaves(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise RequestError("the client went away", status=499, code="gone")
    finally:
        for each in (task, leaving):
            if not each.done():
                each.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await each


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Give up what stands inside after so many seconds; raises RequestError 504."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RequestError(f"the answer did not come within {seconds:g} s", status=504, code="timeout") from None


async def _leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
