"""`mcp`: serves cartridges to an MCP client over stdin and stdout."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dispatch.cli import interrupts
from dispatch.cli.common import MOST_SEED, N_CTX, ContextSize, Model, RuleOption, Threads, extra, name_values
from dispatch.cli.opening import Settings, Wanted, begin
from dispatch.cli.output import failing, note
from dispatch.cli.streams import OutputError, writing
from dispatch.log.records import Ending
from dispatch.session.model_player import ModelPlayer
from dispatch.session.rules import make_rule

if TYPE_CHECKING:
    from dispatch.mcp.tools import Tools

CLOSE_SECONDS = 2.0
"""A call that is being carried out when a signal comes has so long to end."""

Names = Annotated[list[str], typer.Argument(help="Cartridges, see `list`.", metavar="CARTRIDGE...")]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.", min=0, max=MOST_SEED)]
Option = Annotated[list[str] | None, typer.Option(help="Option of a cartridge, name=value.", show_default=False)]
Log = Annotated[Path | None, typer.Option(help="Write a session log to this new file.", show_default="no log")]
Always = Annotated[bool, typer.Option("--always", help="Do what is likeliest, also where nothing seems to be meant.")]
Yes = Annotated[bool, typer.Option("--yes", help="Agree beforehand to what somebody has to agree to.")]


def mcp_command(
    names: Names,
    model: Model = "smollm2",
    rule: RuleOption = None,
    option: Option = None,
    seed: Seed = 0,
    log: Log = None,
    always: Always = False,
    yes: Yes = False,
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
) -> None:
    """Serve cartridges as an MCP server over stdin and stdout, for a client that starts this command.

    Its tools are `request`, which takes a request in plain words and carries out what it means, and `choose`, which
    chooses among texts. What somebody has to agree to is asked of the person behind the client, where it can ask.

    Example: mcp home
    """
    with failing(), ExitStack() as stack:
        with extra("mcp"):
            from dispatch.mcp.server import serve
            from dispatch.mcp.tools import Tools
        wanted = Wanted(
            names=tuple(names),
            options=name_values(option or (), "--option"),
            model=model,
            model_given=True,
            seed=seed,
            player="model",
            rule=make_rule(rule, seed=seed),
            rule_given=rule is not None,
            wire="compact",
            limits={},
            log=log,
            redactor=None,
            key=None,
            n_ctx=n_ctx,
            threads=threads,
            settings=Settings(),
            always=always,
        )
        if not isinstance(sys.stdout, io.TextIOWrapper):
            raise OutputError("stdout cannot be written: Bad file descriptor")
        try:
            session = begin(wanted, stack).session
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        stack.callback(session.end_live)
        session.yes = yes
        assert isinstance(session.player, ModelPlayer), "a model answers"
        tools = Tools(session, session.player.kernel)
        if sys.stdin is not None and sys.stdin.isatty():
            note("note: this speaks MCP on stdin and stdout, so a client should start it; Ctrl-D ends")
        _serve(lambda: serve(" ".join(session.cartridges), tools), tools)


def _serve(serve: Callable[[], None], tools: Tools) -> None:
    """Serve on a thread, so that a signal need not wait for a line on stdin; then end the session."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            serve()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="MCP client", daemon=True)
    thread.start()
    session = tools.session
    try:
        thread.join()
    except KeyboardInterrupt:
        if tools.lock.acquire(timeout=CLOSE_SECONDS):  # else its log reads as that of a killed session
            session.end(Ending.INTERRUPTED, "stopped by a person")
        session.end_live()
        os._exit(128 + (interrupts.came[-1] if interrupts.came else 2))  # nothing ends the wait for stdin
    session.end(Ending.LIMIT, "no more requests")
    if failed:
        with writing():
            raise _first(failed[0])


def _first(error: BaseException) -> BaseException:
    """Return the first error of a group, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
