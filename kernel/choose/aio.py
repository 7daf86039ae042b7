"""The kernel's calls for asyncio: each runs on one thread of the kernel's own, so that the event loop goes on.

Calls wait for each other in the order in which they came, as the kernel makes one decision at a time. A task that is
cancelled while it waits gives its place up; one that is cancelled while it is decided is decided to its end, and the
answer is dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound="AsyncCalls")


class AsyncCalls:
    """What `Kernel` offers to asyncio."""

    _worker: ThreadPoolExecutor | None = None

    async def aside(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that uses the kernel on the kernel's own thread, and return what it returns."""
        import asyncio  # 30 ms, which nobody pays who does not await

        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="cartridge-kernel")
        return await asyncio.get_running_loop().run_in_executor(
            self._worker, functools.partial(function, *args, **kwargs)
        )

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)
            self._worker = None


def awaited(method: Callable[Concatenate[C, P], R]) -> Callable[Concatenate[C, P], Coroutine[Any, Any, R]]:
    """Return the twin of a method that does the same without blocking the event loop, as `achoose` is of `choose`."""

    @functools.wraps(method)
    async def twin(self: C, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self.aside(lambda: method(self, *args, **kwargs))

    twin.__name__ = f"a{method.__name__}"
    twin.__doc__ = f"As `{method.__name__}`, without blocking the event loop."
    return twin
