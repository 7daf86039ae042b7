"""An index over the lines of a log: where each decision stands, and the numbers of the strip.

It is built in slices by whoever has the time, and used while it grows. Lines are taken as they come, without checksums:
a line that is no decision of the next number ends the index, and `watch.py` says what is wrong there.
"""

from __future__ import annotations

import importlib.util
import time
from bisect import bisect_right
from pathlib import Path

from dispatch.inspector.columns import Columns
from dispatch.inspector.lines import EVENT, Glance, glance
from dispatch.inspector.source import LogSource
from dispatch.log.damage import MAX_LINE
from dispatch.log.encoding import decode, unseal, unstamp
from dispatch.log.reader import KINDS, LogReader
from dispatch.log.records import DecisionRecord, Header, Joined, Left, Outcome
from kernel.errors import LogError

CHUNK = 1 << 20
"""Bytes that are read at once."""
CHANGES = 10_000
"""So many cartridges that join and leave are remembered; of a log with more no boards are shown."""


class LogIndex:
    """Where the decisions of one log stand.

    Raises LogError when the file has no header of a log.

    Attributes:
        header: line 1.
        columns: numbers of the decisions read so far.
        outcome: the last line, once it was reached.
        complete: whether all whole lines that the file held at the last look are read.
        stopped: why no more is read, if a line is none that can stand there.
        changes: cartridges that joined or left, oldest first.
        crowded: whether there were more of them than are remembered.
    """

    def __init__(self, path: Path) -> None:
        with LogReader(path) as reader:
            self.header: Header = reader.header
        self.source = LogSource(path)
        while self.source.compressed and b"\n" not in self.source.read(0, self.source.available()):
            if not self.source.grow():  # the header at least, so that the copy can be opened as a log
                break
        self.columns = _columns()
        self.outcome: Outcome | None = None
        self.complete = False
        self.stopped: str | None = None
        self.changes: list[Joined | Left] = []
        self.crowded = False
        self.at = 0
        """Bytes read so far, decompressed."""
        self._begun = False

    @property
    def size(self) -> int:
        """Bytes of the log, decompressed as far as that is known."""
        return self.source.available()

    def read(self, seconds: float | None = None) -> bool:
        """Read on for so many seconds, or to the end; return whether the end was reached."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.stopped is None:
            if not self._part():
                self.complete = True
                return True
            if until is not None and time.monotonic() > until:
                self.complete = False
                return False
        self.complete = True
        return True

    def _part(self) -> bool:
        """Take the whole lines of the next part of the file; return whether there may be more."""
        data = self.source.read(self.at, CHUNK)
        end = data.rfind(b"\n") + 1
        while not end and len(data) < MAX_LINE:  # a long line, or what the file holds is no whole line
            more = self.source.read(self.at + len(data), CHUNK)
            if not more:
                if self.source.grow():
                    continue
                return False
            data, begun = data + more, len(data)
            end = data.rfind(b"\n", begun) + 1
        if not end:
            self.stopped = f"no line ends within {MAX_LINE} bytes"
            return False
        self._take(data, end)
        return True

    def _take(self, data: bytes, end: int) -> None:
        glances: list[Glance] = []
        places: list[tuple[int, int]] = []
        start, due = 0, self.columns.count + 1
        while start < end and self.stopped is None:
            stop = data.index(b"\n", start) + 1
            line = data[start:stop]
            found = glance(line)
            if found is not None and found.n == due:
                glances.append(found)
                places.append((self.at + start, stop - start))
                due += 1
            elif found is not None:
                self.stopped = f"decision {found.n} stands where {due} belongs"
            else:
                self._other(line, due - 1)
            start = stop
        self.columns.extend(glances, places)
        self.at += start

    def _other(self, line: bytes, above: int) -> None:
        """Take a line that is no decision."""
        event = EVENT.match(line)
        first, self._begun = not self._begun, True
        if not line.strip(b"\r\n") or first:
            return
        if self.outcome is not None or event is None or event[1] == b"decision":
            self.stopped = "a line is none of a log, or no line can stand there"
            return
        kind = KINDS.get(event[1].decode())
        if kind not in (Joined, Left, Outcome):
            return
        try:
            record = kind.model_validate(fields(line)) if kind is not None else None
        except ValueError:
            self.stopped = f"the line {event[1].decode()!r} behind decision {above} cannot be read"
            return
        if isinstance(record, Outcome):
            self.outcome = record
        elif isinstance(record, Joined | Left):
            self.crowded = self.crowded or len(self.changes) == CHANGES
            self.changes += [] if self.crowded else [record]

    def line(self, n: int) -> bytes:
        """Return the line of a decision; raises LogError where there is none."""
        if not 1 <= n <= self.columns.count:
            raise LogError(f"there is no decision {n}; {self.columns.count} are known")
        columns = self.columns
        return self.source.read(int(columns["offset"][n - 1]), int(columns["length"][n - 1]))

    def record(self, n: int) -> DecisionRecord:
        """Return a decision; raises LogError where there is none, or its line holds no decision of the format."""
        try:
            return DecisionRecord.model_validate(fields(self.line(n)))
        except ValueError as error:
            raise LogError(f"decision {n} cannot be read: {str(error)[:300]}") from error

    def changes_between(self, low: int, high: int) -> list[Joined | Left]:
        """Return who joined and left behind decision `low` and before decision `high`."""
        first = bisect_right(self.changes, low - 1, key=lambda change: change.n)
        return self.changes[first : bisect_right(self.changes, high - 1, key=lambda change: change.n)]

    def close(self) -> None:
        """Close the file."""
        self.source.close()


def _columns() -> Columns:
    """Return columns that numpy looks through, where there is one; a browser's tab has none."""
    if importlib.util.find_spec("numpy") is None:
        return Columns()
    from dispatch.inspector.quick import QuickColumns

    return QuickColumns()


def fields(line: bytes) -> dict[str, object]:
    """Return the fields of a line without its checksum and mac; raises ValueError where it is none."""
    parts = unseal(line.rstrip(b"\r\n"))
    if parts is None:
        raise ValueError("it has no checksum")
    return decode(unstamp(parts[0])[0])
