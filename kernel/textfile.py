"""Reads text files that people and other systems wrote: UTF-8, lines that end at LF or CRLF, bounded in size."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kernel.errors import BuildError, KernelError, UsageError

MAX_BYTES = 64 << 20
"""A text file may have so many bytes."""

MAX_LINE = 1 << 20
"""A line of a stream may have so many bytes."""

OTHERS = {
    codecs.BOM_UTF32_LE: "UTF-32",  # begins like UTF-16, so it comes first
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""Marks at the beginning of files that are not UTF-8."""

_log = logging.getLogger(__name__)


def read_text(path: Path, error: type[KernelError] = UsageError, where: str = "") -> str:
    """Return the text of a file, as `decoded` reads it.

    Args:
        error: what is raised.
        where: begins the errors; the path, unless told otherwise.
    Raises:
        KernelError: of the type given, for a file that cannot be read, has more than MAX_BYTES or is no such text.
    """
    where = where or repr(str(path))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as failed:  # ValueError: a path with a NUL
        told = failed.strerror if isinstance(failed, OSError) else failed
        raise error(f"{where} cannot be read: {told}; give a text file in UTF-8") from failed
    if len(data) > MAX_BYTES:
        raise error(f"{where} has more than {MAX_BYTES >> 20} MiB, the most that a text file may have")
    return decoded(data, where, error)


def read_lines(path: Path, error: type[KernelError] = UsageError, where: str = "") -> list[str]:
    """Return the lines of a file without their ends; see `read_text` for the errors."""
    return lines(read_text(path, error, where))


def lines(text: str) -> list[str]:
    r"""Return lines without their ends, which are LF and CRLF; nothing else ends a line.

    >>> lines("a\u2028b\r\nc\x0bd\n\n"), lines("")
    (['a\u2028b', 'c\x0bd', ''], [])
    """
    found = text.split("\n")
    if found[-1] == "":
        found.pop()
    return [line.removesuffix("\r") for line in found]


def decoded(data: bytes, where: str, error: type[KernelError] = UsageError, first: int = 1) -> str:
    r"""Return the text that bytes spell in UTF-8; a byte-order mark before the first line is dropped, with a note.

    Args:
        where: begins the errors and the note.
        first: number of the line that the bytes begin in.
    Raises:
        KernelError: of the type given, with the line, for UTF-16, UTF-32, NUL and what is not UTF-8.

    >>> decoded(b"yes\nn\xf6\n", "notes.txt")
    Traceback (most recent call last):
    kernel.errors.UsageError: notes.txt:2: byte b'\xf6' is not UTF-8; save the file as UTF-8
    """
    if first == 1:
        for mark, name in OTHERS.items():
            if data.startswith(mark):
                raise error(f"{where}:1: it is {name}; save the file as UTF-8")
        if data.startswith(codecs.BOM_UTF8):
            _log.warning("%s begins with a byte-order mark, which is dropped", where)
            data = data.removeprefix(codecs.BOM_UTF8)
    if (at := data.find(0)) >= 0:
        line = first + data.count(b"\n", 0, at)
        raise error(f"{where}:{line}: it has a NUL byte, which no text has; save the file as UTF-8")
    try:
        return data.decode()
    except UnicodeDecodeError as failed:
        line = first + data.count(b"\n", 0, failed.start)
        wrong = data[failed.start : failed.start + 1]
        raise error(f"{where}:{line}: byte {wrong!r} is not UTF-8; save the file as UTF-8") from failed


def stream_lines(stream: BinaryIO, where: str, error: type[KernelError] = UsageError) -> Iterator[str]:
    """Yield the lines of a stream as they come, without their ends; see `decoded` for the errors.

    Raises:
        KernelError: of the type given, for a line of more than MAX_LINE bytes too.
    """
    for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE + 1), b""), 1):
        if len(line) > MAX_LINE:
            raise error(f"{where}:{number}: the line has more than {MAX_LINE >> 20} MiB, the most that one may have")
        yield decoded(line, where, error, number).removesuffix("\n").removesuffix("\r")


def utf8(text: str, error: type[KernelError] = BuildError) -> bytes:
    """Return text in UTF-8; raises an error of the type given for half a character (a lone surrogate).

    Such halves stand in command lines and file names that are not UTF-8, and in JSON.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as failed:
        half = text[failed.start]
        raise error(f"{text[:200]!r} is no text that UTF-8 can spell: {half!r} is half a character") from failed
