"""Resumes a session that was broken off: verifies its log, cuts off a broken end, returns the engines and a writer.

The file is locked before it is read and stays locked by the writer. Nothing is cut off but an unfinished last line, a
block of NUL bytes or an outcome that came from outside; everything else that is damaged is refused and left as it is.
A compressed file is written anew beside the old one and takes its place in one step, so a crash leaves one of the two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from dispatch.log.compression import SUFFIXES, Compress, compressor, open_log
from dispatch.log.damage import MAX_LINE, Fault
from dispatch.log.encoding import unseal
from dispatch.log.key import Key
from dispatch.log.lock import lock
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Header, Resumed
from dispatch.log.redact import Redactor
from dispatch.log.replay import MakeCartridge, Replay
from dispatch.log.report import ReplayReport, Verdict
from dispatch.log.tally import Tally
from dispatch.log.writer import Broken, LogWriter, OnError, Place
from kernel.contract import Cartridge, Engine
from kernel.errors import LogError, UsageError
from kernel.memory.listed import Ids, flat_of

PART = 1 << 16
"""Bytes that are copied at a time."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """A session to go on with."""

    header: Header
    writer: LogWriter
    """Stands after the last whole decision, which has number `writer.n`."""
    cartridges: dict[str, Cartridge]
    engines: dict[str, Engine]
    """By cartridge name, in the state after that decision."""
    last: DecisionRecord | None
    """That decision, or None when there was none."""
    tally: Tally
    """Sums over the decisions up to that one."""
    report: ReplayReport
    """What the verification found."""


def resume(
    path: str | Path,
    make_cartridge: MakeCartridge,
    *,
    redact: Redactor | None = None,
    on_error: OnError = "stop",
    key: Key | None = None,
) -> Resumption:
    """Lock a log, verify it, and return what it takes to go on; the log gets a line that says so.

    A last line that was cut, or a block of NULs in its place, is taken off, and so is an outcome that came from outside
    (interrupted, limit, error).

    Raises LogError when another session writes the file, when the session ended by itself, when the log is damaged
    before its end or differs from what the engines do; UsageError when the salt of a redacted log, or the
    key of a keyed one, is not given again.
    """
    path = Path(path)
    if not path.is_file():
        raise LogError(f"resume: no file {str(path)!r}")
    fd = lock(path)
    try:
        with LogReader(path, key) as reader:
            _check_secrets(reader, redact)
            run, fold, tally = Replay(reader, make_cartridge), Prompts(), Tally()
            last: DecisionRecord | None = None
            prompt: Ids = ()
            for step in run:
                tally.add(step.record)
                last, prompt = step.record, flat_of(fold.take(step.record)[0]) or prompt
            report = run.report()
        dropped, lines = _rest(path, reader.end.length)
        _check(report, reader, lines)
        compress = compressor(path)
        if reader.compressed:
            fd = _compressed_again(path, fd, reader.end.length, compress)
        else:
            os.ftruncate(fd, reader.end.length)
        if not reader.end.newline:
            os.write(fd, compress(b"\n", False))
        broken = Broken(fd, compress, Place(reader.end.chain, reader.n, prompt, reader.end.mac))
        writer = LogWriter(path, None, redact=redact, on_error=on_error, broken=broken, key=key)
    except BaseException:
        os.close(fd)
        raise
    ending = reader.outcome.ending if reader.outcome else None
    writer.note(Resumed(n=reader.n, dropped=dropped, ending=ending))
    return Resumption(reader.header, writer, run.cartridges, run.engines, last, tally, report)


def _check(report: ReplayReport, reader: LogReader, lines: bool) -> None:
    """Refuse what cannot be gone on with."""
    where = f"resume: {report.path!r}"
    if report.verdict is Verdict.DIFFERENT:
        raise LogError(f"{where}: {report.sentence}")
    if reader.outcome is not None and reader.outcome.ending in (Ending.RULES, Ending.HALT):
        raise LogError(f"{where}: the session is over: {reader.outcome.ending} {reader.outcome.detail}".rstrip())
    damage = reader.damage
    if damage is not None and (lines or damage.fault not in (Fault.CUT, Fault.NULS)):
        raise LogError(f"{where} is damaged before its end: {damage}")
    if reader.compressed and reader.path.suffix not in SUFFIXES:
        raise LogError(f"{where} is compressed, but its name does not end in {' or '.join(SUFFIXES)}; rename it")


def _check_secrets(reader: LogReader, redact: Redactor | None) -> None:
    given = None if redact is None else redact.fingerprint
    if reader.header.redacted != given:
        told = "was redacted; give its salt again" if reader.header.redacted else "was not redacted; give no salt"
        raise UsageError(f"resume: the log {told}")
    if not reader.by_key and (reader.header.keyed is not None or reader.key_given):
        told = "is keyed; give its key" if reader.header.keyed is not None else "is not keyed; give no key"
        raise UsageError(f"resume: the log {told}")


def _rest(path: Path, good: int) -> tuple[int, bool]:
    """Return how many bytes follow the good part, and whether there is a line of a log among them."""
    count, lines = 0, False
    with open_log(path) as file:
        for _ in _parts(file, good):
            pass
        while line := file.readline(MAX_LINE):
            count += len(line)
            lines = lines or unseal(line.rstrip(b"\r\n")) is not None
    return count, lines


def _compressed_again(path: Path, fd: int, good: int, compress: Compress) -> int:
    """Compress the good part into a new file in place of the old one and return it, locked.

    A stream that was cut cannot go on, and one that was ended cannot be cut.
    """
    fresh = path.with_name(path.name + ".resumed")
    new = lock(fresh)
    try:
        os.ftruncate(new, 0)
        with open_log(path) as file:
            for part in _parts(file, good):
                os.write(new, compress(part, False))
        os.fsync(new)
        fresh.replace(path)
    except BaseException:
        os.close(new)
        fresh.unlink(missing_ok=True)
        raise
    os.close(fd)
    return new


def _parts(file: BufferedReader, count: int) -> Iterator[bytes]:
    """Yield the next `count` bytes of a file, part by part."""
    while count > 0 and (part := file.read(min(count, PART))):
        count -= len(part)
        yield part
