"""Writes a session log, line by line; `encoding.py` says what a line looks like.

What the file holds at every moment:
- Each line is handed to the operating system in one write before the next decision begins. A process that is killed
  loses at most the line that it was writing, and the file then ends in a part of that line.
- The disk itself is waited for (fsync) once, after the outcome. A power cut may cost more than one line.
- After a failed write the file is cut back to the end of the line before, so it stays whole.
- Only one process writes a file: it is locked as long as it is open, and the lock ends with the process.
"""

from __future__ import annotations

import errno
import os
import stat
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

from dispatch.log.compression import Compress, compressor
from dispatch.log.damage import MAX_LINE
from dispatch.log.encoding import START, encode, seal, stamp
from dispatch.log.key import Key
from dispatch.log.lock import lock
from dispatch.log.prompts import Told, delta, flat, nearest
from dispatch.log.records import Corrected, DecisionRecord, Header, Joined, Left, LogRecord, Outcome, Resumed
from dispatch.log.redact import Redactor
from kernel.errors import LogError
from kernel.memory.listed import Listed

OnError = Literal["stop", "continue"]


class Place(NamedTuple):
    """Where a writer stands: chain value, number and prompt ids of the last decision."""

    chain: str = START
    n: int = 0
    prompt: Sequence[int] = ()
    mac: str = START


class Broken(NamedTuple):
    """A log that was broken off, open and locked, and where it goes on; `resume.py` says what that takes."""

    fd: int
    compress: Compress
    place: Place


class _Pending(NamedTuple):
    """A line on its way: where it starts, its bytes, where the writer stands once it has arrived."""

    start: int
    line: bytes
    place: Place


class LogWriter:
    """Writes one session: the header at once, then decisions, then the outcome. Use it as a context manager.

    Args:
        path: a new file, compressed when it ends in `.gz` or `.zst`. One that holds anything already is refused, and so
            is one that another writer holds.
        header: line 1; None to go on with a broken log.
        redact: drops prompts and requests and writes salted hashes of them instead.
        on_error: what to do when the disk is full or fails: `stop` raises LogError, `continue` warns once, writes
            nothing more and lets the session go on. The file stays whole up to the line before in both cases.
        key: seals every line of the log.

    Attributes:
        error: why writing stopped, or None.
    """

    def __init__(
        self,
        path: str | Path,
        header: Header | None,
        *,
        redact: Redactor | None = None,
        on_error: OnError = "stop",
        broken: Broken | None = None,
        key: Key | None = None,
    ) -> None:
        self.path = Path(path)
        self.error: str | None = None
        self._redact = redact
        self._key = key
        self._stop = on_error == "stop"
        self._nulls: tuple[int, list[Told]] = (0, [])
        self._ended = False
        self._pending: _Pending | None = None
        self._fd, self._compress, self._place = broken or (-1, compressor(self.path), Place())
        if broken is None:
            self._fd = lock(self.path)
        found = os.fstat(self._fd)
        self._regular = stat.S_ISREG(found.st_mode)
        if header is None:
            return
        try:
            if found.st_size and self._regular:
                raise LogError(f"log: {str(self.path)!r} holds something already; name a new file")
            header = header if redact is None else redact.header(header)
            self._write(header.model_copy(update={"keyed": None if key is None else key.id}))
        except BaseException:
            self.close()
            raise

    @property
    def n(self) -> int:
        """How many decisions are written; one that Ctrl-C broke into counts, since its line will be finished."""
        return (self._place if self._pending is None else self._pending.place).n

    def decision(
        self,
        record: DecisionRecord,
        prompt: Told = (),
        nulls: Sequence[Told] = (),
        rotations: Sequence[Told] = (),
    ) -> None:
        """Write one decision.

        Args:
            record: with `n` one more than the last.
            prompt: all ids that the model read before it chose; the record's `prompt` is made from them.
            nulls, rotations: the same for each null prompt and for each other order of the options.
        """
        if record.n != self.n + 1 and self.error is None:
            raise LogError(f"log: decision {record.n} cannot follow decision {self.n}")
        read = flat(prompt)
        written: list[Told] = [null if isinstance(null, Listed) else list(null) for null in nulls] if len(read) else []
        if written and written == self._nulls[1]:
            record, nulls = record.model_copy(update={"nulls_of": self._nulls[0]}), ()
        if self._redact is not None:
            record, read = self._redact.decision(record, prompt, nulls, rotations), ()
        if len(read):
            record = record.model_copy(
                update={
                    "prompt": delta(prompt, self._place.prompt),
                    "nulls": tuple(nearest(null, prompt, rotations) for null in nulls) or None,
                    "rotations": tuple(delta(ids, prompt) for ids in rotations) or None,
                }
            )
        self._write(record, list(read))
        if record.nulls_of is None and written:
            self._nulls = (record.n, written)

    def note(self, record: Resumed | Joined | Left | Corrected) -> None:
        """Write that the session goes on after it was broken off, that a cartridge joined or left, or a correction."""
        self._write(record)

    def outcome(self, record: Outcome) -> None:
        """Write the last line and wait until the disk has everything."""
        if record.decisions != self.n and self.error is None:
            raise LogError(f"log: the outcome counts {record.decisions} decisions, {self.n} are written")
        self._write(record, last=True)
        self._ended = True
        if self._regular:
            os.fsync(self._fd)

    def close(self) -> None:
        """Give the file free. A log closed without an outcome reads as that of a killed session."""
        if self._fd >= 0:
            try:
                self._settle()
            finally:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _write(self, record: LogRecord, prompt: Sequence[int] = (), *, last: bool = False) -> None:
        if self._fd < 0 or self._ended:
            raise LogError(f"log: {str(self.path)!r} is closed")
        self._settle()
        if self.error is not None:
            return
        body, mac = encode(record), START
        if self._key is not None:
            mac = self._key.mac(self._place.mac, body)
            body = stamp(body, mac)
        line, chain = seal(body, self._place.chain)
        n = record.n if isinstance(record, DecisionRecord) else self._place.n
        place = Place(chain, n, prompt or self._place.prompt, mac)
        start = os.fstat(self._fd).st_size
        if len(line) > MAX_LINE:
            self._fail(OSError(errno.EFBIG, f"a line of {len(line)} bytes, over {MAX_LINE},"), start)
            return
        self._pending = _Pending(start, self._compress(line, last), place)
        self._settle()

    def _settle(self) -> None:
        """Bring the pending line to the file.

        It is noted before it is written and finished from where the file stands, because Ctrl-C may break in anywhere,
        and the outcome that is written then has to follow a whole line.
        """
        if self._pending is None:
            return
        pending = self._pending
        try:
            done = os.fstat(self._fd).st_size - pending.start if self._regular else 0
            while done < len(pending.line):
                done += os.write(self._fd, pending.line[done:])
        except OSError as error:
            self._fail(error, pending.start)
        else:
            self._place = pending.place
        self._pending = None

    def _fail(self, error: OSError, start: int) -> None:
        """Take back what was written of the line, then stop or go on as told."""
        self._pending = None
        self.error = f"log: {str(self.path)!r}: {error.strerror} at decision {self.n + 1}; {self.n} are written"
        if self._regular:
            os.ftruncate(self._fd, start)
        if self._stop:
            raise LogError(self.error) from error
        warnings.warn(self.error, RuntimeWarning, stacklevel=2)
