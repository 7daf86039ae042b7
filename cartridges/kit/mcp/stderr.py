"""What a server writes to its stderr: read so that it never waits, and only the end of it kept."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TextIO

KEPT_BYTES = 2000
FINISH_SECONDS = 0.5


class Tail:
    """A file for a server to write into; what is written last is kept."""

    def __init__(self) -> None:
        read, write = os.pipe()
        self.file: TextIO = os.fdopen(write, "w")
        self._read = read
        self._kept = b""
        self._thread = threading.Thread(target=self._follow, name="stderr of a server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write no more from here; the server has a copy of its own."""
        with contextlib.suppress(OSError):
            self.file.close()

    def finish(self) -> None:
        """Read what an ended server has written; a process that it started may hold the file open, so not for long."""
        self._thread.join(FINISH_SECONDS)

    @property
    def last(self) -> str:
        """The last line that is not blank."""
        lines = [line for line in self._kept.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip()[-500:] if lines else ""

    def _follow(self) -> None:
        with contextlib.suppress(OSError):
            while part := os.read(self._read, 1 << 16):
                self._kept = (self._kept + part)[-KEPT_BYTES:]
            os.close(self._read)
