"""A request's place in the queue to the kernel, and what it waits for there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.question import Question
from kernel.errors import KernelError

T = TypeVar("T")
Ask = Callable[[Kernel], Question]


class GoneError(KernelError):
    """Nobody waits for an answer any more: the client went away, or the server ends."""


@dataclass(eq=False)
class Job:
    """One thing that a place waits for. `asks` makes the question of a decision; `followed`: as in `Place.decide`."""

    place: Place
    work: Callable[[Kernel], Any] | None
    asks: Ask | None = None
    followed: bool = False
    question: Question | None = None
    future: Future[Any] = field(default_factory=Future)

    def asked(self, kernel: Kernel) -> Question:
        """Make the question; raises GoneError when nobody waits for its answer any more."""
        assert self.asks is not None
        self.place.check()
        return self.asks(kernel)

    @property
    def shares(self) -> bool:
        """Whether it may be done in the passes of another one."""
        return self.asks is not None and not self.followed

    def done(self, result: Any = None, error: BaseException | None = None) -> None:
        """Tell whoever waits; what was told before, or is waited for no more, stays as it is."""
        with suppress(InvalidStateError):
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)


class Place:
    """A request's place in the queue; leave it by the end of the `with` block, and what it waits for is dropped."""

    def __init__(self, number: int, wait: Callable[[Job], Future[Any]], leave: Callable[[Place], None]) -> None:
        """Take its number in the order of coming, what lets a job wait, and what is called when it is left."""
        self.number = number
        self._wait, self._leave = wait, leave
        self._gone = threading.Event()

    async def decide(self, asks: Ask, *, followed: bool = False) -> Decision:
        """Make one decision, in passes that it may share; `asks` makes its question, on the kernel's thread.

        `followed` says that this place goes on at once behind the same prompt: nothing else comes between.
        """
        decision: Decision = await asyncio.wrap_future(self._wait(Job(self, None, asks, followed)))
        return decision

    async def run(self, work: Callable[[Kernel], T]) -> T:
        """Run a function that uses the kernel, on the kernel's thread, and return what it returns."""
        return await asyncio.wrap_future(self.submit(work))

    def submit(self, work: Callable[[Kernel], T]) -> Future[T]:
        """Do as `run` does, for threads: the future has what the function returns."""
        return self._wait(Job(self, work))

    def check(self) -> None:
        """Raise GoneError when nobody waits any more; what takes long calls this now and then."""
        if self._gone.is_set():
            raise GoneError("the client went away")

    def give_up(self) -> None:
        """Let `check` raise from now on."""
        self._gone.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.give_up()
        self._leave(self)
