"""The command line: one typer app, with a module for each command."""

from __future__ import annotations

import typer

from dispatch.cli import interrupts, logs, models
from dispatch.cli.bundle import bundle_command
from dispatch.cli.call import call_command
from dispatch.cli.check import check_command
from dispatch.cli.choose import choose_command
from dispatch.cli.compile import compile_command
from dispatch.cli.entry import Commands
from dispatch.cli.evaluate import eval_command
from dispatch.cli.explain import explain_command
from dispatch.cli.export import export_command
from dispatch.cli.import_ import import_command
from dispatch.cli.inspect import inspect_command
from dispatch.cli.learn import learn_command
from dispatch.cli.list import list_command
from dispatch.cli.mcp import mcp_command
from dispatch.cli.new import new_command
from dispatch.cli.replay import replay_command
from dispatch.cli.run import run_command
from dispatch.cli.serve import serve_command
from dispatch.cli.streams import occupy
from dispatch.cli.write import write_command

app = typer.Typer(
    name="kernel",
    cls=Commands,
    help="Constrained choice for small local language models: it selects among options, it does not plan.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("choose")(choose_command)
app.command("call")(call_command)
app.command("write")(write_command)
app.command("serve")(serve_command)
app.command("bundle")(bundle_command)
app.command("mcp")(mcp_command)
app.command("inspect")(inspect_command)
app.command("compile")(compile_command)
app.command("list")(list_command)
app.command("new")(new_command)
app.command("check")(check_command)
app.command("import")(import_command)
app.command("learn")(learn_command)
app.command("eval")(eval_command)
app.command("replay")(replay_command)
app.command("explain")(explain_command)
app.command("export")(export_command)
app.command("stats")(logs.stats_command)
app.command("diff")(logs.diff_command)
app.add_typer(logs.app, name="log")
app.add_typer(models.app, name="models")


def main() -> None:
    """Run the command line as a process: its signals and its three streams are its own."""
    occupy()
    interrupts.catch()
    app()
