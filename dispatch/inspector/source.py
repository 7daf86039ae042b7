"""The bytes of a log at any place: of a plain file itself, of a compressed one in a temporary copy that grows along."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import BinaryIO

from dispatch.log.compression import DecompressedStream, open_log
from kernel.errors import LogError

PART = 1 << 20
"""Bytes that are decompressed between two looks at the clock."""
MOST = 1 << 33
"""A compressed log may stand for so many bytes on the disk, and no more."""


class LogSource:
    """A log file that others may be writing.

    Attributes:
        path: as it was named.
        plain: the file with its decompressed lines: `path` itself, or a copy in a temporary folder.
        fault: why the decompressed bytes end early, if they do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()
        opened = self._opened = open_log(path)  # its raw stream is closed with it
        raw = getattr(opened, "raw", None)
        self._stream = raw if isinstance(raw, DecompressedStream) else None
        found = path.stat()
        self._was = (found.st_dev, found.st_ino)
        self._largest = found.st_size
        self._copy: BinaryIO | None = None
        if self._stream is None:
            self.plain = path
            self._file: BinaryIO = opened
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="cartridge-kernel-", ignore_cleanup_errors=True)
            self.plain = Path(self._folder.name) / "log.jsonl"
            self._copy = self.plain.open("wb", buffering=0)
            self._file = self.plain.open("rb")
        self._copied = 0

    @property
    def compressed(self) -> bool:
        """Whether the file is compressed."""
        return self._stream is not None

    @property
    def size(self) -> int:
        """Bytes of the file as it is named now."""
        return self.path.stat().st_size

    def available(self) -> int:
        """Return how many decompressed bytes can be read now."""
        return self._copied if self._stream is not None else os.fstat(self._file.fileno()).st_size

    def grow(self) -> bool:
        """Decompress a part of what was not yet; return whether there may be more now. Plain files need none of it.

        Raises LogError for a file that stands for more bytes than anybody wants on the disk.
        """
        if self._stream is None or self._copy is None:
            return False
        self._stream.go_on()
        data = self._stream.read(PART)
        self.fault = self._stream.fault
        if not data:
            return False
        if self._copied + len(data) > MOST:
            raise LogError(f"log: {str(self.path)!r} stands for more than {MOST >> 30} GiB; it is not shown further")
        self._copy.write(data)
        self._copied += len(data)
        return True

    def replaced(self) -> bool:
        """Return whether another file stands at the path, or the file has become shorter."""
        try:
            found = self.path.stat()
        except OSError:
            return False  # gone: what is open can still be read
        shorter = found.st_size < self._largest
        self._largest = max(self._largest, found.st_size)
        return shorter or (found.st_dev, found.st_ino) != self._was

    def read(self, at: int, length: int) -> bytes:
        """Return so many bytes from a place on; fewer where the file ends."""
        with self._lock:
            try:
                self._file.seek(at)
                return self._file.read(length)
            except ValueError:
                raise LogError(f"log: {str(self.path)!r} was closed meanwhile; ask again") from None

    def close(self) -> None:
        """Close the file, and remove the copy."""
        self._file.close()
        if self._copy is not None:
            self._copy.close()
        self._opened.close()
        if self._folder is not None:
            self._folder.cleanup()
