"""Opens logs for reading, plain or packed. Knows bytes only.

A packed file that is cut or broken reads like a plain one that ends there, since a killed session leaves no end mark.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from kernel.errors import LogError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 16


class Unpacker(Protocol):
    """What zlib and the zstd modules agree on."""

    @property
    def eof(self) -> bool:
        """Whether the stream came to its end mark."""

    @property
    def unused_data(self) -> bytes:
        """What follows the end mark."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what `data` adds."""


class Unpacked(io.RawIOBase):
    """A raw stream of the unpacked bytes of `source`; several streams one after the other are read as one.

    Attributes:
        fault: why it ended early, or None. A missing end mark is no fault of its own.
    """

    def __init__(self, source: BinaryIO, make: Callable[[], Unpacker]) -> None:
        self.fault: str | None = None
        self._source = source
        self._make = make
        self._unpacker = make()
        self._ready = memoryview(b"")
        self._over = False

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return how many bytes; 0 at the end or where the packed data is broken."""
        while not self._ready and not self._over:
            self._pull()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        """Close the source too."""
        if not self.closed:
            self._source.close()
        super().close()

    def _pull(self) -> None:
        data = self._source.read(_CHUNK)
        while True:
            if self._unpacker.eof:
                data = self._unpacker.unused_data + data
                if not data:
                    self._over = True
                    return
                self._unpacker = self._make()
            if not data:
                self._over = True
                return
            try:
                self._ready = memoryview(self._unpacker.decompress(data))
            except Exception as error:  # zlib and three zstd modules each have their own class
                self.fault = f"the packed data is broken: {error}"
                self._over = True
                return
            if self._ready or not self._unpacker.eof:
                return
            data = b""


def open_log(path: Path) -> io.BufferedReader:
    """Open a log for reading; packed data is known by its first bytes, whatever the file is called.

    Raises LogError when there is no such file, it is not one, or it needs a module that is missing.
    """
    try:
        source = path.open("rb")
    except OSError as error:
        raise LogError(f"log: cannot read {str(path)!r}: {error.strerror}") from error
    magic = source.peek(4)[:4]
    if magic.startswith(GZIP):
        return io.BufferedReader(Unpacked(source, lambda: zlib.decompressobj(wbits=31)), _CHUNK)
    if magic == ZSTD:
        return io.BufferedReader(Unpacked(source, zstd(path).ZstdDecompressor), _CHUNK)
    return source


def zstd(path: Path) -> Any:
    """Return the module that packs and unpacks zstd: Python's own from 3.14, or its backport."""
    try:
        from compression import zstd as module  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd as module  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise LogError(
                f"log: {str(path)!r} is packed with zstd; install 'backports.zstd', or pack it with gzip"
            ) from None
    return module
