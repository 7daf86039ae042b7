"""The kernel's calls for asyncio: each runs on one thread of the kernel's own, so that the event loop goes on.

Calls wait for each other in the order in which they came, as the kernel makes one decision at a time. A task that is
cancelled while it waits gives its place up; one that is cancelled while it is decided is decided to its end, and the
answer is dropped.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from kernel.choose.decision import Decision
from kernel.choose.outcome import Judge
from kernel.choose.question import Question
from kernel.choose.rule import Rule

P = ParamSpec("P")
R = TypeVar("R")


class AsyncCalls:
    """What `Kernel` offers to asyncio."""

    _worker: ThreadPoolExecutor | None = None

    def choose(
        self,
        prompt: str,
        options: Sequence[str],
        *,
        null: Sequence[str] | str = (),
        rule: Rule | str | None = None,
        listed: bool = False,
        judge: Judge | None = None,
    ) -> Decision:
        """See Kernel."""
        raise NotImplementedError

    def decide(self, question: Question) -> Decision:
        """See Kernel."""
        raise NotImplementedError

    async def achoose(
        self,
        prompt: str,
        options: Sequence[str],
        *,
        null: Sequence[str] | str = (),
        rule: Rule | str | None = None,
        listed: bool = False,
        judge: Judge | None = None,
    ) -> Decision:
        """Choose as `choose` does, without blocking the event loop."""
        return await self.aside(self.choose, prompt, options, null=null, rule=rule, listed=listed, judge=judge)

    async def adecide(self, question: Question) -> Decision:
        """Decide as `decide` does, without blocking the event loop."""
        return await self.aside(self.decide, question)

    async def aside(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function that uses the kernel on the kernel's own thread, and return what it returns."""
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="cartridge-kernel")
        return await asyncio.get_running_loop().run_in_executor(
            self._worker, functools.partial(function, *args, **kwargs)
        )

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)
            self._worker = None
