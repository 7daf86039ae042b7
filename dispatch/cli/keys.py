"""Reads single keys from a terminal, without waiting for Enter. Needs termios, which Windows does not have."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kernel.errors import UsageError

_KEY = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|.", re.DOTALL)
_NAMES = {
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x1b": "escape", "\r": "enter", "\n": "enter", " ": "space", "\x7f": "backspace", "\x04": "q",
}  # fmt: skip


def names(typed: str) -> list[str]:
    """Split what a terminal sent into keys, the special ones by name.

    >>> names("\\x1b[Dn 12\\r")
    ['left', 'n', 'space', '1', '2', 'enter']
    """
    return [_NAMES.get(key, key) for key in _KEY.findall(typed)]


@contextmanager
def keys() -> Iterator[Iterator[str]]:
    """Give the keys as they are pressed, nothing echoed, none lost; Ctrl-C raises KeyboardInterrupt.

    Raises UsageError where there is no termios.
    """
    try:
        import termios
        import tty
    except ImportError:
        raise UsageError(f"keys cannot be read on {sys.platform!r}, which has no termios; leave out --step") from None
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def read() -> Iterator[str]:
        while typed := os.read(fd, 1024):
            yield from names(typed.decode("utf-8", "replace"))

    try:
        tty.setcbreak(fd, termios.TCSADRAIN)
        yield read()
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
