"""Puts what a cartridge's code raised in one line: the type, the message, and the place in the author's file."""

from __future__ import annotations

import traceback
from pathlib import Path

from kernel.errors import KernelError

LONGEST = 1000
"""Characters of a message."""


def why(error: Exception) -> str:
    """Return what stands in a log or on a page of an error that ended something: our own errors say it themselves.

    >>> why(KernelError("home: it has no view"))
    'home: it has no view'
    >>> why(ZeroDivisionError("division by zero"))
    'ZeroDivisionError: division by zero'
    """
    return str(error) if isinstance(error, KernelError) else error_line(error)


def error_line(error: BaseException) -> str:
    """Return type, first line and place of an error.

    The place is the innermost line that ran, or the line that cannot be parsed.

    >>> def careless():
    ...     return 1 / 0
    >>> try:
    ...     careless()
    ... except ZeroDivisionError as error:
    ...     error_line(error)
    'ZeroDivisionError: division by zero (<doctest dispatch.loading.error_line.error_line[0]>:2)'
    """
    try:
        said = str(error).strip().partition("\n")[0][:LONGEST]
    except Exception:  # it cannot even say what it is
        said = ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    place = (frames[-1].filename, frames[-1].lineno) if frames else None
    if isinstance(error, SyntaxError) and error.filename:
        said, place = error.msg, (error.filename, error.lineno)
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return f"{text} ({'/'.join(Path(place[0]).parts[-2:])}:{place[1]})" if place else text
