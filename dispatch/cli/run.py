"""`run`: plays a session of cartridges by a model, the planner or chance, shows it, and logs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.asking import requests, typed
from dispatch.cli.common import (
    MOST,
    MOST_SEED,
    N_CTX,
    ContextSize,
    Model,
    RuleOption,
    Threads,
    WireForm,
    name_values,
    of_model,
)
from dispatch.cli.interrupts import Interrupts
from dispatch.cli.opening import Opened, Settings, Wanted, begin, go_on
from dispatch.cli.output import failing, note, print_json, working
from dispatch.cli.person import AtTerminal
from dispatch.cli.replay import again
from dispatch.cli.stage import Stage
from dispatch.cli.streams import GONE, abandon
from dispatch.cli.summary import summary, tell
from dispatch.loading import registry
from dispatch.loading.error_line import why
from dispatch.loading.options import checked
from dispatch.log.key import Key
from dispatch.log.records import Ending
from dispatch.log.redact import Redactor
from dispatch.session.guides import waits_for_requests
from dispatch.session.players import PLAYERS
from dispatch.session.rules import make_rule
from dispatch.session.session import Session
from dispatch.session.steps import pursue
from dispatch.session.told import NOTHING_MEANT
from dispatch.session.turn import Turn
from kernel.errors import ContextError, KernelError, LogError, UsageError, did_you_mean

GOAL_STEPS = 50
"""A goal is given up after so many decisions, unless told otherwise."""

played, of_requests, of_log, of_output, rarely = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("What is played", "Requests", "Log", "Output", "Rarely needed")
)

Names = Annotated[list[str] | None, typer.Argument(help="Cartridges, see `list`.", metavar="CARTRIDGE...")]
Seed = Annotated[int, played(help="Everything random follows from it.", min=0, max=MOST_SEED)]
Opcodes = Annotated[str | None, played(help="Opcode set: tetris has place, moves.", show_default=False)]
Option = Annotated[list[str] | None, played("--option", help="Option of a cartridge, name=value.", show_default=False)]
Pieces = Annotated[
    int | None, played(help="Stop after so many pieces (tetris).", min=1, max=MOST, show_default="no limit")
]
Decisions = Annotated[
    int | None, played(help="Stop after so many decisions.", min=1, max=MOST, show_default="no limit")
]
RESUME = "Go on with the session of this log; cartridges that are not installed are named."
Resume = Annotated[Path | None, played("--resume", help=RESUME, show_default=False)]
Who = Annotated[str, of_model("--player", help="model, planner or random.")]
REQUESTS = "Read requests from this file, one a line; - is stdin."
Requests = Annotated[Path | None, of_requests("--requests", help=REQUESTS, show_default=False)]
GOAL = "Pursue it unattended, as the request of every decision."
Goal = Annotated[str | None, of_requests(help=GOAL, show_default=False)]
ALWAYS = "Do what is likeliest, also where nothing of this seems to be meant, or not now."
Always = Annotated[bool, of_requests("--always", help=ALWAYS)]
YES = "Agree beforehand to what somebody has to agree to."
Yes = Annotated[bool, of_requests("--yes", help=YES)]
Log = Annotated[Path | None, of_log(help="Write a session log to this new file.", show_default="no log")]
Redact = Annotated[bool, of_log("--redact", help="Log salted hashes in place of prompts and requests.")]
Headless = Annotated[bool, of_output("--headless", help="Show no board, only the summary.")]
Json = Annotated[bool, of_output("--json", help="Print one JSON document.")]
SETTING = f"A setting, name=value: {', '.join(field.name for field in fields(Settings))}."
Set = Annotated[list[str] | None, rarely("--set", help=SETTING, show_default=False)]

LOGGED = ("seed", "player", "rule", "opcodes", "option", "wire", "log", "redact", "always", "set max_tokens")
"""Parameters that stand in a log, so that --resume takes none of them."""


def run_command(
    context: typer.Context,
    names: Names = None,
    opcodes: Opcodes = None,
    option: Option = None,
    seed: Seed = 0,
    pieces: Pieces = None,
    decisions: Decisions = None,
    resume: Resume = None,
    player: Who = "model",
    model: Model = "smollm2",
    rule: RuleOption = None,
    wire: WireForm = "compact",
    n_ctx: ContextSize = N_CTX,
    threads: Threads = None,
    requests_from: Requests = None,
    goal: Goal = None,
    always: Always = False,
    yes: Yes = False,
    log: Log = None,
    redact: Redact = False,
    headless: Headless = False,
    as_json: Json = False,
    settings: Set = None,
) -> None:
    """Play until the game ends, a limit is reached or Ctrl-C.

    Several cartridges take requests, and so does one that has no planner: from the terminal, a pipe or --requests. A
    line "/join NAME" or "/leave NAME" lets a cartridge in or out, "/wrong COMMAND" corrects the last answer. A request
    that seems to mean nothing of this, two things alike or what is not legal now is not carried out. Ctrl-C ends after
    the decision that is being made, a second one at once; log and summary are written, and the exit code is 130 (of a
    kill 143). Misuse exits with 2, failure with 1, that of an action outside too.

    Example: run tetris --pieces 20 --seed 7 --log game.jsonl
    """
    with failing(), Interrupts() as interrupts, ExitStack() as stack:
        if goal is not None and (requests_from is not None or not goal.strip()):
            raise UsageError("run: --goal is one request, not blank, in place of --requests")
        if player not in PLAYERS:
            raise UsageError(f"run: there is no {player!r}{did_you_mean(player, PLAYERS)}")
        rare = name_values(settings or (), "--set")
        setting = Settings(**checked(Settings, rare, "run: --set"))
        if log is None and resume is None and (redact or setting.salt or setting.key):
            raise UsageError("run: --redact and --set salt and key need --log")
        if goal is not None and decisions is None:
            decisions = GOAL_STEPS
        limits = {name: most for name, most in (("pieces", pieces), ("decisions", decisions)) if most is not None}
        wanted = Wanted(
            names=tuple(names or ()),
            options={**({} if opcodes is None else {"opcodes": opcodes}), **name_values(option or (), "--option")},
            model=model,
            model_given=_given(context, "model"),
            seed=seed,
            player=player,
            rule=make_rule(rule, seed=seed),
            rule_given=rule is not None,
            wire=wire,
            limits=limits,
            log=log,
            redactor=Redactor(setting.salt) if redact or setting.salt else None,
            key=None if setting.key is None else Key.read(setting.key),
            n_ctx=n_ctx,
            threads=threads,
            settings=setting,
            always=always,
            asked=requests_from is not None or goal is not None,
        )
        try:
            if resume is None:
                opened = begin(wanted, stack)
            elif logged := [name for name in LOGGED if _given(context, name) or name.removeprefix("set ") in rare]:
                raise UsageError(f"run: --{logged[0]} stands in the log, so --resume takes none")
            else:
                opened = go_on(resume, wanted, stack)
        except KeyboardInterrupt:
            raise typer.Exit(interrupts.exit_code) from None
        session = opened.session
        stack.callback(session.end_live)
        session.yes = yes
        interrupts.stop(session)
        asked = requests_from is not None or (
            goal is None and session.player.name == "model" and waits_for_requests(list(session.cartridges.values()))
        )
        source: Iterator[str] | None = None
        named = list(wanted.names)
        if asked:
            source = requests(requests_from, interrupts, partial(_carry_out, session, interrupts, named))
        turns = partial(session.turns, source) if goal is None else partial(pursue, session, goal)
        stage = Stage(session, quiet=headless or as_json, asked=asked)
        forgiving = asked and typed(requests_from)
        if forgiving and not as_json:
            session.person = AtTerminal(interrupts)
        _play(session, stage, turns, interrupts, forgiving=forgiving)
        told = summary(session, opened.wanted)
        session.end_log()
        interrupts.over()
        if as_json:
            print_json(told | ({"held_back": stage.held} if stage.held else {}), indent=None)
        else:
            stage.end()
            tell(told)
        _tell_log(opened, named)
        if session.ending is Ending.INTERRUPTED:
            raise typer.Exit(interrupts.exit_code or GONE)
        if session.tally.failed or (session.ending is Ending.HELD and not _nothing_more(session)):
            raise typer.Exit(1)


def _nothing_more(session: Session) -> bool:
    """Return whether a goal ended since nothing more seems to be meant, behind steps that were made."""
    return session.detail == NOTHING_MEANT and session.tally.decisions > session.tally.held


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _play(
    session: Session,
    stage: Stage,
    turns: Callable[[], Iterator[Turn]],
    interrupts: Interrupts,
    *,
    forgiving: bool,
) -> None:
    """Run the loop; whatever breaks into it becomes the session's ending.

    A request that does not fit into the context is told to a person who typed it (forgiving) and ends other sessions.
    """
    try:
        if stage.asked:
            _prepare(session, interrupts)
        while True:
            try:
                stage.show(turns())
                return
            except ContextError as error:
                if not forgiving:
                    raise
                note(f"error: {error}")
    except KeyboardInterrupt:
        session.close(Ending.INTERRUPTED, "stopped by a person")
    except BrokenPipeError:
        session.close(Ending.INTERRUPTED, "nobody reads the output any more")
        abandon()
    except Exception as error:
        session.close(Ending.ERROR, why(error))
        if not isinstance(error, LogError):
            session.end_log()
        raise


def _carry_out(session: Session, interrupts: Interrupts, named: list[str], command: str, name: str) -> None:
    """Let a cartridge join or leave, or take a correction; what joins is noted as one that was named."""
    if command == "/wrong":
        said = session.correct(name)
        right = "" if said.answer is None else f", right is {said.answer}"
        note(f"noted: decision {said.decision} was wrong{right}")
        return
    if command == "/leave":
        session.leave(name)
        _prepare(session, interrupts)
        return
    cartridge = registry.load(name)
    try:
        session.join(cartridge)
    except KernelError:
        if cartridge.live is not None:
            cartridge.live.close()
        raise
    try:
        _prepare(session, interrupts)
    except ContextError as error:
        session.leave(cartridge.name)
        raise UsageError(f"{name!r} cannot join: {error}") from error
    named.append(name)


def _prepare(session: Session, interrupts: Interrupts) -> None:
    """Read what stays the same; as nothing is at stake, one Ctrl-C is enough."""
    with working("reading what stays the same"), interrupts.asking():
        session.prepare()


def _tell_log(opened: Opened, named: Sequence[str]) -> None:
    """Say where the log is, and what is not in it."""
    writer, wanted = opened.writer, opened.wanted
    if writer is None:
        return
    if writer.error is not None:
        note(f"note: {writer.error}")
    note(f"log: {writer.path}; play it again with: {again(writer.path, named, wanted.settings.key)}")
    if wanted.redactor is not None and not wanted.settings.salt:
        salt = wanted.redactor.salt
        note(f"salt {salt}: keep it to prove later what was dropped, or to go on; it is not in the log")
