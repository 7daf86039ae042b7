"""Reads a session log line by line, in constant memory, up to its end or its first damage.

Decisions before the damage are good and are handed out. Reading stops there, because the chained checksums say nothing
about the lines after a gap.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

from pydantic import ValidationError

from dispatch.log.checks import Checks, check_header
from dispatch.log.compression import DecompressedStream, open_log
from dispatch.log.damage import MAX_LINE, Damage, Fault, diagnose
from dispatch.log.encoding import START, decode, link, shortly, unseal, unstamp
from dispatch.log.key import Key
from dispatch.log.records import FORMAT, Corrected, DecisionRecord, Header, Joined, Left, Outcome, Resumed
from kernel.errors import LogError

Line = DecisionRecord | Resumed | Joined | Left | Corrected | Outcome
"""A line after the header."""
KINDS: dict[str, type[Line]] = {kind.model_fields["event"].default: kind for kind in get_args(Line)}
"""By the event that the line names."""
CHANGES = 10_000
"""So many cartridges may join or leave, and corrections be made, between two decisions."""


class End(NamedTuple):
    """Where a line of a log ends."""

    length: int
    """Bytes up to there, decompressed."""
    chain: str
    """The line's chain value."""
    newline: bool
    """Whether the line has its newline; the last one of a cut file may lack it and be whole."""
    mac: str = START
    """Its code in a keyed log."""


class LogReader:
    """Iterates over the decisions of a log up to its end or its first damage. Use it as a context manager.

    Args:
        path: of the log, compressed or not.
        key: of a keyed log; without it only the checksums are looked at.
        follow: a plain file that still grows: a last line without its newline is left for the next iteration.

    Raises LogError when there is nothing to read: no such file, no header, a header that was changed, a newer schema.

    Attributes:
        header: line 1.
        n: whole decisions read so far.
        line: number of the line read last.
        outcome: the last line, once it was reached; None for a session that was killed.
        damage: the first damage, once it was reached.
        notes: what is odd and harmless (a changed line ending, an unknown event).
        changes: cartridges that joined or left between the decision handed out last and the one before, and
            corrections, oldest first.
        end: where the last good line ends that is no outcome.
    """

    def __init__(self, path: str | Path, key: Key | None = None, *, follow: bool = False) -> None:
        self.path = Path(path)
        self._follow = follow
        self.n = 0
        self.line = 0
        self.outcome: Outcome | None = None
        self.damage: Damage | None = None
        self.notes: list[str] = []
        self.changes: list[Joined | Left | Corrected] = []
        self.end = self._end = End(0, START, newline=True)
        self._key = key
        self._blank = 0
        self._last = b""
        if self.path.is_dir():
            raise LogError(f"log: {str(path)!r} is a directory")
        self._file = open_log(self.path)
        try:
            self.header = self._header()
        except BaseException:
            self._file.close()
            raise
        self._checks = Checks(self.header)

    def __iter__(self) -> Iterator[DecisionRecord]:
        while self.damage is None and (line := self._next()) is not None:
            body = self._body(line)
            if body is None:
                return
            record = self._record(body)
            if record is not None:
                yield record
                self.changes.clear()

    @property
    def compressed(self) -> bool:
        """Whether the file is compressed."""
        return isinstance(getattr(self._file, "raw", None), DecompressedStream)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _header(self) -> Header:
        where = f"log: {str(self.path)!r}"
        line = self._next()
        if line is None:
            raise LogError(f"{where}: {self.damage}" if self.damage else f"{where} is empty")
        length = len(line)
        if line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
            self._note("a byte order mark was put in front")
        parts = unseal(line.rstrip(b"\r\n"))
        if parts is None:
            told = "is cut" if line.startswith(b'{"event":"header"') else "is no header of a session log"
            raise LogError(f"{where}: line 1 {told}")
        body, mac = unstamp(parts[0])
        try:
            data = decode(body)
        except ValueError as error:
            raise LogError(f"{where}: line 1, the header, was changed: {error}") from error
        if data.get("event") != "header":
            raise LogError(f"{where}: line 1 is {shortly(data.get('event'))}, not the header")
        version = data.get("schema")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise LogError(f"{where}: line 1: schema {shortly(version)} is no version of the log's form")
        if version > FORMAT:
            raise LogError(
                f"{where}: line 1: schema {shortly(version)} is newer than {FORMAT}, the newest that this version reads"
            )
        if link(START, parts[0]) != parts[1]:
            raise LogError(f"{where}: line 1, the header, was changed: its checksum does not fit")
        try:
            header = Header.model_validate(data)
            check_header(header)
        except ValueError as error:
            raise LogError(f"{where}: line 1, the header: {_told(error)}") from error
        if damage := self._sealed(header, body, mac):
            raise LogError(f"{where}: line 1, the header: {damage.fault}: {damage.detail}")
        self.end = self._end = End(self._blank + length, parts[1], line.endswith(b"\n"), mac or START)
        self._blank = 0
        return header

    def _sealed(self, header: Header, body: bytes, mac: str | None) -> Damage | None:
        """Hold a line against the key; the first one says whether that can be done."""
        if (mac is None) != (header.keyed is None):
            told = "mac: missing in a keyed log" if mac is None else "mac: in a log that is not keyed"
            return Damage(self.line, self.n + 1, Fault.INVALID, told)
        key = self._key
        if mac is None or key is None or header.keyed != key.id or key.fits(mac, self._end.mac, body):
            return None
        return Damage(self.line, self.n + 1, Fault.FORGED, f"mac: {mac!r} is not that of the key {key.id}")

    @property
    def by_key(self) -> bool:
        """Whether every line is held against the key."""
        return self._key is not None and self.header.keyed == self._key.id

    @property
    def key_given(self) -> bool:
        """Whether there is a key, if only of another log."""
        return self._key is not None

    @property
    def about_key(self) -> str:
        """What is known by the key, in words; "" for a log without a key where none was given."""
        given = "" if self._key is None else self._key.id
        if self.by_key:
            return f"sealed with the key {given}"
        if self.header.keyed is None:
            return given and "not keyed: the key proves nothing"
        return f"keyed with another key, {shortly(self.header.keyed)}; not checked" if given else "keyed; not checked"

    def _next(self) -> bytes | None:
        """Return the next line that is not blank, with its newline, or None at the end."""
        while line := self._file.readline(MAX_LINE):
            if self._follow and not line.endswith(b"\n") and len(line) < MAX_LINE:
                self._file.seek(-len(line), os.SEEK_CUR)
                return None
            self.line += 1
            if line.strip(b"\r\n"):
                return line
            self._blank += len(line)
            self._note(f"line {self.line} is blank")
        raw = getattr(self._file, "raw", None)
        if isinstance(raw, DecompressedStream) and raw.fault:
            if self.outcome is not None:
                self._note(raw.fault)
            else:
                self.line += 1
                self._damaged(Fault.CHANGED, raw.fault)
        return None

    def _body(self, line: bytes) -> bytes | None:
        """Return the line without its checksum; None, and the damage noted, when it does not fit."""
        bare = line.rstrip(b"\r\n")
        if self.outcome is not None:
            self._damaged(Fault.TRAILING, f"{len(bare)} bytes follow the outcome")
            return None
        parts = unseal(bare)
        if parts is None or link(self._end.chain, parts[0]) != parts[1]:
            at = self.line
            fault, detail = diagnose(line, self._last, self.n + 1, self._end.chain, self._rest())
            self.damage = Damage(at, self.n + 1, fault, detail)
            return None
        if line.endswith(b"\r\n"):
            self._note("line endings were changed")
        body, mac = unstamp(parts[0])
        if damage := self._sealed(self.header, body, mac):
            self.damage = damage
            return None
        self._end = End(self._end.length + self._blank + len(line), parts[1], line.endswith(b"\n"), mac or START)
        self._blank = 0
        self._last = bare
        return body

    def _record(self, body: bytes) -> DecisionRecord | None:
        """Return a decision; keep the outcome, and the cartridges that join or leave."""
        try:
            record = self._validated(decode(body))
        except ValueError as error:
            self._damaged(Fault.INVALID, _told(error))
            return None
        if isinstance(record, Outcome):
            self.outcome = record
            return None
        self.end = self._end
        if isinstance(record, Joined | Left | Corrected):
            self.changes.append(record)
        if not isinstance(record, DecisionRecord):
            return None
        self.n += 1
        return record

    def _validated(self, data: dict[str, Any]) -> Line | None:
        """Return the record of a line, or None for an event that this version does not know.

        Raises ValueError for a record that is not in the format, or that does not count what stands above it.
        """
        event = data.get("event")
        if event == "header":
            raise ValueError("a second header")
        kind = KINDS.get(event) if isinstance(event, str) else None
        if kind is None:
            self._note(f"line {self.line} is {shortly(event)}, which this version does not know")
            return None
        record = kind.model_validate(data)
        if isinstance(record, Outcome):
            if record.decisions != self.n:
                raise ValueError(f"decisions: the outcome counts {record.decisions} decisions, above it are {self.n}")
        elif record.n != self.n + isinstance(record, DecisionRecord):
            raise ValueError(f"n is {record.n}")
        if isinstance(record, Joined | Left | Corrected) and len(self.changes) == CHANGES:
            raise ValueError(f"event: more than {CHANGES} joins, leaves and corrections between two decisions")
        self._checks.take(record)
        return record

    def _rest(self) -> Iterator[tuple[int, bytes]]:
        while (line := self._next()) is not None:
            yield self.line, line

    def _damaged(self, fault: Fault, detail: str) -> None:
        if self.damage is None:
            self.damage = Damage(self.line, self.n + 1, fault, detail)

    def _note(self, text: str) -> None:
        if text not in self.notes and len(self.notes) < 20:
            self.notes.append(text)


def _told(error: ValueError) -> str:
    """Return the first thing that is wrong with a line: the field, what stands there, why that is wrong."""
    if not isinstance(error, ValidationError):
        return str(error)[:300]
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:100]}: {shortly(first['input'])}: {first['msg']}"[:300]
