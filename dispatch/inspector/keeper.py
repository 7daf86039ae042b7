"""Keeps a log that is looked at: reads on as it grows, checks it in the background, begins anew when it is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from dispatch.inspector.check import Check
from dispatch.inspector.index import LogIndex
from dispatch.log.replay import MakeCartridge
from kernel.errors import LogError

SLICE_SECONDS = 0.01
"""So long the background works before it looks whether somebody waits for an answer."""
IDLE_SECONDS = 0.2
"""Between two looks at a file that does not grow."""
BREATH_SECONDS = 0.001
MOST_BREATHS = 100
NEAR, NEAR_SECONDS = 500, 0.05
"""An answer waits so long for engines that are so many decisions behind."""


class Foreground:
    """Counts the answers that are being made, so that work in the background makes room for them.

    Threads of Python take turns of five milliseconds; an answer that needs many turns would wait for each.
    """

    def __init__(self) -> None:
        self._busy = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        with self._lock:
            self._busy += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._lock:
            self._busy -= 1

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Count an answer out that waits for the background itself."""
        self.__exit__(None, None, None)
        try:
            yield
        finally:
            self.__enter__()

    def breathe(self) -> None:
        """Let others in: for a moment, and as long as an answer is being made, up to a tenth of a second."""
        for _ in range(MOST_BREATHS):
            time.sleep(BREATH_SECONDS)
            if self._busy <= 0:
                return


@dataclass(frozen=True)
class Kept:
    """What is known of a log; all of it is void once the file was replaced.

    Attributes:
        size: of the file when it was opened.
    """

    generation: int
    index: LogIndex
    check: Check
    size: int


class Keeper:
    """A log and the thread that reads and checks it; raises LogError when the file is none.

    Attributes:
        kept: what is known now. It is replaced as a whole: take it once for each answer.
        error: why the thread has ended, if it has.
    """

    def __init__(self, path: Path, make: MakeCartridge, foreground: Foreground | None = None) -> None:
        self.path = path
        self.error: str | None = None
        self._make = make
        self._foreground = foreground or Foreground()
        self._woken = threading.Event()
        self._read = threading.Event()
        self._closed = False
        self.kept = self._open(1)
        self._thread = threading.Thread(target=self._keep, name=f"log {path.name}", daemon=True)

    def start(self) -> None:
        """Begin to read and check in the background."""
        self._thread.start()

    def finish(self, until: int = 0) -> Kept:
        """Read everything now, without the thread, and check it up to a decision (0: all)."""
        kept = self.kept
        kept.index.read()
        while (not until or kept.check.decisions < until) and kept.check.step(0.0 if until else 1.0):
            pass
        return kept

    def poke(self) -> None:
        """Look at the file at once: it may have grown."""
        self._woken.set()

    def wait(self, seconds: float) -> None:
        """Return when the file is read to its end for the first time, or after so many seconds."""
        self._read.wait(seconds)

    def catch_up(self, n: int) -> None:
        """Wait a moment for the check to come to decision `n`, where it is near."""
        check = self.kept.check
        if self._thread.is_alive() and n - check.decisions <= NEAR:
            until = time.monotonic() + NEAR_SECONDS
            with self._foreground.aside():
                while check.decisions < n and check.state == "checking" and time.monotonic() < until:
                    time.sleep(BREATH_SECONDS)

    def close(self) -> None:
        """End the thread and close the file."""
        self._closed = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()
        self._drop(self.kept)

    def _open(self, generation: int) -> Kept:
        index = LogIndex(self.path)
        try:
            return Kept(generation, index, Check(index, self._make), index.source.size)
        except BaseException:
            index.close()
            raise

    @staticmethod
    def _drop(kept: Kept) -> None:
        kept.check.close()
        kept.index.close()

    def _keep(self) -> None:
        try:
            while not self._closed:
                self._renew()
                index, check = self.kept.index, self.kept.check
                whole = index.read(SLICE_SECONDS)
                if whole:
                    self._read.set()
                if whole and not check.step(SLICE_SECONDS):
                    self._woken.wait(IDLE_SECONDS)
                    self._woken.clear()
                else:
                    self._foreground.breathe()
        except (LogError, OSError) as error:
            self.error = str(error)
        finally:
            self._read.set()

    def _renew(self) -> None:
        """Begin anew where another file stands there now, or something follows what was the end."""
        kept = self.kept
        index = kept.index
        ended = index.stopped is not None or index.outcome is not None
        if not index.source.replaced():
            try:
                if not (ended and index.source.size != kept.size and index.source.available() > index.at):
                    return
            except OSError:  # gone
                return
        try:
            made = self._open(kept.generation + 1)
        except LogError:  # it is being written
            return
        self.kept = made
        self._drop(kept)
