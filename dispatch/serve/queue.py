"""The queue to the one kernel: places in the order of their coming, and decisions that wait share their passes.

A request has a place from its coming to its answer, and may ask for several things in turn: a decision, then a text
that is written. They keep the number of the place, so that what has been waiting goes on before what came later.
What stands first is done first. If it is a decision, the decisions that wait behind it and choose among the same
opcodes are made in the same passes; so nothing waits for more than what stands in front of it. A decision that its
request goes on from keeps the kernel until then: reading the prompt again would cost more than a shared pass saves.

Everything runs on one thread of the queue's own. It lives as long as the process: nothing can stop a pass of llama.cpp.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from dispatch.serve.errors import RequestError
from dispatch.serve.limits import Limits
from dispatch.serve.place import Job, Place
from kernel.api import Kernel
from kernel.choose.decision import Decision
from kernel.choose.question import Question
from kernel.choose.rule import RuleName
from kernel.errors import KernelError

FOLLOWING_SECONDS = 0.05
"""How long the kernel is kept for what follows a decision: a turn of the event loop, and some."""


class KernelQueue:
    """See the module.

    Attributes:
        passes, tokens: what was evaluated for decisions.
        decided: how many decisions were made, and `shared` how many of them in the passes of another one.
        refused: requests that found the queue full; `left` those whose client went away.
    """

    def __init__(self, load: Callable[[], Kernel], limits: Limits) -> None:
        """Take what loads the model, for the first thing that needs it."""
        self.limits = limits
        self.decided = self.shared = self.refused = self.left = self.passes = self.tokens = 0
        self._load = load
        self._kernel: Kernel | None = None
        self._jobs: list[Job] = []
        self._running: list[Job] = []
        self._kept_for: Place | None = None
        self._places: set[Place] = set()
        self._number = 0
        self._seconds = 0.1  # of one place, a moving average
        self._changed = threading.Condition()
        self._ended = False
        self._thread: threading.Thread | None = None

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, once it is loaded; use it on the thread of the queue only."""
        return self._kernel

    @property
    def waiting(self) -> int:
        """How many requests have a place."""
        return len(self._places)

    def load(self) -> None:
        """Load the model now, before anything needs it."""
        self._kernel = self._kernel or self._load()

    def place(self) -> Place:
        """Take a place; raises RequestError 429 when all are taken, 503 when the server ends."""
        with self._changed:
            if self._ended:
                raise RequestError("the server ends", status=503, code="ending")
            if len(self._places) >= self.limits.waiting:
                self.refused += 1
                seconds = max(1, math.ceil(self._seconds * len(self._places)))
                raise RequestError(
                    f"{len(self._places)} requests wait already; try again in {seconds} s",
                    status=429,
                    code="queue_full",
                    headers={"retry-after": str(seconds)},
                )
            self._number += 1
            place = Place(self._number, self._wait, self._leave)
            self._places.add(place)
            return place

    def end(self) -> None:
        """Answer nobody any more: all that waits is told so, and what runs is left at its next step."""
        with self._changed:
            self._ended = True
            jobs, self._jobs = [*self._running, *self._jobs], []
            for place in self._places:
                place.give_up()
            self._changed.notify_all()
        for job in jobs:
            job.done(error=RequestError("the server ends", status=503, code="ending"))

    def close(self, seconds: float) -> bool:
        """Free the model if the thread comes to its end in so many seconds; return whether it did."""
        self.end()
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                return False
        if self._kernel is not None:
            self._kernel.close()
        return True

    def _wait(self, job: Job) -> Future[Any]:
        with self._changed:
            if self._ended:
                raise RequestError("the server ends", status=503, code="ending")
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="kernel-queue", daemon=True)
                self._thread.start()
            self._jobs.append(job)
            self._changed.notify_all()
        return job.future

    def _leave(self, place: Place) -> None:
        with self._changed:
            if place not in self._places:
                return
            self._places.remove(place)
            unanswered = [job for job in self._jobs if job.place is place]
            self.left += bool(unanswered)
            self._jobs = [job for job in self._jobs if job.place is not place]
            self._changed.notify_all()

    def _next(self) -> list[Job]:
        """Return what is done next: one job, or decisions that may share their passes, the first one first."""
        with self._changed:
            kept = self._kept_for
            if kept is not None:
                self._changed.wait_for(lambda: self._ended or self._goes_on(kept), FOLLOWING_SECONDS)
            self._changed.wait_for(lambda: self._ended or bool(self._jobs))
            if self._ended:
                return []
            jobs = sorted(self._jobs, key=lambda job: (job.place is not kept, job.place.number))
            first = jobs[0]
            taken = [first] if not first.shares else [job for job in jobs if job.shares]
            self._kept_for = first.place if first.followed else None
            self._jobs = [job for job in self._jobs if job not in taken]
            self._running = taken
            return taken

    def _goes_on(self, place: Place) -> bool:
        """Return whether a place waits for something, or for nothing any more."""
        return place not in self._places or any(job.place is place for job in self._jobs)

    def _back(self, jobs: Sequence[Job]) -> None:
        """Let jobs wait on that were looked at; those whose place is empty by now have nobody to tell."""
        with self._changed:
            self._jobs += [job for job in jobs if job.place in self._places]

    def _work(self) -> None:
        while jobs := self._next():
            started = time.perf_counter()
            first = jobs[0]
            try:
                self.load()
                kernel = self._kernel
                assert kernel is not None
                if first.work is not None:
                    first.place.check()
                    first.done(first.work(kernel))
                else:
                    self._decide(kernel, jobs)
            except Exception as error:  # of this job alone; the next one finds a kernel that is whole
                first.done(error=error)
            self._seconds += 0.1 * (time.perf_counter() - started - self._seconds)

    def _decide(self, kernel: Kernel, jobs: Sequence[Job]) -> None:
        """Make the first decision, and in the same passes those that choose among the same opcodes."""
        first, *others = jobs
        together, later = [first], list(others)
        try:
            question = first.question = first.question or first.asked(kernel)
            for job in others:
                if len(together) == self.limits.shared:
                    break
                try:
                    job.question = job.question or job.asked(kernel)
                except Exception as error:
                    later.remove(job)
                    job.done(error=error)
                    continue
                if _alike(question, job.question):
                    later.remove(job)
                    together.append(job)
        finally:
            self._back(later)
        try:
            decisions = kernel.decide_many([job.question for job in together if job.question is not None])
        except KernelError:
            if len(together) == 1:
                raise
            for job in together:  # one of them is at fault: each has its own answer
                self._alone(kernel, job)
            return
        self.shared += len(together) - 1
        for job, decision in zip(together, decisions, strict=True):
            self._count(decision)
            job.done(decision)

    def _alone(self, kernel: Kernel, job: Job) -> None:
        assert job.question is not None
        try:
            decision = kernel.decide(job.question)
        except KernelError as error:
            job.done(error=error)
        else:
            self._count(decision)
            job.done(decision)

    def _count(self, decision: Decision) -> None:
        self.decided += 1
        self.passes += decision.passes
        self.tokens += decision.tokens_evaluated


def _alike(one: Question, other: Question) -> bool:
    """Return whether two questions choose among the same legal opcodes, by a rule whose decisions share passes."""
    if {one.by.name, other.by.name} & {RuleName.GREEDY, RuleName.LEARNED}:
        return False
    return one.opcodes is other.opcodes and one.legal.key == other.legal.key
