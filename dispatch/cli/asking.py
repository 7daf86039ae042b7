"""Reads requests from a terminal, a file or a pipe, one a line, and says which sessions wait for them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from dispatch.cli.interrupts import Interrupts
from dispatch.cli.output import note
from dispatch.session.session import Session
from kernel.errors import BuildError, CartridgeError, UsageError

COMMANDS = ("/join", "/leave")

Command = Callable[[str, str], None]
"""(command, cartridge): carries out a line such as `/leave home`."""


def waits_for_requests(session: Session) -> bool:
    """Return whether a session waits for requests: it has several cartridges, or one that takes them and cannot plan.

    A single cartridge with a planner plays by itself, unless requests are named.
    """
    if len(session.cartridges) > 1:
        return True
    (cartridge,) = session.cartridges.values()
    return cartridge.takes_requests and cartridge.planner is None


def typed(source: Path | None) -> bool:
    """Return whether requests come from a person at a terminal."""
    return (source is None or str(source) == "-") and sys.stdin is not None and sys.stdin.isatty()


def requests(source: Path | None, interrupts: Interrupts, carry_out: Command) -> Iterator[str]:
    """Yield requests until there are no more; blank lines are none.

    Args:
        source: a file; None or `-` for the terminal or a pipe.
        carry_out: gets `/join NAME` and `/leave NAME`; its errors are told to a person who typed, and raised otherwise.
    Raises:
        UsageError: a file that cannot be read, another line that begins with `/`.
    """
    for line in _lines(source, interrupts):
        text = line.strip()
        if not text.startswith("/"):
            if text:
                yield text
            continue
        try:
            command, _, name = text.partition(" ")
            if command not in COMMANDS or not name.strip():
                raise UsageError(f"{text!r} is no request; say {' or '.join(f'{word} NAME' for word in COMMANDS)}")
            carry_out(command, name.strip())
        except (UsageError, CartridgeError, BuildError) as error:
            if not typed(source):
                raise
            note(f"error: {error}")


def _lines(source: Path | None, interrupts: Interrupts) -> Iterator[str]:
    try:
        if typed(source):
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401 - lets input() edit its line
            while True:
                with interrupts.asking():
                    line = input("> ")
                yield line
        if source is not None and str(source) != "-":
            with source.open(encoding="utf-8-sig") as file:
                yield from file
            return
        while True:
            with interrupts.asking():
                line = sys.stdin.readline()
            if not line:
                return
            yield line
    except EOFError:
        print()
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else f"not UTF-8: {error}"
        raise UsageError(f"run: cannot read requests from {str(source or 'stdin')!r}: {told}") from error
