"""How every command prints: foreign text that cannot steer a terminal, tables, JSON, and errors in one line."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dispatch.cli.streams import OutputError, abandon, is_utf8, writing
from kernel.errors import KernelError, UsageError
from kernel.shown import shown

__all__ = [
    "console",
    "failing",
    "json_text",
    "note",
    "number",
    "print_json",
    "print_rows",
    "print_table",
    "rows_of",
    "say",
    "shown",
    "working",
    "written",
]


LONGEST = 4000
"""A line on stderr is cut behind so many characters."""


def say(text: str) -> None:
    """Print one line on stdout."""
    with writing():
        print(shown(text))


def note(text: str) -> None:
    """Print one line on stderr; nothing happens where that takes none."""
    try:
        print(shown(text if len(text) <= LONGEST else f"{text[:LONGEST]} …"), file=sys.stderr, flush=True)
    except OSError:  # what stays in the buffer would fail once more when Python ends, with an exit code of its own
        abandon(sys.stderr)


def print_json(value: object, indent: int | None = 2) -> None:
    """Print one JSON document on stdout."""
    with writing():
        print(json_text(value, indent, ascii_only=not is_utf8()))


def json_text(value: object, indent: int | None = 2, *, ascii_only: bool = False) -> str:
    """Return a value as JSON, with every character that could steer a terminal as an escape.

    Records become objects, and numbers that are not finite null.

    >>> print(json_text({"said": "\x9b2Jé"}, indent=None))
    {"said": "\\u009b2Jé"}
    """
    text = json.dumps(_plain(value), ensure_ascii=ascii_only, indent=indent)
    return re.sub(r"[^ -~\n]", lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)


@contextmanager
def written(path: Path) -> Iterator[TextIO]:
    """Give a file to write text into; raises UsageError where that cannot be."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return _plain(value.model_dump(mode="json"))
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if not math.isfinite(value):
            return None
    return value


def number(value: float | None, form: str = "{:.2f}") -> Text:
    """Return a cell with a number, empty where there is none."""
    return Text("" if value is None or math.isnan(value) else form.format(value), justify="right")


def rows_of(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], more: int = 0, style: str = "") -> Table:
    """Return a table without lines; cells that are plain text are foreign, and `more` rows are only counted.

    Without heads there are none.
    """
    table = Table(*heads, box=None, show_header=bool(heads), pad_edge=False, style=style, header_style=style or None)
    for row in rows:
        table.add_row(*(Text(shown(cell)) if isinstance(cell, str) else cell for cell in row))
    if more > 0:
        table.add_row(Text(f"and {more} more", "dim"))
    return table


def print_rows(heads: Sequence[str], rows: Iterable[Sequence[str | Text]], more: int = 0) -> None:
    """Print such a table."""
    print_table(rows_of(heads, rows, more))


def print_table(table: Table) -> None:
    """Print a table on stdout; in a pipe, which has no width to wrap at, every row is one line."""
    out = console()
    with writing():
        (out if out.is_terminal else console(width=400)).print(table)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that takes all text as it is: no markup, no emoji codes, no colours of its own."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show in a terminal what goes on, and give what changes that text; a pipe sees nothing."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda told: None
        return
    with out.status(shown(what)) as status:
        yield lambda told: status.update(shown(told))


@contextmanager
def failing(failure: int = 1) -> Iterator[None]:
    """Print an error of the kernel in one line on stderr and exit: with 2 for misuse, with `failure` for the rest."""
    try:
        yield
    except KernelError as error:
        if isinstance(error, OutputError):
            abandon()
        note(f"error: {error}")
        raise typer.Exit(2 if isinstance(error, UsageError) else failure) from error
