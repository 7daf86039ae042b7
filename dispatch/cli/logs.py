"""`stats` counts over logs, `diff` compares two, `log` redacts one or prints the schema of a line."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from dispatch.cli.common import AsJson, LogFiles
from dispatch.cli.output import failing, note, print_json, print_rows, say, written
from dispatch.log.diff import SessionDiff, diff
from dispatch.log.export import redacted_copy, write_csv, write_parquet
from dispatch.log.redact import Redactor
from dispatch.log.schema import json_schema
from dispatch.log.stats import Stats, stats
from kernel.choose.decision import TOLERANCE
from kernel.errors import UsageError

app = typer.Typer(help="Redact logs, print their form.", no_args_is_help=True)


class Format(enum.StrEnum):
    """A form for the decisions, one a row."""

    CSV = "csv"
    PARQUET = "parquet"


LogFile = typer.Argument(exists=True, dir_okay=False, show_default=False)
Form = Annotated[Format | None, typer.Option("--format", help="Write every decision as a row instead.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="File for --format; CSV goes to stdout without.")]
Gap = Annotated[float, typer.Option(help="Log-probabilities no further apart count as equal.", min=0.0, max=1e6)]
Salt = Annotated[str, typer.Option(help="At least 16 bytes in hexadecimal; a new one is made and told without.")]


def stats_command(files: LogFiles, as_json: AsJson = False, form: Form = None, output: Output = None) -> None:
    """Count over session logs: decisions a second, agreement with the planner, endings, what took long.

    Exits with 1 when a log is damaged; what stands before the damage is counted.
    """
    with failing():
        if form is not None:
            damages = _export(files, form, output, as_json)
            for damage in damages:
                note(f"damaged: {damage}")
            raise typer.Exit(1 if damages else 0)
        if output is not None:
            raise UsageError("stats: --output needs --format")
        found = stats(files)
    if as_json:
        print_json(found)
    else:
        _print(found)
    raise typer.Exit(1 if found.damaged else 0)


def diff_command(
    a: Annotated[Path, LogFile], b: Annotated[Path, LogFile], tolerance: Gap = TOLERANCE, as_json: AsJson = False
) -> None:
    """Say at which step two sessions part first, and why.

    Exits with 0 when they are the same, with 1 when they part, with 2 when they cannot be compared.
    """
    with failing(2):
        found = diff(a, b, tolerance=tolerance)
    if as_json:
        print_json(found)
    else:
        for line in _told(found):
            say(line)
    raise typer.Exit(1 if found.parting or found.damages else 0)


@app.command("redact")
def redact_command(source: Annotated[Path, LogFile], target: Path, salt: Salt = "") -> None:
    """Copy a log without prompts and requests, with salted hashes in their place. The copy still replays."""
    with failing():
        redactor = Redactor(salt)
        count, damage = redacted_copy(source, target, redactor)
    say(f"{count} decisions written to {target}")
    if not salt:
        note(f"salt {redactor.salt}: keep it to prove later what was dropped; it is not in the log")
    if damage is not None:
        note(f"damaged: {damage}")
        raise typer.Exit(1)


@app.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of a line of a log."""
    print_json(json_schema())


def _export(files: list[Path], form: Format, output: Path | None, as_json: bool) -> list[str]:
    if as_json:
        raise UsageError("stats: --json and --format exclude each other")
    if form is Format.PARQUET:
        if output is None:
            raise UsageError("stats: --format parquet needs --output FILE")
        return write_parquet(files, output)
    if output is None:
        return write_csv(files, sys.stdout)
    if any(output.exists() and output.samefile(file) for file in files):
        raise UsageError(f"stats: {str(output)!r} is one of the logs; give another file")
    with written(output) as out:
        return write_csv(files, out)


def _print(found: Stats) -> None:
    heads = [
        "cartridge",
        "player",
        "rule",
        "sessions",
        "decisions",
        "a second",
        "first",
        "offered",
        "ms",
        "p99",
        "held",
        "failed",
        "ended",
    ]
    rows = [
        (
            group.cartridge,
            group.player,
            group.rule,
            str(group.sessions),
            str(group.decisions),
            _number(group.decisions_per_second),
            _percent(group.agree_first),
            _percent(group.agree_any),
            _rough(group.ms_median),
            _rough(group.ms_p99),
            str(group.held),
            str(group.failed),
            ", ".join(f"{name} {count}" for name, count in sorted(group.endings.items())),
        )
        for group in found.groups
    ]
    print_rows(heads, rows)
    for slow in found.slowest:
        say(f"slow: {slow.ms:.1f} ms, decision {slow.n} of {slow.path}")
    for damage in found.damages:
        note(f"damaged: {damage}")
    if found.damaged > len(found.damages):
        note(f"damaged: {found.damaged - len(found.damages)} more")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _rough(value: float | None) -> str:
    """Return two digits, since a quantile is known to 1 % only."""
    return "" if value is None else f"{float(f'{value:.2g}'):g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _told(found: SessionDiff) -> Iterator[str]:
    """Yield the lines that tell a comparison."""
    for name, (a, b) in found.headers.items():
        yield f"header {name}: {a} | {b}"
    if found.scores_from is not None:
        yield f"scores differ from decision {found.scores_from} on, with the same choice at first"
    part = found.parting
    if part is None:
        yield f"the same in all {found.same} decisions"
    else:
        yield f"part at decision {part.n}, after {found.same} the same: {part.why}: {part.detail}"
        yield f"  first:  {part.a}"
        yield f"  second: {part.b}"
    for damage in found.damages:
        yield f"damaged: {damage}"
