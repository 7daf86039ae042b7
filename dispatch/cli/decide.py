"""`replay --decide`: makes the decisions of a log again, by the same model or another one, and tells what differs."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import typer

from dispatch.cli.common import N_CTX
from dispatch.cli.model import load_kernel
from dispatch.cli.output import print_json, print_rows, say, working
from dispatch.log.key import Key
from dispatch.log.reader import LogReader
from dispatch.log.replay import MakeCartridge
from dispatch.session.decide import DecideReport, Divergence, changes, decide_again, logged_rule
from dispatch.session.judging import logged_judge
from dispatch.session.model_player import ModelPlayer
from dispatch.session.rules import make_rule
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.choose.rule import RuleName
from kernel.errors import UsageError


def decide_file(
    path: Path,
    make: MakeCartridge,
    model: str | None,
    rule: str | None,
    *,
    tolerance: float,
    last: int | None,
    threads: int | None,
    n_ctx: int | None,
    key: Key | None,
    as_json: bool,
) -> NoReturn:
    """Decide a log again, print what was found and exit."""
    with LogReader(path) as reader:
        header = reader.header
    if model is None and header.model is None:
        raise UsageError(f"replay: the {header.player} played this log; name the model that decides with --model")
    name = model or (header.model.name if header.model else "")
    chosen = make_rule(rule) if rule else logged_rule(header) or make_rule(None)
    cartridges = [make(record) for record in header.cartridges]
    with load_kernel(name, n_ctx=n_ctx or N_CTX, threads=threads) as kernel:
        player = ModelPlayer(kernel, Wire(cartridges, form(header.wire or "compact")), cartridges, chosen)
        player.judge = logged_judge(header)
        versions = {"llama-cpp-python": version("llama-cpp-python")}
        if chosen.name is RuleName.LEARNED and (learned := kernel.learned_of(player.opcodes)) is not None:
            versions["learned"] = learned.fingerprint
        changed = changes(header, kernel, name, chosen, versions)
        with working("deciding again"):
            found = decide_again(path, make, player, changed, tolerance=tolerance, last=last, key=key)
    if as_json:
        print_json(found)
    else:
        _tell(found)
    raise typer.Exit(0 if found.good else 1)


def _tell(found: DecideReport) -> None:
    """Print a comparison for a person."""
    total = max(found.decisions, 1)
    rows = [("changed", change) for change in found.changed]
    rows += [
        ("decisions", str(found.decisions)),
        ("same choice", f"{found.agree} ({100 * found.agree / total:.1f} %)"),
        (f"other choice, behind by less than {found.tolerance:g}", str(found.within)),
        ("other choice, further behind", str(found.beyond)),
    ]
    if found.planner_first_then is not None and found.planner_first_now is not None:
        shares = f"{100 * found.planner_first_then:.1f} % then, {100 * found.planner_first_now:.1f} % now"
        rows.append(("takes the planner's best option", shares))
    if found.planner_gain is not None:
        rows.append(
            ("planner prefers the choice", f"{found.planner_prefers_then} then, {found.planner_prefers_now} now")
        )
        rows.append(("planner's score, now less then", f"{found.planner_gain:+.3f} on average where they differ"))
    if not found.changed:
        rows.append(("largest shift of a margin", f"{found.largest_shift:.4f}"))
        rows.append(("same choice, its margin moved further", str(found.moved)))
        rows.append(("ended otherwise", str(found.ended_otherwise)))
    if found.rewritten:
        rows.append(("prompts written again", str(found.rewritten)))
    if found.prompts_changed:
        rows.append(("prompts that would differ today", str(found.prompts_changed)))
    rows += [("first other choice", _told(found.first))] if found.first else []
    if found.first_beyond and found.first_beyond != found.first:
        rows.append(("first above the tolerance", _told(found.first_beyond)))
    if (ended := found.first_ended) is not None:
        rows.append(("first that ended otherwise", f"decision {ended.n}: {ended.then} then, {ended.now} now"))
    print_rows([], rows)
    say(found.replay.sentence)


def _told(found: Divergence) -> str:
    then = "" if found.margin_then is None else f" (margin {found.margin_then:.3f})"
    return f"decision {found.n}: {found.then}{then} then, {found.now} (margin {found.margin_now:.3f}) now"
