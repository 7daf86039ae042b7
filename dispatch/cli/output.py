"""How every command prints: foreign text that cannot steer a terminal, tables, JSON, and errors in one line."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernel.errors import KernelError, UsageError
from kernel.shown import shown

__all__ = ["failing", "note", "number", "print_json", "print_rows", "print_table", "rows_of", "say", "shown"]


def say(text: str) -> None:
    """Print one line on stdout."""
    print(shown(text))


def note(text: str) -> None:
    """Print one line on stderr."""
    print(shown(text), file=sys.stderr)


def print_json(value: object, indent: int | None = 2) -> None:
    """Print one JSON document on stdout; records become objects, and numbers that are not finite null."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=indent))


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
        note(f"error: {error}")
        raise typer.Exit(2 if isinstance(error, UsageError) else failure) from error
