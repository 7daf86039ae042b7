"""A cursor over a replayed log: it moves forward, back and to any decision.

The last steps are kept. To go further back the cursor plays the log again from its start, so memory use does not grow
with the length of the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from dispatch.log.key import Key
from dispatch.log.reader import LogReader
from dispatch.log.replay import MakeCartridge, Replay, Step
from dispatch.log.report import ReplayReport

WINDOW = 256
"""How many steps are kept for going back at once."""


class Cursor:
    """A place in a log. Use it as a context manager.

    Attributes:
        step: the decision where it stands, with the engine in the state after it; None before the first.
    """

    def __init__(
        self, path: str | Path, make_cartridge: MakeCartridge, *, window: int = WINDOW, key: Key | None = None
    ) -> None:
        self._path = path
        self._key = key
        self._make = make_cartridge
        self._kept: deque[Step] = deque(maxlen=window)
        self.step: Step | None = None
        self._open()

    @property
    def n(self) -> int:
        """Number of the decision where it stands; 0 before the first."""
        return self.step.record.n if self.step else 0

    def go(self, n: int) -> Step | None:
        """Go to decision `n`, or to the nearest one there is, and return where it stands now."""
        if n < 1:
            self.step = None
            return None
        if n <= self._replay.n and (not self._kept or n < self._kept[0].record.n):
            self._reader.close()
            self._kept.clear()
            self._open()
        while self._replay.n < n and (step := next(self._steps, None)) is not None:
            self._kept.append(Step(step.record, step.engine.copy(), step.cartridge))
        if self._kept:
            self.step = self._kept[max(-len(self._kept), min(n, self._replay.n) - self._replay.n - 1)]
        return self.step

    def report(self) -> ReplayReport:
        """Return the verdict over what has been played so far."""
        return self._replay.report()

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> None:
        self._reader = LogReader(self._path, self._key)
        self._replay = Replay(self._reader, self._make)
        self._steps: Iterator[Step] = iter(self._replay)
