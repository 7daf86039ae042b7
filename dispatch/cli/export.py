"""`export`: a log as one HTML file with the page in it, to look at or to pass on without a server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import MOST
from dispatch.cli.output import failing, note, say, working, written
from dispatch.cli.replay import Specs
from dispatch.inspector.exported import html
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.session.recorded import make_cartridge
from kernel.errors import UsageError

DECISIONS = 1000
WAIT_SECONDS = 60.0

LogFile = typer.Argument(exists=True, dir_okay=False, show_default=False, metavar="LOG")
Html = Annotated[bool, typer.Option("--html", help="Write one HTML file that opens from disk.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="The file.", show_default="named as the log, .html behind it")
]
Count = Annotated[int, typer.Option("--decisions", help="So many decisions, the first ones.", min=1, max=MOST)]
NoPrompts = Annotated[bool, typer.Option("--no-prompts", help="Leave out what the model read and what people asked.")]


def export_command(
    log: Annotated[Path, LogFile],
    as_html: Html = False,
    target: Output = None,
    decisions: Count = DECISIONS,
    no_prompts: NoPrompts = False,
    cartridge: Specs = None,
) -> None:
    """Write a log with the inspector's page into one file, which needs neither a server nor a network.

    Example: export --html game.jsonl -o game.html
    """
    with failing():
        if not as_html:
            raise UsageError("export: say --html; rows of a log are written by `stats --format csv` or parquet")
        path = target or Path(f"{log.name}.html")
        if target is None and path.exists():
            raise UsageError(f"export: {str(path)!r} is there already; name a file with --output")
        if path.exists() and path.samefile(log):
            raise UsageError(f"export: {str(path)!r} is the log itself")
        vocabularies = Vocabularies()
        with working("reading the log"):
            opened = OpenedLog(log.name, log, partial(make_cartridge, specs=cartridge or ()), vocabularies, until=0)
            try:
                vocabularies.of(opened.kept.index.header, WAIT_SECONDS)
                total = opened.kept.index.columns.count
                text, count = html(opened, decisions, prompts=not no_prompts)
                redacted = opened.kept.index.header.redacted is not None
            finally:
                opened.close()
        with written(path) as out:
            out.write(text)
        say(f"{count} of {total} decisions written to {path}")
        if not no_prompts and not redacted:
            note(f"note: {path} holds prompts and what people asked; --no-prompts leaves them out")
