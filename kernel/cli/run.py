"""`run`: plays cartridges with a model, the planner or chance, shows it, logs it. Knows no game's rules."""

from __future__ import annotations

import json
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cartridges.registry import load
from dispatch.log import LogWriter
from dispatch.players import ModelPlayer, PlannerPlayer, Player, RandomPlayer
from dispatch.records import Ending, Header, ModelRecord, RuleRecord
from dispatch.session import Session
from dispatch.turn import Turn, record
from dispatch.wire import Wire, form
from kernel.api import Kernel
from kernel.cli.common import (
    AsJson,
    Calibration,
    ContextSize,
    Model,
    RuleOption,
    Temperature,
    Threads,
    failing,
    load_kernel,
    make_rule,
)
from kernel.cli.frame import BESIDE, decision, shown
from kernel.contract import Cartridge
from kernel.errors import KernelError, LogError, UsageError, did_you_mean
from kernel.rule import Rule

PLAYERS = ("model", "planner", "random")

Names = Annotated[list[str], typer.Argument(help="Cartridges, see `list`.", metavar="CARTRIDGE...")]
Seed = Annotated[int, typer.Option(help="Everything random follows from it.")]
Pieces = Annotated[int | None, typer.Option(help="Stop after so many pieces (tetris).", min=1, show_default="no limit")]
Decisions = Annotated[int | None, typer.Option(help="Stop after so many decisions.", min=1, show_default="no limit")]
Who = Annotated[str, typer.Option("--player", help="model, planner or random.")]
Log = Annotated[Path | None, typer.Option(help="Write a session log to this new file.", show_default="no log")]
Headless = Annotated[bool, typer.Option("--headless", help="Show no board, only the summary.")]
Opcodes = Annotated[str | None, typer.Option(help="Opcode set, where a cartridge has several (tetris: place, moves).")]
WireForm = Annotated[str, typer.Option("--wire", help="Wire form: compact or tagged.")]
Weight = Annotated[float, typer.Option(help="How much the planner's own score counts; 0 lets the model decide.")]


def run_command(
    names: Names,
    model: Model = "smollm2",
    seed: Seed = 0,
    pieces: Pieces = None,
    decisions: Decisions = None,
    player: Who = "model",
    rule: RuleOption = None,
    calibration: Calibration = 1.0,
    temperature: Temperature = 1.0,
    planner_weight: Weight = 0.0,
    opcodes: Opcodes = None,
    wire: WireForm = "compact",
    log: Log = None,
    headless: Headless = False,
    as_json: AsJson = False,
    n_ctx: ContextSize = 2048,
    threads: Threads = None,
) -> None:
    """Play until the game ends, a limit is reached or Ctrl-C.

    Example: run tetris --pieces 20 --seed 7 --log game.jsonl
    """
    with failing(), ExitStack() as stack:
        if player not in PLAYERS:
            raise UsageError(f"no player {player!r}{did_you_mean(player, PLAYERS)}")
        options = {} if opcodes is None else {"opcodes": opcodes}
        cartridges = [load(name, **options) for name in names]
        chosen = make_rule(
            rule, calibration=calibration, temperature=temperature, seed=seed, planner_weight=planner_weight
        )
        spelled = Wire(cartridges, form(wire))
        limits = {name: most for name, most in (("pieces", pieces), ("decisions", decisions)) if most is not None}
        kernel = stack.enter_context(load_kernel(model, n_ctx=n_ctx, threads=threads)) if player == "model" else None
        who: Player
        if kernel is not None:
            who = ModelPlayer(kernel, spelled, cartridges, chosen)
        else:
            who = PlannerPlayer() if player == "planner" else RandomPlayer(seed)
        session = Session(cartridges, who, seed=seed, limits=limits)
        if log is not None:
            header = _header(session, model, kernel, chosen, wire)
            session.write_to(stack.enter_context(LogWriter(log, header)))
        with _interrupts():
            _play(session, cartridges, quiet=headless or as_json)
        summary = _summary(session, model, player, chosen, wire)
        if log is not None:
            session.end_log()
        if as_json:
            print(json.dumps(summary, ensure_ascii=False))
        else:
            _tell(summary, log)


def _play(session: Session, cartridges: list[Cartridge], *, quiet: bool) -> None:
    """Run the loop; whatever breaks into it becomes the session's ending."""
    console = Console()
    screen = _Screen(session, cartridges)
    try:
        if quiet:
            with Console(stderr=True).status("") as status:
                for turn in session.turns():
                    status.update(f"decision {turn.number}")
        elif console.is_terminal:
            with Live(console=console, auto_refresh=False) as live:
                live.update(screen.picture(console), refresh=True)
                for turn in session.turns():
                    screen.show(turn)
                    live.update(screen.picture(console), refresh=True)
        else:
            for turn in session.turns():
                print(_line(turn), flush=True)
            console.print(screen.board())
    except KeyboardInterrupt:
        session.close(Ending.INTERRUPTED, "stopped by a person")
    except KernelError as error:
        session.close(Ending.ERROR, str(error))
        if isinstance(error, LogError):
            raise
        session.end_log()
        raise


class _Screen:
    """The board, the options with the model's probabilities, and the counts."""

    def __init__(self, session: Session, cartridges: list[Cartridge]) -> None:
        self.session = session
        self.cartridges = cartridges
        self.last: Turn | None = None

    def show(self, turn: Turn) -> None:
        self.last = turn

    def board(self) -> RenderableType:
        return Group(*(c.view.render(self.session.engines[c.name]) for c in self.cartridges))

    def picture(self, console: Console) -> RenderableType:
        side: list[RenderableType] = []
        if self.last is not None:
            state = self.session.engines[self.last.cartridge].state_hash()
            side.append(decision(record(self.last, state, self.session.seconds)))
        rate = self.session.tally.decisions / max(self.session.seconds, 1e-9)
        side.append(Text(f"{self.session.tally.decisions} decisions, {rate:.1f} a second; Ctrl-C ends", style="dim"))
        if console.width < BESIDE:
            return Group(self.board(), *side)
        grid = Table.grid(padding=(0, 3))
        grid.add_row(self.board(), Group(*side))
        return grid


def _line(turn: Turn) -> str:
    """Return a decision as one line, for a pipe."""
    share = "" if turn.decision is None else f" ({100 * turn.decision.probability:.0f} %)"
    refused = " REFUSED" if turn.refused else ""
    return shown(f"{turn.number}. {turn.instruction!r}{share}{refused}: {turn.result}")


@contextmanager
def _interrupts() -> Iterator[None]:
    """Let a polite kill end the session as Ctrl-C does, so that the log is closed."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _header(session: Session, model: str, kernel: Kernel | None, rule: Rule, wire: str) -> Header:
    """Return the log's first line."""
    versions = {"cartridge-kernel": version("cartridge-kernel"), "python": platform.python_version()}
    if kernel is None:
        return Header(
            cartridges=session.records,
            seed=session.seed,
            player=session.player.name,
            limits=dict(session.limits) or None,
            versions=versions,
        )
    versions |= {name: version(name) for name in ("llama-cpp-python", "numpy")}
    parameters: dict[str, Any] = {"planner_weight": rule.planner_weight}
    if rule.name == "calibrated":
        parameters["calibration"] = rule.calibration
    if rule.name == "sample":
        parameters |= {"temperature": rule.temperature, "seed": rule.seed}
    return Header(
        cartridges=session.records,
        seed=session.seed,
        player=session.player.name,
        rule=RuleRecord(name=str(rule.name), parameters=parameters),
        wire=wire,
        model=ModelRecord(name=model, fingerprint=kernel.backend.fingerprint, tokenizer=kernel.vocabulary.fingerprint),
        limits=dict(session.limits) or None,
        versions=versions,
    )


def _summary(session: Session, model: str, player: str, rule: Rule, wire: str) -> dict[str, Any]:
    """Return what `--json` prints."""
    tally = session.tally
    summaries = {name: dict(engine.summary()) for name, engine in session.engines.items()}
    first = next(iter(summaries.values()))
    out: dict[str, Any] = {
        "cartridges": list(summaries),
        "player": player,
        "seed": session.seed,
        **({"model": model, "rule": str(rule.name), "wire": wire} if player == "model" else {}),
        **(first if len(summaries) == 1 else {"summaries": summaries}),
        "decisions": tally.decisions,
        "ending": str(session.ending),
        "detail": session.detail,
        "refused": tally.refused,
        "agreement": _share(tally.agreed, tally.with_offer),
        "agreement_first": _share(tally.agreed_first, tally.with_offer),
    }
    if player == "model":
        out |= {
            "passes": tally.passes,
            "passes_per_decision": _share(tally.passes, tally.decisions),
            "tokens_evaluated": tally.tokens_evaluated,
            "chosen_tokens": tally.chosen_tokens,
            "forced_tokens": tally.forced_tokens,
            "legal_mass": _share(tally.legal_mass, tally.decisions),
            "smallest_legal_mass": tally.smallest_legal_mass,
            "refused_removals": tally.refused_removals,
        }
    rest = session.seconds - (tally.model_ms + tally.planner_ms) / 1000
    out |= {
        "seconds": round(session.seconds, 3),
        "seconds_model": round(tally.model_ms / 1000, 3),
        "seconds_planner": round(tally.planner_ms / 1000, 3),
        "seconds_rest": round(rest, 3),
        "decisions_per_second": round(tally.decisions / max(session.seconds, 1e-9), 2),
    }
    return out


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _tell(summary: dict[str, Any], log: Path | None) -> None:
    """Print the summary for a person."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in summary.items():
        if value is not None and value != "":
            table.add_row(name.replace("_", " "), Text(_value(value)))
    Console().print(table)
    if log is not None:
        print(f"log: {log}; play it again with: replay {log}", file=sys.stderr)


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
