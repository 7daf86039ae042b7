"""Opens logs for reading, compressed or not, and compresses the lines of new ones with gzip or zstd.

Every line ends a block of the compressed stream and is written at once, so a killed session loses no more than it would
in a plain file; the price is a lower compression ratio. A compressed file that is cut or broken reads like a plain one
that ends there.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from kernel.errors import LogError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
SUFFIXES = (".gz", ".zst")
"""Suffixes of the logs that are compressed while they are written."""
_CHUNK = 1 << 16
PART = 1 << 20
"""Bytes that are decompressed at once: a small file may stand for a very large one."""
SAVED = 1 << 24
"""Bytes that are saved at most of the chunk in which the data is broken; a line has no more."""


class DecompressedStream(io.RawIOBase):
    """A raw stream of the decompressed bytes of `source`; several streams one after the other are read as one.

    `make` gives a decompressor as zlib and the zstd modules have it.

    Attributes:
        fault: why it ended early, or None. A missing end mark is no fault of its own.
    """

    def __init__(self, source: BinaryIO, make: Callable[[], Any]) -> None:
        self.fault: str | None = None
        self._source = source
        self._make = make
        self._decompressor = make()
        self._ready = memoryview(b"")
        self._over = False
        self._left = b""  # compressed bytes that were read and not taken yet
        self._more = False  # whether the decompressor may hold back what it has
        self._given = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` and return how many bytes; 0 at the end or where the compressed data is broken."""
        while not self._ready and not self._over:
            self._pull()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def go_on(self) -> None:
        """Read on where the source has grown since its end was reached; what is broken stays ended."""
        self._over = self.fault is not None

    def close(self) -> None:
        """Close the source too."""
        if not self.closed:
            self._source.close()
        super().close()

    def _pull(self) -> None:
        data = self._left
        if not data and not self._more:
            data = self._source.read(_CHUNK)
        if not data and not self._more:
            self._over = True
            return
        try:
            self._ready = memoryview(self._feed(data))
        except Exception as error:  # zlib and the zstd modules each have their own class
            self.fault = f"the compressed data is broken: {error}"
            self._over = True
            self._ready = memoryview(self._salvage(len(data)))
        self._given += len(self._ready)

    def _feed(self, data: bytes) -> bytes:
        """Return up to PART bytes of what `data` decompresses to, and note what is left of it.

        Where a stream ends the next one begins. zlib hands back what it did not take, zstd keeps it.
        """
        if self._decompressor.eof:
            self._decompressor = self._make()
        out: bytes = self._decompressor.decompress(data, PART)
        ended = self._decompressor.eof
        self._left = self._decompressor.unused_data if ended else getattr(self._decompressor, "unconsumed_tail", b"")
        self._more = not ended and len(out) == PART
        return out

    def _salvage(self, broken: int) -> bytes:
        """Return what can be had of the last bytes that were read, in which the data is broken.

        A decompressor that fails drops what it had, so everything is decompressed once more up to there, and then byte
        by byte; what was handed out is skipped.
        """
        if not self._source.seekable():
            return b""
        left, skip = self._source.tell() - broken, self._given
        self._source.seek(0)
        self._decompressor, self._left, self._more = self._make(), b"", False
        out = bytearray()
        with contextlib.suppress(Exception):
            while left + broken > 0:
                again = self._source.read(min(_CHUNK, left) if left > 0 else 1)
                if not again:
                    break
                left, broken = (left - len(again), broken) if left > 0 else (left, broken - 1)
                self._left = again
                while (self._left or self._more) and len(out) < SAVED:
                    part = self._feed(self._left)
                    out += part[skip:]
                    skip = max(0, skip - len(part))
        return bytes(out)


def open_log(path: Path) -> io.BufferedReader:
    """Open a log for reading; compressed data is known by its first bytes, whatever the file is called.

    Raises LogError when there is no such file, it is not one, or it needs a module that is missing.
    """
    try:
        source = path.open("rb")
    except OSError as error:
        raise LogError(f"log: cannot read {str(path)!r}: {error.strerror}") from error
    magic = source.peek(4)[:4]
    if magic.startswith(GZIP):
        return io.BufferedReader(DecompressedStream(source, lambda: zlib.decompressobj(wbits=31)), _CHUNK)
    if magic == ZSTD:
        return io.BufferedReader(DecompressedStream(source, zstd(path).ZstdDecompressor), _CHUNK)
    return source


Compress = Callable[[bytes, bool], bytes]
"""Compresses the next line; True with the last one, which ends the stream."""


def compressor(path: Path) -> Compress:
    """Return what compresses the lines of a new log, as its suffix says: `.gz`, `.zst`, anything else is plain."""
    if path.suffix == ".gz":
        gzip = zlib.compressobj(wbits=31)
        return lambda line, last: gzip.compress(line) + gzip.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    if path.suffix == ".zst":
        made = zstd(path).ZstdCompressor()
        return lambda line, last: bytes(made.compress(line, made.FLUSH_FRAME if last else made.FLUSH_BLOCK))
    return lambda line, last: line


def zstd(path: Path) -> Any:
    """Return the zstd module: Python's own from 3.14, or its backport."""
    try:
        from compression import zstd as module  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from backports import zstd as module  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise LogError(
                f"log: {str(path)!r} is compressed with zstd, and the package 'backports.zstd' is not installed: "
                "pip install 'cartridge-kernel[zstd]', or compress it with gzip"
            ) from None
    return module
