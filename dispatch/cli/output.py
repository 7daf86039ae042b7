"""How every command prints: text that cannot steer a terminal, tables, and errors in one line."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table

from kernel.errors import KernelError, UsageError


def shown(text: str) -> str:
    """Return text from outside so that it cannot steer a terminal: control and format characters become escapes.

    >>> print(shown("on\\x1b[2J\\n"))
    on\\x1b[2J\\n
    """
    return "".join(c if c == " " or c.isprintable() else _escape(c) for c in text)


def _escape(c: str) -> str:
    return repr(c)[1:-1] if unicodedata.category(c) != "Zs" else " "


def print_table(table: Table) -> None:
    """Print a table on stdout; in a pipe, which has no width to wrap at, every row is one line."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=400)
    console.print(table)


@contextmanager
def failing(failure: int = 1) -> Iterator[None]:
    """Print an error of the kernel in one line on stderr and exit: with 2 for misuse, with `failure` for the rest."""
    try:
        yield
    except KernelError as error:
        print(f"error: {shown(str(error))}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, UsageError) else failure) from error
