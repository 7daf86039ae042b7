"""The command line: one typer app, with a module for each command, which is imported when the command is given."""

from __future__ import annotations

import typer

from dispatch.cli import interrupts
from dispatch.cli.entry import Commands
from dispatch.cli.streams import occupy

app = typer.Typer(
    name="kernel",
    cls=Commands,
    help="Constrained choice for small local language models: it selects among options, it does not plan.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _app() -> None:
    """Tell typer that this is an app of several commands, although none is registered: `Commands` has them."""


def main() -> None:
    """Run the command line as a process: its signals and its three streams are its own."""
    occupy()
    interrupts.catch()
    app()
