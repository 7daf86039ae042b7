"""How much of the play is the model's? The same Tetris games by chance, by the model and by the planner alone.

Each row is one `python -m kernel run tetris --json`: a game ends when the stack tops out or at the limit of pieces.
The model's game should stand between the two others; how close to the planner's says how faithfully it ratifies.

    python benchmarks/bench_games.py --pieces 500 --seeds 0,1,2 --models smollm2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from rich.console import Console
from rich.table import Table


def play(player: str, seed: int, pieces: int, *more: str) -> dict[str, Any]:
    """Play one game in a process of its own and return its summary."""
    command = [sys.executable, "-m", "kernel", "run", "tetris", "--player", player, "--seed", str(seed)]
    command += ["--pieces", str(pieces), "--headless", "--json", *more]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout), player=player if player != "model" else more[-1])


def main() -> None:
    """Play, print a table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", type=int, default=500)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument(
        "--models", default="smollm2", help="models, with commas; empty for none (default: %(default)s)"
    )
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    rows = [play("random", seed, args.pieces) for seed in seeds]
    for model in filter(None, args.models.split(",")):
        rows += [play("model", seed, args.pieces, "--model", model) for seed in seeds]
    rows += [play("planner", seed, args.pieces) for seed in seeds]
    show(rows)
    print(json.dumps(rows))


def show(rows: list[dict[str, Any]]) -> None:
    """Print one row a game."""
    table = Table(
        "player", "seed", "pieces", "lines", "planner's first", "one of its three", "passes", "a second", box=None
    )
    for row in rows:
        table.add_row(
            row["player"],
            str(row["seed"]),
            str(row["pieces"]),
            str(row["lines"]),
            *(f"{100 * row[name]:.1f} %" for name in ("agreement_first", "agreement")),
            f"{row['passes_per_decision']:.2f}" if "passes_per_decision" in row else "",
            f"{row['decisions_per_second']:.1f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
