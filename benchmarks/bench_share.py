"""Where does the time of a Tetris decision go: how much is the model's, how much Python's?

Plays `run tetris --log` in this process, by the default rule unless told otherwise, and takes the time inside
llama_decode. All the rest is ours: planner, prompt, tokenizing, tree, reading rows, rule, log with its ledger. Then the
same game again under Python's profiler, which makes all but llama_decode slower, to say which functions it is.

    python benchmarks/bench_share.py --pieces 50 --threads 2

Target: under 3 % of the wall time. Run it with nothing else on the machine.
"""

from __future__ import annotations

import contextlib
import cProfile
import io
import json
import pstats
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from decision_peers import Calls
from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from dispatch.cli import app
from dispatch.session.session import Session
from dispatch.session.turn import Turn

TARGET = 0.03


def game(arguments: list[str], profile: cProfile.Profile | None = None) -> tuple[dict[str, Any], Calls]:
    """Play one game; return its summary and what went through llama_decode."""
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, Calls() as calls, contextlib.redirect_stdout(out):
        log = str(Path(folder) / "game.jsonl")
        with _profiled(profile), contextlib.redirect_stderr(io.StringIO()):
            app(["run", "tetris", "--json", "--log", log, *arguments], standalone_mode=False)
    return dict(json.loads(out.getvalue())), calls


@contextlib.contextmanager
def _profiled(profile: cProfile.Profile | None) -> Iterator[None]:
    """Profile the decisions, not the loading before them."""
    plain = Session.turn

    def turn(session: Session, request: str = "") -> Turn:
        with profile or contextlib.nullcontext():
            return plain(session, request)

    Session.turn = turn  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Session.turn = plain  # type: ignore[method-assign]


def functions(profile: cProfile.Profile, decisions: int, count: int) -> list[dict[str, Any]]:
    """Return the functions that take most time themselves, in milliseconds a decision; llama_decode is none of them."""
    stats = pstats.Stats(profile, stream=io.StringIO()).stats  # type: ignore[attr-defined]
    rows = []
    for (file, line, name), (_, calls, own, total, _) in stats.items():
        if name == "counted":  # the wrapper around llama_decode
            continue
        where = "/".join(Path(file).parts[-2:]) + f":{line}" if line else ""
        ms = {"own_ms": 1000 * own / decisions, "total_ms": 1000 * total / decisions}
        rows.append({"function": name, "where": where, "calls": calls / decisions, **ms})
    return sorted(rows, key=lambda row: -row["own_ms"])[:count]


def main() -> None:
    """Play twice, print tables and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2", help="(default: %(default)s)")
    parser.add_argument("--pieces", type=int, default=50, help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--rule", default="calibrated", help="(default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--functions", type=int, default=15, help="lines of the profile (default: %(default)s)")
    options = parser.parse_args()
    asked = ["--model", options.model, "--pieces", str(options.pieces), "--seed", str(options.seed)]
    asked += ["--rule", options.rule, "--threads", str(options.threads)]

    found, calls = game(asked)
    decisions, seconds = found["decisions"], found["seconds"]
    parts = {
        "llama_decode": calls.seconds,
        "kernel around it": found["seconds_model"] - calls.seconds,
        "planner": found["seconds_planner"],
        "session and log": found["seconds_rest"],
    }
    share = 1 - calls.seconds / seconds
    console = Console(width=130)
    table = Table("part", "ms a decision", "share", box=None)
    for name, value in parts.items():
        table.add_row(name, f"{1000 * value / decisions:.2f}", f"{100 * value / seconds:.2f} %")
    console.print(table)
    verdict = "reached" if share < TARGET else "missed"
    console.print(
        f"Python's share: {100 * share:.2f} % of {seconds / decisions:.3f} s; target {100 * TARGET:.0f} %: {verdict}"
    )

    profile = cProfile.Profile()
    profiled, _ = game(asked, profile)
    rows = functions(profile, profiled["decisions"], options.functions)
    table = Table("function", "where", "calls", "own ms", "with what it calls", box=None, title="under the profiler")
    for row in rows:
        numbers = [f"{row[key]:.2f}" for key in ("calls", "own_ms", "total_ms")]
        table.add_row(row["function"][:40], row["where"], *numbers)
    console.print(table)
    result = {
        "python_share": round(share, 4),
        "ms_a_decision": {name: round(1000 * value / decisions, 3) for name, value in parts.items()},
        "passes_per_decision": found["passes_per_decision"],
        "tokens_per_decision": round(found["tokens_evaluated"] / decisions, 1),
        "decisions": decisions,
        "functions": [{k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()} for row in rows],
    }
    publish("share", result, options.out)


if __name__ == "__main__":
    main()
