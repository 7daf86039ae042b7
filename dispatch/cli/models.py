"""`models list` shows the models that have a name and those that are here; `models pull` fetches one.

`models browser` fetches what the page needs to run a model in the visitor's tab.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dispatch.cli.common import AsJson
from dispatch.cli.model import progress_bar
from dispatch.cli.output import failing, note, print_json, print_rows, say
from kernel.models import browser as parts
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
        print_json(rows)
        return
    shown = [
        (
            row["name"],
            row["summary"],
            row["licence"] or "see the hub",
            f"{row['size'] / 1e6:.0f} MB",
            row["path"] if row["pulled"] else "no",
        )
        for row in rows
    ]
    print_rows(["name", "what", "licence", "size", "here"], shown)
    note(f"default: {models.DEFAULT}; fetch one: models pull NAME; a path or hf:OWNER/REPO/FILE.gguf is a model too")


@app.command("pull")
def pull(name: Annotated[str, typer.Argument(help="A name from the list, or hf:OWNER/REPO/FILE.gguf.")]) -> None:
    """Fetch a model and verify its sha256; one that is here already is only verified."""
    try:
        with failing(), progress_bar(name) as progress:
            path = models.pull(name, progress)
    except KeyboardInterrupt:
        note("interrupted; nothing was kept")
        raise typer.Exit(130) from None
    say(str(path))


@app.command("browser")
def browser(
    part: Annotated[list[str] | None, typer.Argument(help="Parts to fetch; all of them unless named.")] = None,
    only_list: Annotated[bool, typer.Option("--list", help="Say what would be fetched; fetch nothing.")] = False,
) -> None:
    """Fetch what the page needs to run a model in the tab, each file checked against its hash."""
    if only_list:
        with failing():
            rows = [(name, *_packages(name)) for name in part or parts.PARTS]
        print_rows(["part", "packages", "download", "here"], rows)
        return
    try:
        with failing(), progress_bar("browser") as progress:
            folders = [parts.pull(name, progress) for name in part or parts.PARTS]
    except KeyboardInterrupt:
        note("interrupted; nothing was kept")
        raise typer.Exit(130) from None
    for folder in folders:
        say(str(folder))


def _packages(part: str) -> tuple[str, str, str]:
    """Return what a part is made of, how much that is to download, and where it lies."""
    where = parts.folder(part)
    archives = parts.PARTS[part]
    names, size = ", ".join(map(str, archives)), sum(archive.size for archive in archives)
    return names, f"{size / 1e6:.0f} MB", str(where) if where.is_dir() else "no"


def _rows() -> Iterator[dict[str, Any]]:
    named = [(s.name, s.summary, s.licence, s.size, s.pulled, s.path) for s in models.catalogue().values()]
    found = [(name, "from the hub", None, path.stat().st_size, True, path) for name, path in hub.listed()]
    for name, summary, licence, size, pulled, path in [*named, *found]:
        yield {
            "name": name,
            "summary": summary,
            "licence": licence,
            "size": size,
            "pulled": pulled,
            "path": str(path),
            "default": name == models.DEFAULT,
        }
