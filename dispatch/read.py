"""Reads a session log and finds where it is damaged. Knows no engine; constant memory, however long the log.

What stands before the damage is good and is given out; reading stops there, since the chain of checksums says nothing
about what follows a hole.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain as joined
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from dispatch.files import Unpacked, open_log
from dispatch.lines import START, decode, link, unseal
from dispatch.records import SCHEMA, DecisionRecord, Delta, Header, Outcome
from kernel.errors import LogError

MAX_LINE = 1 << 26
"""Longer lines (64 MiB) are not read: a file without newlines must not fill the memory."""


class Fault(enum.StrEnum):
    """A way in which a log is damaged."""

    CUT = "cut"
    """The file ends in the middle of a line."""
    CHANGED = "changed"
    """A line is not what was written."""
    MISSING = "missing"
    """Lines are gone."""
    REPEATED = "repeated"
    """A line stands there again."""
    MOVED = "moved"
    """Lines stand in another order."""
    NULS = "nuls"
    """A block of NUL bytes, as a power cut leaves it."""
    TRAILING = "trailing"
    """Something follows the outcome."""
    INVALID = "invalid"
    """The line is as it was written, but it is no record of this schema."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a log stops being good: the line of the file, the decision that belongs there, and what is wrong.

    >>> print(Damage(line=59, step=58, fault=Fault.CUT, detail="the file ends inside the line"))
    line 59 (decision 58): cut: the file ends inside the line
    """

    line: int
    step: int
    fault: Fault
    detail: str

    def __str__(self) -> str:
        return f"line {self.line} (decision {self.step}): {self.fault}: {self.detail}"


class LogReader:
    """Iterates over the decisions of a log up to its end or its first damage. Use it as a context manager.

    Raises LogError when there is nothing to read: no such file, no header, a header that was changed, a newer schema.

    Attributes:
        header: line 1.
        n: whole decisions read so far.
        outcome: the last line, once it was reached; None for a session that was killed.
        damage: the first damage, once it was reached.
        notes: what is odd and harmless (a changed line ending, an unknown event).
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.n = 0
        self.outcome: Outcome | None = None
        self.damage: Damage | None = None
        self.notes: list[str] = []
        self._line = 0
        self._chain = START
        self._last = b""
        if self.path.is_dir():
            raise LogError(f"log: {str(path)!r} is a directory")
        self._file = open_log(self.path)
        try:
            self.header = self._header()
        except BaseException:
            self._file.close()
            raise

    def __iter__(self) -> Iterator[DecisionRecord]:
        while self.damage is None and (line := self._next()) is not None:
            body = self._body(line)
            if body is None:
                return
            record = self._record(body)
            if record is not None:
                yield record

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _header(self) -> Header:
        where = f"log: {str(self.path)!r}"
        line = self._next()
        if line is None:
            raise LogError(f"{where}: {self.damage}" if self.damage else f"{where} is empty")
        if line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
            self._note("a byte order mark was put in front")
        parts = unseal(line.rstrip(b"\r\n"))
        if parts is None:
            told = "is cut" if line.startswith(b'{"event":"header"') else "is no header of a session log"
            raise LogError(f"{where}: line 1 {told}")
        try:
            data = decode(parts[0])
        except ValueError as error:
            raise LogError(f"{where}: line 1, the header, was changed: {error}") from error
        if data.get("event") != "header":
            raise LogError(f"{where}: line 1 is {data.get('event')!r}, not the header")
        version = data.get("schema")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise LogError(f"{where}: line 1: schema {version!r} is no version of the log's form")
        if version > SCHEMA:
            raise LogError(
                f"{where}: line 1: schema {version} is newer than {SCHEMA}, the newest that this version reads"
            )
        if link(START, parts[0]) != parts[1]:
            raise LogError(f"{where}: line 1, the header, was changed: its checksum does not fit")
        self._chain = parts[1]
        try:
            return Header.model_validate(data)
        except ValidationError as error:
            raise LogError(f"{where}: line 1, the header: {_first(error)}") from error

    def _next(self) -> bytes | None:
        """Return the next line that is not blank, with its newline, or None at the end."""
        while line := self._file.readline(MAX_LINE):
            self._line += 1
            if line.strip(b"\r\n"):
                return line
            self._note(f"line {self._line} is blank")
        raw = getattr(self._file, "raw", None)
        if isinstance(raw, Unpacked) and raw.fault:
            if self.outcome is not None:
                self._note(raw.fault)
            else:
                self._line += 1
                self._damaged(Fault.CHANGED, raw.fault)
        return None

    def _body(self, line: bytes) -> bytes | None:
        """Return the line without its checksum; None, and the damage noted, when it does not fit."""
        bare = line.rstrip(b"\r\n")
        if self.outcome is not None:
            self._damaged(Fault.TRAILING, f"{len(bare)} bytes follow the outcome")
            return None
        parts = unseal(bare)
        if parts is None or link(self._chain, parts[0]) != parts[1]:
            self._diagnose(line, parts)
            return None
        if line.endswith(b"\r\n"):
            self._note("line endings were changed")
        self._chain = parts[1]
        self._last = bare
        return parts[0]

    def _record(self, body: bytes) -> DecisionRecord | None:
        """Return a decision; keep the outcome; note what is neither."""
        try:
            data = decode(body)
            event = data.get("event")
            if event == "decision":
                record = DecisionRecord.model_validate(data)
                if record.n != self.n + 1:
                    raise ValueError(f"n is {record.n}")
                self.n += 1
                return record
            if event == "outcome":
                outcome = Outcome.model_validate(data)
                if outcome.decisions != self.n:
                    raise ValueError(f"the outcome counts {outcome.decisions} decisions")
                self.outcome = outcome
            elif event == "header":
                raise ValueError("a second header")
            else:
                self._note(f"line {self._line} is {event!r}, which this version does not know")
        except ValueError as error:
            self._damaged(Fault.INVALID, _first(error) if isinstance(error, ValidationError) else str(error))
        return None

    def _diagnose(self, line: bytes, parts: tuple[bytes, str] | None) -> None:
        """Say what is wrong with a line whose checksum does not fit."""
        if nuls := line.count(0):
            return self._damaged(Fault.NULS, f"{nuls} NUL bytes")
        if not line.endswith(b"\n") and (parts is None or _slot(parts[0]) is None):
            long = len(line) >= MAX_LINE
            return self._damaged(Fault.CUT, f"no end within {MAX_LINE} bytes" if long else "the file ends inside it")
        if parts is None:
            return self._damaged(Fault.CHANGED, "it is no line of a log")
        slot, due = _slot(parts[0]), self.n + 1
        if line.rstrip(b"\r\n") == self._last:
            return self._damaged(Fault.REPEATED, "the line before stands there again")
        if slot is None:
            return self._damaged(Fault.CHANGED, "it cannot be read any more")
        if slot < due:
            return self._damaged(Fault.REPEATED, f"decision {slot} stands there again")
        if slot == due:
            return self._damaged(Fault.CHANGED, "its checksum does not fit")
        at, chain = self._line, self._chain
        for other in self._rest():
            moved = unseal(other.rstrip(b"\r\n"))
            if moved and link(chain, moved[0]) == moved[1]:
                self._damaged(Fault.MOVED, f"decision {slot} stands there; {due} is on line {self._line}", at)
                return None
        gone = f"decision {due} is" if slot == due + 1 else f"decisions {due} to {slot - 1} are"
        return self._damaged(Fault.MISSING, f"{gone} gone", at)

    def _rest(self) -> Iterator[bytes]:
        while (line := self._next()) is not None:
            yield line

    def _damaged(self, fault: Fault, detail: str, line: int | None = None) -> None:
        if self.damage is None:
            self.damage = Damage(line or self._line, self.n + 1, fault, detail)

    def _note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < 20:
            self.notes.append(text)


class Prompts:
    """Puts the prompt ids of consecutive decisions together again."""

    def __init__(self) -> None:
        self._ids: list[int] = []

    def take(self, record: DecisionRecord) -> tuple[list[int], list[list[int]]]:
        """Return all prompt ids of the next decision, and those of its null prompts; empty when none were logged.

        Raises LogError when a difference keeps more than there is.
        """
        if record.prompt is None:
            return [], []
        self._ids = _undelta(record.n, record.prompt, self._ids)
        return self._ids, [_undelta(record.n, null, self._ids) for null in record.nulls or ()]


def _undelta(n: int, delta: Delta, base: list[int]) -> list[int]:
    if delta.keep > len(base):
        raise LogError(f"decision {n}: keeps {delta.keep} ids of {len(base)}")
    return list(joined(base[: delta.keep], delta.new))


def _slot(body: bytes) -> int | None:
    """Return the number of the decision in whose place the line belongs; the outcome comes after the last."""
    try:
        data: dict[str, Any] = decode(body)
    except ValueError:
        return None
    n = data["decisions"] + 1 if isinstance(data.get("decisions"), int) else data.get("n", 0)
    return n if isinstance(n, int) else None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['input']!r}: {first['msg']}"[:200]
