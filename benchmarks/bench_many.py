"""How many decisions a second come out when several wait: each alone, and all that wait in shared passes.

The decisions are those of a Tetris game that the planner plays, three offered placements each, by the default rule on
the cartridge's prompts: so many sessions, each at another state, ask at the same time. They are answered one after the
other (`Kernel.decide`) and together (`Kernel.decide_many`), in turns, so that a machine that slows down hits both.

    python benchmarks/bench_many.py --threads 2 --out benchmarks/results/many.json

Run it with nothing else on the machine.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from dispatch.loading.registry import load
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.question import Question
from kernel.opcode import commands

MODELS = ("smollm2", "gemma3-270m")
WAITING = (1, 4, 16)
WARM = 1
"""Rounds that are not counted."""


def questions(kernel: Kernel, count: int, seed: int) -> list[Question]:
    """Return so many decisions of a game."""
    cartridge = load("tetris")
    assert cartridge.planner is not None
    wire = Wire([cartridge])
    instructions = commands(cartridge.name, cartridge.opcodes)
    place = {instruction: n for n, instruction in enumerate(instructions)}
    opcodes = kernel.compile([wire.literal(instruction) for instruction in instructions])
    engine = cartridge.engine()
    engine.reset(seed)
    found: list[Question] = []
    while len(found) < count:
        assert engine.ended() is None
        options = list(cartridge.planner.rank(engine))
        offered = options[: cartridge.offered]
        if len(offered) > 1:
            legal = opcodes.subset_of([place[option.instruction] for option in offered])
            found.append(Question(kernel.ids(cartridge.view.prompt(engine, offered)), opcodes, legal))
        engine.apply(options[0].instruction)
    return found


def measured(kernel: Kernel, asked: list[Question], waiting: int) -> dict[str, Any]:
    """Answer all in groups of so many, alone and together, and count."""
    seconds: dict[str, list[float]] = {"alone": [], "together": []}
    passes, tokens, same = dict.fromkeys(seconds, 0), dict.fromkeys(seconds, 0), 0
    for number, at in enumerate(range(0, len(asked) - waiting + 1, waiting)):
        group, texts = asked[at : at + waiting], {}
        for way in ("alone", "together") if number % 2 else ("together", "alone"):
            before, start = kernel.memory.cost, time.perf_counter()
            made = kernel.decide_many(group) if way == "together" else [kernel.decide(each) for each in group]
            elapsed, cost = time.perf_counter() - start, kernel.memory.cost - before
            texts[way] = [decision.text for decision in made]
            if number >= WARM:
                seconds[way].append(elapsed)
                passes[way] += cost.passes
                tokens[way] += cost.tokens
        if number >= WARM:
            same += sum(a == b for a, b in zip(texts["alone"], texts["together"], strict=True))
    count = waiting * len(seconds["alone"])
    row: dict[str, Any] = {"waiting": waiting, "decisions": count, "same_choice": same}
    for way, each in seconds.items():
        row[way] = {
            "decisions_per_second": round(count / sum(each), 2),
            "median_ms": round(1000 * float(np.median(each)), 2),
            "passes": round(passes[way] / count, 2),
            "tokens": round(tokens[way] / count, 1),
        }
    return row


def main() -> None:
    """Measure what is asked for."""
    parser = make_parser(__doc__)
    parser.add_argument("--models", default=",".join(MODELS), help="with commas (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="(default: %(default)s)")
    parser.add_argument("--decisions", type=int, default=96, help="for each number that wait (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the game (default: %(default)s)")
    options = parser.parse_args()
    console, results = Console(width=120), []
    for model in options.models.split(","):
        table = Table("waiting", "alone, a second", "together", "passes a decision", "tokens", title=model, box=None)
        with Kernel.load(model, threads=options.threads) as kernel:
            for waiting in WAITING:
                asked = questions(kernel, options.decisions + WARM * waiting, options.seed)
                row = measured(kernel, asked, waiting)
                results.append({"model": model, **row})
                speeds = [f"{row[way]['decisions_per_second']}" for way in ("alone", "together")]
                costs = [f"{row['alone'][what]} / {row['together'][what]}" for what in ("passes", "tokens")]
                table.add_row(str(waiting), *speeds, *costs)
        console.print(table)
    publish("many", {"results": results}, options.out)


if __name__ == "__main__":
    main()
