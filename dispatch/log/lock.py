"""A file that one process alone appends to: the lock is held as long as the file is open."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernel.errors import LogError


def lock(path: Path) -> int:
    """Open for appending, alone; the lock goes away with the process, however it ends.

    Raises LogError when the file cannot be opened or another process holds it.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise LogError(f"log: cannot write {str(path)!r}: {error.strerror}") from error
    try:
        _flock(fd)
    except OSError as error:
        os.close(fd)
        busy = isinstance(error, BlockingIOError | PermissionError)
        why = "is being written by another session" if busy else f"cannot be locked: {error.strerror}"
        raise LogError(f"log: {str(path)!r} {why}") from error
    return fd


if sys.platform == "win32":
    import msvcrt

    def _flock(fd: int) -> None:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _flock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
