"""Checks a log in slices, as `replay` does, while others look at it; keeps engines on the way, for boards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

from dispatch.inspector.boards import Engines, Snapshots
from dispatch.inspector.index import LogIndex
from dispatch.inspector.jsonable import Json
from dispatch.inspector.lines import Glance, of_record
from dispatch.loading.error_line import why
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord
from dispatch.log.replay import MakeCartridge, Replay
from dispatch.log.report import Verdict

State = Literal["checking", "verified", "unfinished", "damaged", "different"]
TOGETHER = 64
"""So many decisions are put right in the columns at once."""


class Check:
    """How far a log holds. One thread steps, others read.

    Args:
        index: of the log; its columns are put right with what the checked lines say.
        make: builds the cartridges; where it fails the engines are not run, and only checksums and fields are checked.

    Attributes:
        state: "unfinished" while a session goes on, or where it has no outcome.
        decisions: how many hold so far.
        why: why no engines are run; "" where they are.
        snapshots: engines on the way.
    """

    def __init__(self, index: LogIndex, make: MakeCartridge) -> None:
        self.state: State = "checking"
        self.decisions = 0
        self.why = ""
        self.snapshots = Snapshots(index, make)
        self._index = index
        self._reader = LogReader(index.source.plain, follow=True)
        self._reader.path = index.source.path
        self._replay: Replay | None = None
        self._records: Iterator[DecisionRecord] | None = None
        self._seen: list[Glance] = []
        try:
            self._replay = Replay(self._reader, make)
            self.snapshots.take(0, self._replay.engines, self._replay.cartridges)
        except Exception as error:  # of an author's cartridge, or of one that is not there
            self._without_engines(error)

    def step(self, seconds: float) -> bool:
        """Go on for so many seconds; return whether there is more to check now."""
        until = time.monotonic() + seconds
        try:
            return self._steps(until)
        finally:
            self._put_right()

    def engines(self, n: int) -> Engines | None:
        """Return the engines in the state after decision `n`, to look at; None where they did not come so far."""
        return None if self.why or n > self.decisions else self.snapshots.at(n)

    def told(self) -> Json:
        """Return what the page is told of it."""
        state, sentence = self.state, self._sentence()
        source = self._index.source
        if state == "unfinished" and (source.fault or self._index.at < source.available()):
            state = "damaged"  # as `replay` says it; a session that goes on finishes its line
            what = source.fault or f"decision {self.decisions + 1}: cut: the file ends inside its line"
            sentence = f"damaged: {_whole(self.decisions)}, then {what}"
        return {"state": state, "decisions": self.decisions, "sentence": sentence, "engines": not self.why}

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def _without_engines(self, error: Exception) -> None:
        self.why = why(error)
        self._replay, self._records = None, None

    def _steps(self, until: float) -> bool:
        while self.state in ("checking", "unfinished"):
            if self._records is None:
                self._records = self._iterate()
            try:
                record = next(self._records, None)
            except Exception as error:  # a cartridge that joins and cannot be made
                self._without_engines(error)
                continue
            if record is None:
                self._records = None
                self._settle()
                return False
            self.decisions = record.n
            self._seen.append(of_record(record))
            if len(self._seen) >= TOGETHER:
                self._put_right()
            if time.monotonic() > until:
                return True
        return False

    def _iterate(self) -> Iterator[DecisionRecord]:
        replay = self._replay
        if replay is None:
            yield from self._reader
            return
        for step in replay:
            if self.snapshots.due(step.record.n):
                self.snapshots.take(step.record.n, replay.engines, replay.cartridges)
            yield step.record

    def _settle(self) -> None:
        """Say how the log stands at the end of what it holds now."""
        replay, reader = self._replay, self._reader
        if replay is not None and replay.difference is not None:
            self.state = "different"
        elif reader.damage is not None:
            self.state = "damaged"
        else:
            self.state = "unfinished" if reader.outcome is None else "verified"

    def _put_right(self) -> None:
        seen, self._seen = self._seen, []
        self._index.columns.correct(seen)

    def _sentence(self) -> str:
        replay, reader = self._replay, self._reader
        whole = _whole(self.decisions)
        if self.state == "checking":
            return f"being checked: {whole} so far"
        if replay is not None:
            report = replay.report()
            return report.sentence if report.verdict is not Verdict.STOPPED else whole
        not_run = f"; the engines were not run: {self.why}"
        if reader.damage is not None:
            return f"damaged: {whole}, then {reader.damage}{not_run}"
        end = f"to the end: {reader.outcome.ending}" if reader.outcome else "and no outcome follows"
        key = f"; {reader.about_key}" if reader.about_key else ""
        return f"checksums and fields: {whole} {end}{key}{not_run}"


def _whole(count: int) -> str:
    return f"{count} whole decision{' verifies' if count == 1 else 's verify'}"
