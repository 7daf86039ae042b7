"""Reads requests from a terminal, a file or a pipe, one a line, and says which sessions wait for them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from dispatch.cli.interrupts import Interrupts
from dispatch.cli.output import note
from dispatch.cli.streams import stdin_bytes
from kernel.errors import BuildError, CartridgeError, UsageError
from kernel.textfile import stream_lines, utf8

COMMANDS = {
    "/join": "/join NAME lets a cartridge in",
    "/leave": "/leave NAME lets one go, with its state",
    "/wrong": "/wrong says that the last answer was wrong; /wrong COMMAND or /wrong none also what was right",
    "/help": "/help tells this",
}
BARE = ("/wrong", "/help")
"""Commands that may stand alone."""

Command = Callable[[str, str], None]
"""(command, what follows it): carries out a line such as `/leave home`."""


def typed(source: Path | None) -> bool:
    """Return whether requests come from a person at a terminal."""
    return (source is None or str(source) == "-") and sys.stdin is not None and sys.stdin.isatty()


def requests(source: Path | None, interrupts: Interrupts, carry_out: Command) -> Iterator[str]:
    """Yield requests until there are no more; blank lines are none.

    Args:
        source: a file; None or `-` for the terminal or a pipe.
        carry_out: gets the lines of COMMANDS but for `/help`; its errors are told to a person who typed, and raised
            otherwise.
    Raises:
        UsageError: a file that cannot be read, another line that begins with `/`.
    """
    for line in _lines(source, interrupts):
        text = line.strip()
        try:
            utf8(text, UsageError)
            if not text.startswith("/"):
                if text:
                    yield text
                continue
            command, _, name = text.partition(" ")
            if command not in COMMANDS or (not name.strip() and command not in BARE):
                raise UsageError(f"{text[:80]!r} is no request; say /join NAME, /leave NAME, /wrong COMMAND or /help")
            if command == "/help":
                for told in COMMANDS.values():
                    note(told)
                continue
            carry_out(command, name.strip())
        except (UsageError, CartridgeError, BuildError) as error:
            if not typed(source):
                raise
            note(f"error: {error}")


def _lines(source: Path | None, interrupts: Interrupts) -> Iterator[str]:
    if typed(source):
        yield from _typed_lines(interrupts)
        return
    where = "stdin" if source is None or str(source) == "-" else repr(str(source))
    with contextlib.ExitStack() as stack:
        try:
            stream = stdin_bytes() if where == "stdin" else stack.enter_context(Path(str(source)).open("rb"))
            found = stream_lines(stream, where)
            while True:
                with interrupts.asking():
                    line = next(found, None)
                if line is None:
                    return
                yield line
        except OSError as error:
            raise UsageError(f"run: cannot read requests from {where}: {error.strerror or error}") from error


def _typed_lines(interrupts: Interrupts) -> Iterator[str]:
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - lets input() edit its line
    while True:
        try:
            with interrupts.asking():
                line = input("> ")
        except EOFError:
            print()
            return
        yield line
