"""`new`: writes a small working cartridge to start from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.output import failing, note, say
from dispatch.loading.registry import Registry
from dispatch.loading.scaffold import write

Name = Annotated[str, typer.Argument(help="Lower case letters, digits and _; also the name of the folder.")]
Into = Annotated[Path, typer.Option("--into", help="Folder to write it into.", file_okay=False, show_default="here")]


def new_command(name: Name, into: Into = Path()) -> None:
    """Write a complete small cartridge: opcodes, engine, planner, view, labelled cases, README, test.

    Prints the files that were written. A folder that is there already is left alone.

    Example: new chess --into mine
    """
    with failing():
        files = write(name, into)
    for file in files:
        say(str(file))
    for source in Registry().sources:
        if source.name == name:
            note(f"note: {source} has that name too; rename yours before you install it")
    folder = into / name if into.is_absolute() else f".{os.sep}{into / name}"
    kernel = "python -m kernel"
    note(f"try: {kernel} check {folder}; {kernel} run {folder} --player planner; python -m pytest {folder}")
