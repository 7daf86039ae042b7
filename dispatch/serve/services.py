"""What the routes share: the queue to the kernel, what is served, who may ask, and whether the server is ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dispatch.serve.access import Access
from dispatch.serve.commands import Commands
from dispatch.serve.limits import Limits
from dispatch.serve.metrics import Metrics
from dispatch.serve.queue import KernelQueue
from dispatch.serve.toolset import Toolsets
from dispatch.serve.values import Schemas
from dispatch.serve.writers import Writers
from kernel.api import Kernel
from kernel.choose.rule import Rule
from kernel.contract import Cartridge

T = TypeVar("T")


@dataclass
class Services:
    """What the routes share.

    Attributes:
        queue: to the model that is served; everything that uses a kernel runs through it, as one thread may.
        model: its name.
        load: makes the kernel of a model by its name.
        rule: that decides where a request names none; None is the kernel's default.
        cartridges: those that are served, and `specs` what they were named by.
        logs: session logs that were named one by one.
        folder: whose logs are shown; None where no folder is served.
        seed: of engines; `wire`, `n_ctx`, `threads` are those of the command line.
        ending: is set when the server ends; whatever streams ends then.
        metrics: counts of what was answered.
        commands: of the cartridges that take requests, by the name under which they are asked.
        toolsets, schemas, writers: what was compiled for requests, kept for the next ones.
    """

    queue: KernelQueue
    model: str
    load: Callable[[str], Kernel]
    rule: Rule | None = None
    cartridges: tuple[Cartridge, ...] = ()
    specs: tuple[str, ...] = ()
    logs: tuple[Path, ...] = ()
    folder: Path | None = None
    seed: int = 0
    wire: str = "tagged"
    n_ctx: int = 2048
    threads: int | None = None
    access: Access = field(default_factory=Access)
    limits: Limits = field(default_factory=Limits)
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: Metrics = field(default_factory=Metrics)
    toolsets: Toolsets = field(default_factory=Toolsets)
    schemas: Schemas = field(default_factory=Schemas)
    writers: Writers = field(default_factory=Writers)
    commands: dict[str, Commands] = field(init=False)

    def __post_init__(self) -> None:
        asked = [cartridge for cartridge in self.cartridges if cartridge.takes_requests]
        self.commands = {each.name: Commands(each, self.rule, self.seed) for each in asked}

    async def run(self, work: Callable[[Kernel], T]) -> T:
        """Run one function on the kernel's thread, at a place of its own; see `KernelQueue.place`."""
        with self.queue.place() as place:
            return await place.run(work)

    def submit(self, work: Callable[[Kernel], T]) -> Future[T]:
        """Do as `run` does, for a thread; the place is left when the future is done."""
        place = self.queue.place()
        future = place.submit(work)
        future.add_done_callback(lambda done: place.__exit__())
        return future
