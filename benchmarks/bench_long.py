"""Does a long game stay as small and as fast as it began? One Tetris game in its own process, watched from outside.

The resident memory is read every few seconds, the time of each decision from the game's log; both should be flat.

    python benchmarks/bench_long.py --pieces 1000 --threads 1 --out benchmarks/results/long.json
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

EVERY = 2.0
"""Seconds between two looks."""


def watch(command: list[str], log: Path) -> tuple[list[tuple[int, int]], dict[str, Any]]:
    """Run a game; return (bytes of the log, KB resident) at each look, and its summary."""
    looks: list[tuple[int, int]] = []
    with tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(command, stdout=out) as process:
            while process.poll() is None:
                time.sleep(EVERY)
                looks += [(log.stat().st_size, size)] if log.exists() and (size := resident(process.pid)) else []
        if process.returncode:
            raise SystemExit(process.returncode)
        out.seek(0)
        return looks, json.load(out)


def resident(pid: int) -> int:
    """Return the resident KB of a process (Linux), 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


def main() -> None:
    """Play, print a row a tenth of the game, and one JSON line."""
    parser = make_parser(__doc__)
    parser.add_argument("--pieces", type=int, default=1000)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--seed", default="7")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--log", type=Path, help="keep the session log here")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = args.log or Path(folder) / "game.jsonl"
        command = [sys.executable, "-m", "kernel", "run", "tetris", "--headless", "--json", "--log", str(log)]
        command += ["--pieces", str(args.pieces), "--seed", args.seed, "--model", args.model, "--threads", args.threads]
        looks, summary = watch(command, log)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        size = log.stat().st_size
    times = [line["model_ms"] for line in lines if line.get("event") == "decision"]
    tenth = max(1, len(times) // 10)
    rows = []
    for n in range(len(times) // tenth):
        seen = [kb for at, kb in looks if n <= 10 * at / size < n + 1 or (n == 9 and at == size)]
        rows.append(
            {
                "pieces": (n + 1) * tenth,
                "median_ms": round(median(times[n * tenth : (n + 1) * tenth]), 1),
                "resident_mb": round(max(seen) / 1024, 1) if seen else None,
            }
        )
    table = Table("pieces", "median ms a decision", "resident MB", box=None)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)
    publish("long", {"summary": summary, "rows": rows}, args.out)


if __name__ == "__main__":
    main()
