"""`models list` shows the models that have a name and those that are here; `models pull` fetches one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from dispatch.cli.common import AsJson, progress_bar
from dispatch.cli.output import failing, print_table
from kernel.models import catalogue as models
from kernel.models import hub

app = typer.Typer(help="List models and pull them.", no_args_is_help=False)


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
    print_table(table)
    print(
        f"default: {models.DEFAULT}; fetch one: models pull NAME; a path or hf:OWNER/REPO/FILE.gguf is a model too",
        file=sys.stderr,
    )


@app.command("pull")
def pull(name: Annotated[str, typer.Argument(help="A name from the list, or hf:OWNER/REPO/FILE.gguf.")]) -> None:
    """Fetch a model and verify its sha256; one that is here already is only verified."""
    try:
        with failing(), progress_bar(name) as progress:
            path = models.pull(name, progress)
    except KeyboardInterrupt:
        print("interrupted; nothing was kept", file=sys.stderr)
        raise typer.Exit(130) from None
    print(path)


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
