"""Opens the session that `run` plays, a new one or that of a log, with its cartridges, its player and its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dispatch.cli.common import MOST_TOKENS
from dispatch.cli.model import load_kernel
from dispatch.cli.output import working
from dispatch.loading.registry import load_all
from dispatch.log.key import Key
from dispatch.log.reader import LogReader
from dispatch.log.redact import Redactor
from dispatch.log.resume import resume
from dispatch.log.writer import LogWriter, OnError
from dispatch.session.decide import logged_rule
from dispatch.session.guides import waits_for_requests
from dispatch.session.header import By, header
from dispatch.session.judging import judge_for, logged_judge
from dispatch.session.learned import default_rule
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import PLAYERS, Player, unaided
from dispatch.session.recorded import resumed_cartridge
from dispatch.session.rules import rule_for
from dispatch.session.session import Session
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import LogError, UsageError
from kernel.write.writer import TOKENS


@dataclass(frozen=True)
class Settings:
    """What few need to change about a session.

    Attributes:
        compiled: a file that `compile` wrote, from which the opcodes are mapped.
        key: a secret file that seals every line of the log.
        ledger: log the strongest tokens of every choosing step.
        max_tokens: budget of an instruction with open arguments.
        on_log_error: when the disk is full, `stop`, or `continue` without a log.
        salt: of --redact, 16 bytes or more in hexadecimal; a new one is drawn without.
    """

    compiled: Path | None = None
    key: Path | None = None
    ledger: bool = True
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = TOKENS
    on_log_error: OnError = "stop"
    salt: str = ""


@dataclass(frozen=True)
class Wanted:
    """What was typed."""

    names: tuple[str, ...]
    options: Mapping[str, str]
    model: str
    model_given: bool
    seed: int
    player: str
    rule: Rule
    wire: str
    limits: Mapping[str, int]
    log: Path | None
    redactor: Redactor | None
    key: Key | None
    n_ctx: int
    threads: int | None
    settings: Settings
    always: bool = False
    rule_given: bool = False
    asked: bool = False
    """Whether requests are named, or a goal."""


@dataclass(frozen=True)
class Opened:
    """A session that is ready, and how it is played: as it was typed, or as its log says."""

    session: Session
    wanted: Wanted
    writer: LogWriter | None


def begin(wanted: Wanted, stack: ExitStack) -> Opened:
    """Open a new session; what has to be closed goes onto the stack."""
    names, settings = wanted.names, wanted.settings
    if not names:
        raise UsageError("run: name a cartridge, such as 'tetris'; `list` shows what there is")
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"run: cartridge {twice[0]!r} is named twice")
    with working("making the cartridges"):  # a server of tools takes its time
        cartridges = load_all(names, **wanted.options)
    form(wanted.wire)  # a wrong one is told before a model is loaded
    kernel = None
    if wanted.player == "model":
        kernel = _kernel(wanted, stack)
    elif settings.compiled is not None:
        raise UsageError(f"run: --set compiled is for a model; {wanted.player!r} needs no tokens")
    wanted = replace(wanted, settings=replace(settings, ledger=settings.ledger and wanted.log is not None))
    by_requests = not wanted.rule_given and (wanted.asked or waits_for_requests(cartridges))
    if kernel is not None and (by_requests or wanted.rule.name is RuleName.LEARNED):
        wanted = _as_learned(wanted, kernel, cartridges)
    wanted = replace(wanted, rule=rule_for(wanted.rule, cartridges))
    player = _player(wanted, kernel, cartridges)
    if isinstance(player, ModelPlayer) and not wanted.always:
        player.judge = judge_for(player.kernel, cartridges, wanted.rule)
    session = Session(cartridges, player, seed=wanted.seed, limits=wanted.limits)
    writer = None
    if wanted.log is not None:
        model = None
        if isinstance(player, ModelPlayer):
            learned = player.kernel.learned_of(player.opcodes) if wanted.rule.name is RuleName.LEARNED else None
            model = By(player.kernel, wanted.model, wanted.rule, wanted.wire, settings.max_tokens, learned)
        head = header(session, model)
        writer = stack.enter_context(
            LogWriter(wanted.log, head, redact=wanted.redactor, on_error=settings.on_log_error, key=wanted.key)
        )
        session.write_to(writer)
    return Opened(session, wanted, writer)


def go_on(path: Path, wanted: Wanted, stack: ExitStack) -> Opened:
    """Open the session of a log where it was broken off; the log says how it is played, and the model must be its own.

    Raises LogError for another model and for what `dispatch.log.resume` refuses.
    """
    with LogReader(path) as reader:
        head = reader.header
    settings = replace(wanted.settings, max_tokens=head.max_tokens or wanted.settings.max_tokens)
    wanted = replace(
        wanted,
        player=head.player,
        rule=logged_rule(head) or wanted.rule,
        wire=head.wire or wanted.wire,
        seed=head.seed,
        settings=settings,
    )
    kernel = None
    if head.model is not None:
        wanted = replace(wanted, model=wanted.model if wanted.model_given else head.model.name)
        kernel = _kernel(wanted, stack)
        if head.model.fingerprint not in (None, kernel.backend.fingerprint):
            raise LogError(
                f"resume: {str(path)!r} was played with {head.model.name!r}, {head.model.fingerprint}; "
                f"{wanted.model!r} is another model, {kernel.backend.fingerprint}"
            )
    elif wanted.model_given or settings.compiled is not None or head.player not in PLAYERS:
        raise UsageError(f"resume: {head.player!r} played this log, no model")
    make = partial(resumed_cartridge, specs=wanted.names)
    found = resume(path, make, redact=wanted.redactor, on_error=settings.on_log_error, key=wanted.key)
    stack.enter_context(found.writer)
    player = _player(wanted, kernel, list(found.cartridges.values()))
    if isinstance(player, ModelPlayer):
        player.judge = logged_judge(head)
    session = Session.resume(found, player, limits={**(head.limits or {}), **wanted.limits})
    return Opened(session, wanted, found.writer)


def _as_learned(wanted: Wanted, kernel: Kernel, cartridges: Sequence[Cartridge]) -> Wanted:
    """Return what is wanted under the rule `learned`, where something was learned of requests to these cartridges.

    Raises UsageError where that rule was asked for and nothing was.
    """
    if (learned := default_rule(kernel, cartridges, wanted.wire)) is not None:
        return replace(wanted, rule=replace(wanted.rule, name=learned.name))
    if wanted.rule.name is RuleName.LEARNED:
        names = ", ".join(cartridge.name for cartridge in cartridges)
        raise UsageError(
            f"run: nothing was learned of requests to {names} with {wanted.model!r} and --wire compact; see `learn`"
        )
    return wanted


def _kernel(wanted: Wanted, stack: ExitStack) -> Kernel:
    kernel = stack.enter_context(load_kernel(wanted.model, n_ctx=wanted.n_ctx, threads=wanted.threads))
    if wanted.settings.compiled is not None:
        kernel.take(wanted.settings.compiled)
    return kernel


def _player(wanted: Wanted, kernel: Kernel | None, cartridges: Sequence[Cartridge]) -> Player:
    if (plain := unaided(wanted.player, wanted.seed)) is not None:
        return plain
    if kernel is None:
        raise LogError(f"resume: the log names no model, but {wanted.player!r} played it")
    wire, settings = Wire(cartridges, form(wanted.wire)), wanted.settings
    return ModelPlayer(kernel, wire, cartridges, wanted.rule, ledger=settings.ledger, max_tokens=settings.max_tokens)
