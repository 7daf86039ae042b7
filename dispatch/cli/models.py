"""`models list` and `models pull`: what there is, what is here, and a progress bar. Knows no cartridge."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.table import Table

from kernel.errors import KernelError, UsageError
from kernel.models import catalogue as models
from kernel.models import fetch, hub

app = typer.Typer(help="List models and pull them.", no_args_is_help=False)
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
PIPE_SECONDS = 5.0  # between two lines of progress where no terminal is


@app.callback(invoke_without_command=True)
def default(context: typer.Context, as_json: AsJson = False) -> None:
    """List models and pull them."""
    if context.invoked_subcommand is None:
        list_models(as_json)


@app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the models that have a name, and `hf:` files that are here already."""
    rows = list(_rows())
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("name", "what", "licence", "size", "here", box=None, pad_edge=False)
    for row in rows:
        size = f"{row['size'] / 1e6:.0f} MB"
        where = str(row["path"]) if row["pulled"] else "no"
        table.add_row(row["name"], row["summary"], row["licence"] or "see the hub", size, where)
    console = Console()
    if not console.is_terminal:  # a pipe has no width to wrap at
        console = Console(width=400)
    console.print(table)
    print(
        f"default: {models.DEFAULT}; fetch one: models pull NAME; a path or hf:OWNER/REPO/FILE.gguf is a model too",
        file=sys.stderr,
    )


@app.command("pull")
def pull(name: Annotated[str, typer.Argument(help="A name from the list, or hf:OWNER/REPO/FILE.gguf.")]) -> None:
    """Fetch a model and verify its sha256; one that is here already is only verified."""
    try:
        with progress_bar(name) as progress:
            path = models.pull(name, progress)
    except KernelError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from error
    except KeyboardInterrupt:
        print("interrupted; nothing was kept", file=sys.stderr)
        raise typer.Exit(130) from None
    print(path)


@contextmanager
def progress_bar(name: str) -> Iterator[fetch.Progress]:
    """Give what `models.pull` and `models.resolve` report to: a bar in a terminal, a line now and then in a pipe.

    Nothing appears when nothing is downloaded.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as bar:
        task: TaskID | None = None

        def report(what: str, done: int, total: int | None) -> None:
            nonlocal task
            if task is None:
                task = bar.add_task(name, total=total)
            bar.update(task, description=f"{name}: {what}", completed=done, total=total)

        yield report


def _lines(name: str) -> fetch.Progress:
    shown = float("-inf")

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < PIPE_SECONDS:
            return
        shown = now
        amount = f" {done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else ""
        print(f"{name}: {what}{amount}", file=sys.stderr, flush=True)

    return report


def _rows() -> Iterator[dict[str, Any]]:
    for spec in models.catalogue().values():
        yield _row(spec.name, spec.summary, spec.licence, spec.size, spec.pulled, spec.path)
    for name, path in hub.listed():
        yield _row(name, "from the hub", None, path.stat().st_size, True, path)


def _row(name: str, summary: str, licence: str | None, size: int, pulled: bool, path: Path) -> dict[str, Any]:
    return {
        "name": name,
        "summary": summary,
        "licence": licence,
        "size": size,
        "pulled": pulled,
        "path": str(path),
        "default": name == models.DEFAULT,
    }
