"""How long does the Tetris planner take a piece, and how far do the two baseline players come?

The time matters because it is spent beside every pass of the model; the games because a model that ratifies the
planner's options should stand between them.

    python benchmarks/bench_planner.py [--pieces N]

The random player takes each legal instruction with equal chance. It tops out early, so it starts again on an empty
board (seed + 1000, seed + 2000, ...) until it has put down as many pieces as the planner.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from cartridges.tetris.engine import TetrisEngine
from cartridges.tetris.opcodes import OPCODES, OpcodeSet
from cartridges.tetris.planner import TetrisPlanner
from kernel.opcode import Instruction

SEEDS = (0, 1, 2)
WARM_UP = 50


def timed(call: Callable[[], object]) -> float:
    """Return the microseconds that one call takes."""
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def times(opcodes: OpcodeSet, pieces: int) -> dict[str, dict[str, float]]:
    """Play alone and time each part; microseconds, median and 99th percentile, the first pieces left out."""
    engine, planner = TetrisEngine(opcodes, seed=0), TetrisPlanner()
    found: dict[str, list[float]] = {name: [] for name in ("placements", "rank", "apply", "state_hash", "piece")}
    for n in range(pieces + WARM_UP):
        if engine.ended() is not None:
            engine.reset(n)
        fresh = engine.copy()
        took = {"placements": timed(fresh.placements)}
        fresh = engine.copy()
        took["rank"] = timed(lambda engine=fresh: planner.rank(engine))  # type: ignore[misc]
        plan = planner.rank(fresh)[0].plan
        applied = [timed(lambda each=each: engine.apply(each)) for each in plan]  # type: ignore[misc]
        took["apply"] = statistics.fmean(applied)
        took["state_hash"] = timed(engine.state_hash)
        took["piece"] = took["rank"] + sum(applied)
        if n >= WARM_UP:
            for name, value in took.items():
                found[name].append(value)
    return {
        name: {"median_us": round(statistics.median(v), 1), "p99_us": round(statistics.quantiles(v, n=100)[98], 1)}
        for name, v in found.items()
    }


def game(opcodes: OpcodeSet, player: str, seed: int, pieces: int) -> dict[str, int]:
    """Put down that many pieces; return the lines cleared, the games begun, the pieces of the first one."""
    planner, dice = TetrisPlanner(), random.Random(seed)
    lines = done = games = first = 0
    while done < pieces:
        engine = TetrisEngine(opcodes, seed + 1000 * games)
        games += 1
        while engine.ended() is None and done + int(engine.summary()["pieces"]) < pieces:
            plan: tuple[Instruction, ...] = (dice.choice(list(engine.legal())),)
            if player == "planner":
                plan = planner.rank(engine)[0].plan
            for instruction in plan:
                engine.apply(instruction)
        lines += int(engine.summary()["lines"])
        done += int(engine.summary()["pieces"])
        first = first or done
    return {"lines": lines, "games": games, "first_game_pieces": first}


def main() -> None:
    """Measure, print two tables and, as the last line, one JSON document."""
    parser = make_parser(__doc__)
    parser.add_argument("--pieces", type=int, default=500, help="pieces a game (default: %(default)s)")
    given = parser.parse_args()
    pieces = given.pieces
    sets: list[OpcodeSet] = list(OPCODES)
    spent = {opcodes: times(opcodes, pieces) for opcodes in sets}
    games = {
        opcodes: {
            player: {str(seed): game(opcodes, player, seed, pieces) for seed in SEEDS}
            for player in ("planner", "random")
        }
        for opcodes in sets
    }
    out = Console(width=100)
    table = Table("opcodes", "part", "median us", "p99 us", title=f"time, {pieces} pieces of the planner's game")
    for opcodes in sets:
        for name, value in spent[opcodes].items():
            table.add_row(opcodes, name, str(value["median_us"]), str(value["p99_us"]))
    out.print(table)
    table = Table(
        "opcodes", "player", *(f"seed {seed}" for seed in SEEDS), title=f"lines in {pieces} pieces (games begun)"
    )
    for opcodes in sets:
        for player, runs in games[opcodes].items():
            table.add_row(opcodes, player, *(f"{run['lines']} ({run['games']})" for run in runs.values()))
    out.print(table)
    publish("planner", {"pieces": pieces, "time": spent, "games": games}, given.out)


if __name__ == "__main__":
    main()
