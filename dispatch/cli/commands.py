"""The table of all commands, and a mapping that imports the module of a command when it is asked for.

A command needs few of the modules of all commands, which take half a second to import; `--help` needs every one.
"""

from __future__ import annotations

import importlib
import inspect
from collections import UserDict
from typing import Any

import typer

COMMANDS = {
    "run": "run.run_command",
    "choose": "choose.choose_command",
    "call": "call.call_command",
    "write": "write.write_command",
    "serve": "serve.serve_command",
    "bundle": "bundle.bundle_command",
    "mcp": "mcp.mcp_command",
    "inspect": "inspect.inspect_command",
    "compile": "compile.compile_command",
    "list": "list.list_command",
    "new": "new.new_command",
    "check": "check.check_command",
    "import": "import_.import_command",
    "learn": "learn.learn_command",
    "eval": "evaluate.eval_command",
    "replay": "replay.replay_command",
    "explain": "explain.explain_command",
    "export": "export.export_command",
    "stats": "logs.stats_command",
    "diff": "logs.diff_command",
    "log": "logs.app",
    "models": "models.app",
}
"""Where each command stands below `dispatch.cli`, in the order of the help: a function, or an app of commands."""


class Imported(UserDict[str, Any]):
    """Commands by name, each made when it is first asked for; until then its name stands here with None.

    >>> Imported()["new"].name
    'new'
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS))

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _command(name)
        return self.data[name]


def _command(name: str) -> Any:
    module, _, attribute = COMMANDS[name].rpartition(".")
    found = getattr(importlib.import_module(f"dispatch.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        group: Any = typer.main.get_group(found)
        group.name = name
        for command in group.commands.values():
            command.help = joined(command.help)
        return group
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name, help=joined(found.__doc__))(found)
    return typer.main.get_command(app)


def joined(told: str | None) -> str:
    """Return a docstring with each paragraph on one line, as the terminal is not as wide as the source.

    >>> joined("Plays.\\n\\n    Until the\\n    end.")
    'Plays.\\n\\nUntil the end.'
    """
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(told or "").split("\n\n"))
