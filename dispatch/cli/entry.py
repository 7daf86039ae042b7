"""Runs the command line: streams made safe, signals as exit codes, every error in one line, never a traceback.

`CARTRIDGE_KERNEL_TRACEBACK=1` shows the traceback of an error that nobody foresaw.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from dispatch.cli import interrupts, streams
from dispatch.cli.commands import Imported
from dispatch.cli.output import note
from dispatch.loading.error_line import error_line
from kernel.errors import KernelError, UsageError

TRACEBACK = "CARTRIDGE_KERNEL_TRACEBACK"


class _Notes(logging.Handler):
    """Prints what our libraries note as the commands do."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"note: {record.getMessage()}")


for package in ("kernel", "dispatch", "cartridges"):
    logging.getLogger(package).addHandler(_Notes())


class Commands(TyperGroup):
    """The commands, run so that whatever happens ends in an exit code and at most one line on stderr."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands = Imported()

    def main(self, args: Sequence[str] | None = None, *rest: Any, **named: Any) -> NoReturn:
        """Run one command and exit: 0 done, 1 failed, 2 misused, 128 and the number of a signal."""
        streams.prepare()
        interrupts.came.clear()
        given = list(sys.argv[1:] if args is None else args)
        try:
            for text in given:
                _spelled(text)
            named["standalone_mode"] = False
            code = super().main(given, *rest, **named) or 0
            streams.flush()
        except BaseException as error:  # nothing of ours is above
            code = _told(error)
        sys.exit(128 + interrupts.came[-1] if code == 130 and interrupts.came else code)


def _spelled(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"the argument {text!r} is not UTF-8; nothing was done") from None


def _told(error: BaseException) -> int:
    """Say what went wrong in one line, or nothing where a line tells nothing, and return the exit code."""
    try:
        streams.flush()
    except (OSError, KernelError) as failed:
        error = failed if isinstance(error, Exception) else error
    match error:
        case BrokenPipeError() | SystemExit(__context__=BrokenPipeError()):
            streams.abandon()
            return streams.GONE
        case SystemExit():
            return int(error.code or 0)
        case KeyboardInterrupt() | typer.Abort():
            return 130
        case OSError() if interrupts.came:  # the terminal has gone
            streams.abandon()
            return 130
        case typer.TyperException():
            context = getattr(error, "ctx", None)
            if said := " ".join(error.format_message().split()).rstrip("."):  # else it was the help itself
                note(f"error: {said}; see {context.command_path if context else 'python -m kernel'} --help")
            return error.exit_code
        case KernelError():
            if isinstance(error, streams.OutputError):
                streams.abandon()
            note(f"error: {error}")
            return 2 if isinstance(error, UsageError) else 1
        case OSError():
            streams.abandon()
            what = repr(str(error.filename)) if error.filename else "the output"
            note(f"error: {what}: {error.strerror or error}")
            return 1
    if os.environ.get(TRACEBACK):
        raise error
    note(f"error: {error_line(error)}; {TRACEBACK}=1 shows where it came from")
    return 1
