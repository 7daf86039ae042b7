"""The streams of a command: what stands in for one that is closed, what cannot be spelled, what cannot be written."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from kernel.errors import KernelError, UsageError
from kernel.textfile import MAX_BYTES, decoded

GONE = 128 + 13
"""Exit code when the reader of a pipe has gone away: that of a process which SIGPIPE ends."""


class OutputError(KernelError):
    """Standard output took no more: a full disk, or nothing behind it."""


class _Closed(io.TextIOBase):
    """Stands in for a stream that was closed before the command began: whatever is written fails as it would there."""

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return 0


def occupy() -> None:
    """Put the null device where stdin, stdout or stderr is closed, before a file that is opened takes its place."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one


def prepare() -> None:
    """Make the streams of Python safe to use, whatever they are.

    A closed stdin is empty, a closed stderr swallows, a closed stdout fails when it is written to, and a character that
    an encoding does not have is written as its escape.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the same
    if sys.stdout is None:
        sys.stdout = _Closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # what a person typed is looked at line by line


@contextmanager
def writing() -> Iterator[None]:
    """Turn an error of stdout into an OutputError; a reader that went away stays a BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"stdout cannot be written: {error.strerror or error}") from error


def flush() -> None:
    """Write what stdout has kept back; raises as `writing`."""
    with writing():
        sys.stdout.flush()


def abandon(stream: TextIO | None = None) -> None:
    """Let what stdout, or another stream, still keeps back go nowhere, so that nothing fails when the process ends."""
    with contextlib.suppress(OSError, ValueError):
        number = os.open(os.devnull, os.O_WRONLY)
        os.dup2(number, (stream or sys.stdout).fileno())
        os.close(number)


def is_utf8() -> bool:
    """Return whether stdout can spell every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def stdin_bytes() -> BinaryIO:
    """Return stdin as bytes, which our reader decodes, whatever the locale says."""
    found: BinaryIO = getattr(sys.stdin, "buffer", None) or io.BytesIO(sys.stdin.read().encode())
    return found


def stdin_text() -> str:
    """Return all of stdin; raises UsageError as `kernel.textfile.decoded` and for more than a file may have."""
    data = stdin_bytes().read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UsageError(f"stdin has more than {MAX_BYTES >> 20} MiB, the most that a text file may have")
    return decoded(data, "stdin")
