"""Opens logs for reading and packs them for writing, by gzip or zstd. Knows bytes only.

Packing ends a block after every line, so that a killed session loses no more than it would in a plain file; that costs
some of the gain. A packed file that is cut or broken reads like a plain one that ends there.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from kernel.errors import LogError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
PACKED = (".gz", ".zst")
"""Suffixes of the logs that are packed while they are written."""
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
        if not data:
            self._over = True
            return
        try:
            self._ready = memoryview(self._feed(data))
        except Exception as error:  # zlib and the zstd modules each have their own class
            self.fault = f"the packed data is broken: {error}"
            self._over = True
            self._ready = memoryview(self._salvage(data))

    def _feed(self, data: bytes) -> bytes:
        """Return what `data` unpacks to, going on to the next stream where one ends."""
        out = b""
        while data:
            if self._unpacker.eof:
                self._unpacker = self._make()
            out += self._unpacker.decompress(data)
            data = self._unpacker.unused_data if self._unpacker.eof else b""
        return out

    def _salvage(self, data: bytes) -> bytes:
        """Return what can be had of the chunk with the break in it: unpackers drop what they had when they fail.

        So everything is unpacked once more up to this chunk, and then byte by byte.
        """
        if not self._source.seekable():
            return b""
        left = self._source.tell() - len(data)
        self._source.seek(0)
        self._unpacker = self._make()
        while left:
            again = self._source.read(min(_CHUNK, left))
            self._feed(again)
            left -= len(again)
        out = []
        with contextlib.suppress(Exception):
            for at in range(len(data)):
                out.append(self._feed(data[at : at + 1]))
        return b"".join(out)


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


Pack = Callable[[bytes, bool], bytes]
"""Packs the next line; True with the last one, which ends the stream."""


def packer(path: Path) -> Pack:
    """Return what packs the lines of a new log, as its suffix says: `.gz`, `.zst`, anything else is plain."""
    if path.suffix == ".gz":
        gzip = zlib.compressobj(wbits=31)
        return lambda line, last: gzip.compress(line) + gzip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    if path.suffix == ".zst":
        made = zstd(path).ZstdCompressor()
        return lambda line, last: bytes(made.compress(line, made.FLUSH_FRAME if last else made.FLUSH_BLOCK))
    return lambda line, last: line


def zstd(path: Path) -> Any:
    """Return the module that packs and unpacks zstd: Python's own from 3.14, or its backport."""
    try:
        from compression import zstd as module  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd as module  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise LogError(
                f"log: {str(path)!r} is packed with zstd, and the package 'backports.zstd' is not installed: "
                "pip install 'cartridge-kernel[zstd]', or pack it with gzip"
            ) from None
    return module
