"""Opens the session that `run` plays, a new one or that of a log, with its cartridges, its player and its log."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import PositiveInt

from dispatch.cli.common import load_kernel
from dispatch.cli.replay import make_cartridge
from dispatch.loading.registry import load_all
from dispatch.log.objects import ModelRecord, RuleRecord
from dispatch.log.reader import LogReader
from dispatch.log.records import Header
from dispatch.log.redact import Redactor
from dispatch.log.resume import resume
from dispatch.log.writer import LogWriter, OnError
from dispatch.session.decide import logged_rule
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import PlannerPlayer, Player, RandomPlayer
from dispatch.session.session import Session
from dispatch.wire.wire import Wire, form
from kernel.api import Kernel
from kernel.choose.rule import Rule
from kernel.contract import Cartridge
from kernel.errors import LogError, UsageError
from kernel.write.writer import TOKENS

PLAYERS = ("model", "planner", "random")


@dataclass(frozen=True)
class Settings:
    """What few need to change about a session.

    Attributes:
        compiled: a file that `compile` wrote, from which the opcodes are mapped.
        ledger: log the strongest tokens of every choosing step.
        max_tokens: budget of an instruction with open arguments.
        on_log_error: when the disk is full, `stop`, or `continue` without a log.
        salt: of --redact, 16 bytes or more in hexadecimal; a new one is drawn without.
    """

    compiled: Path | None = None
    ledger: bool = True
    max_tokens: PositiveInt = TOKENS
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
    n_ctx: int
    threads: int | None
    settings: Settings


@dataclass(frozen=True)
class Opened:
    """A session that is ready, and what its summary says of it."""

    session: Session
    model: str
    rule: Rule
    wire: str
    writer: LogWriter | None


def begin(wanted: Wanted, stack: ExitStack) -> Opened:
    """Open a new session; what has to be closed goes onto the stack."""
    cartridges = _cartridges(wanted)
    wire = Wire(cartridges, form(wanted.wire))
    kernel = None
    if wanted.player == "model":
        kernel = _kernel(wanted.model, wanted, stack)
    elif wanted.settings.compiled is not None:
        raise UsageError(f"run: --set compiled is for a model; {wanted.player!r} needs no tokens")
    ledger = wanted.settings.ledger and wanted.log is not None  # nobody else reads it
    who = _player(wanted.player, kernel, cartridges, wire, wanted.rule, wanted.seed, ledger, wanted.settings.max_tokens)
    session = Session(cartridges, who, seed=wanted.seed, limits=wanted.limits)
    writer = None
    if wanted.log is not None:
        head = header(session, wanted.model, kernel, wanted.rule, wanted.wire, wanted.settings.max_tokens)
        writer = stack.enter_context(
            LogWriter(wanted.log, head, redact=wanted.redactor, on_error=wanted.settings.on_log_error)
        )
        session.write_to(writer)
    return Opened(session, wanted.model, wanted.rule, wanted.wire, writer)


def go_on(path: Path, wanted: Wanted, stack: ExitStack) -> Opened:
    """Open the session of a log where it was broken off; the log says how it is played, and the model must be its own.

    Raises LogError for another model and for what `dispatch.log.resume` refuses.
    """
    with LogReader(path) as reader:
        head = reader.header
    kernel, model = None, wanted.model
    if head.model is not None:
        model = wanted.model if wanted.model_given else head.model.name
        kernel = _kernel(model, wanted, stack)
        if head.model.fingerprint not in (None, kernel.backend.fingerprint):
            raise LogError(
                f"resume: {str(path)!r} was played with {head.model.name!r}, {head.model.fingerprint}; {model!r} is "
                f"another model, {kernel.backend.fingerprint}"
            )
    elif wanted.model_given or wanted.settings.compiled is not None or head.player not in PLAYERS:
        raise UsageError(f"resume: {head.player!r} played this log, no model")
    found = resume(
        path, partial(make_cartridge, specs=wanted.names), redact=wanted.redactor, on_error=wanted.settings.on_log_error
    )
    stack.enter_context(found.writer)
    rule, wire = logged_rule(head) or wanted.rule, head.wire or wanted.wire
    cartridges = list(found.cartridges.values())
    speller = Wire(cartridges, form(wire))
    budget = head.max_tokens or wanted.settings.max_tokens
    who = _player(head.player, kernel, cartridges, speller, rule, head.seed, wanted.settings.ledger, budget)
    session = Session.resume(found, who, limits={**(head.limits or {}), **wanted.limits})
    return Opened(session, model, rule, wire, found.writer)


def header(
    session: Session, model: str, kernel: Kernel | None, rule: Rule, wire: str, max_tokens: int = TOKENS
) -> Header:
    """Return the first line of a session's log."""
    versions = {"cartridge-kernel": version("cartridge-kernel"), "python": platform.python_version()}
    known: dict[str, Any] = {}
    if kernel is not None:
        versions |= {name: version(name) for name in ("llama-cpp-python", "numpy")}
        parameters: dict[str, Any] = {"planner_weight": rule.planner_weight}
        if rule.name == "calibrated":
            parameters["calibration"] = rule.calibration
        if rule.name == "sample":
            parameters |= {"temperature": rule.temperature, "seed": rule.seed}
        known = {
            "rule": RuleRecord(name=str(rule.name), parameters=parameters),
            "wire": wire,
            "max_tokens": max_tokens,
            "model": ModelRecord(
                name=model, fingerprint=kernel.backend.fingerprint, tokenizer=kernel.vocabulary.fingerprint
            ),
        }
    return Header(
        cartridges=session.records,
        seed=session.seed,
        player=session.player.name,
        limits=dict(session.limits) or None,
        versions=versions,
        **known,
    )


def _kernel(model: str, wanted: Wanted, stack: ExitStack) -> Kernel:
    kernel = stack.enter_context(load_kernel(model, n_ctx=wanted.n_ctx, threads=wanted.threads))
    if wanted.settings.compiled is not None:
        kernel.take(wanted.settings.compiled)
    return kernel


def _cartridges(wanted: Wanted) -> list[Cartridge]:
    names = wanted.names
    if not names:
        raise UsageError("run: name a cartridge, such as 'tetris'; `list` shows what there is")
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"run: cartridge {twice[0]!r} is named twice")
    return load_all(names, **wanted.options)


def _player(
    name: str,
    kernel: Kernel | None,
    cartridges: Sequence[Cartridge],
    wire: Wire,
    rule: Rule,
    seed: int,
    ledger: bool,
    max_tokens: int,
) -> Player:
    if kernel is not None:
        return ModelPlayer(kernel, wire, cartridges, rule, ledger=ledger, max_tokens=max_tokens)
    return PlannerPlayer() if name == "planner" else RandomPlayer(seed)
