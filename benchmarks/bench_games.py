"""How much of the play is the model's? Tetris games by chance, by the planner and by a model, and one decided again.

Each game is one `python -m kernel run tetris --json`; it ends when the stack tops out or at the limit of pieces. A
model that ratifies the planner's options stands between the planner and chance. The last game is decided again by the
same model and by another one (`replay --decide`), prompt by prompt.

    python benchmarks/bench_games.py --out benchmarks/results/games.json

Only what does not depend on the machine's speed is kept, so it may be busy; bench_long.py measures the time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

GAMES = {
    "random, of all legal": "--player random --pieces 1000 --seed 7",
    "planner alone": "--player planner --pieces 1000 --seed 7",
    "placements": "--pieces 20 --seed 7",
    "keys": "--pieces 20 --seed 7 --opcodes moves",
    "compact": "--pieces 20 --seed 11 --wire compact",
    "tagged": "--pieces 20 --seed 11 --wire tagged",
}
"""Options of `run tetris`; where no player is named, it is the model."""
AGAIN = "--pieces 100 --seed 7"
"""Options of the game that is decided again."""
COUNTS = ("pieces", "lines", "height", "decisions", "ending", "refused", "agreement_first", "agreement")
COSTS = ("passes_per_decision", "tokens_evaluated")
COMPARED = (
    "decisions", "agree", "within", "beyond", "planner_first_then", "planner_first_now",
    "planner_prefers_then", "planner_prefers_now", "largest_shift", "rewritten",
)  # fmt: skip


def kernel(*arguments: str) -> dict[str, Any]:
    """Run a command of the kernel in a process of its own and return the JSON that it prints."""
    done = subprocess.run([sys.executable, "-m", "kernel", *arguments], capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout))


def play(options: str, model: str, log: Path | None = None) -> dict[str, Any]:
    """Play one game and return the counts of its summary."""
    asked = options.split() + ([] if "--player" in options else ["--model", model])
    asked += ["--log", str(log)] if log else []
    found = kernel("run", "tetris", "--headless", "--json", *asked)
    return {name: found[name] for name in COUNTS + COSTS if name in found}


def main() -> None:
    """Play, decide again, print two tables and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2", help="that plays (default: %(default)s)")
    parser.add_argument("--other", default="gemma3-270m", help="that decides again as well (default: %(default)s)")
    args = parser.parse_args()
    games = {name: {"options": options, **play(options, args.model)} for name, options in GAMES.items()}
    table = Table("game", *COUNTS, *COSTS, box=None)
    for name, game in games.items():
        table.add_row(name, *(str(game.get(column, "")) for column in COUNTS + COSTS))
    Console(width=170).print(table)
    again = {}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "game.jsonl"
        play(AGAIN, args.model, log)
        for model in (args.model, args.other):
            found = kernel("replay", str(log), "--decide", "--json", "--model", model)
            again[model] = {name: found[name] for name in COMPARED}
    table = Table("decided again", *again, box=None)
    for name in COMPARED:
        table.add_row(name, *(str(found[name]) for found in again.values()))
    Console(width=120).print(table)
    found = {"model": args.model, "games": games, "again": {"options": AGAIN, "models": again}}
    publish("games", found, args.out)


if __name__ == "__main__":
    main()
