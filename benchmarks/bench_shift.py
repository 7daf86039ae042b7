"""By how much does a score move between two ways to evaluate the same prompt and option?

Scores depend a little on the shape of a batch: CPU kernels add up in another order where more rows stand in one pass.
So a replay that decides again compares choices and margins, never bits, and `TOLERANCE` (kernel/choose/decision.py)
says which margins count as equal. This measures it: random prompts of 3 to 60 words with 3 to 14 options, long and
improbable ones among them, each decided three times: behind another prompt, with its own prompt in memory, and in an
empty memory with the options the other way round. A comparison is one option's log-probability in the first and in one
of the others.

    python benchmarks/bench_shift.py --model smollm2 --threads 1 --out benchmarks/results/shift-smollm2.json

The numbers do not depend on the machine's speed, but for `cpu_ms`, the processor time of a first decision.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from kernel.api import Kernel
from kernel.backends.llama_cpp import LlamaCppBackend
from kernel.models.catalogue import resolve

WORDS = (
    *("lamp", "room", "light", "kitchen", "garden", "north", "stop", "take", "door", "open", "close", "blue"),
    *("green", "red", "fast", "slow", "seven", "house", "cat", "water", "music", "play", "turn", "warm", "cold"),
)


def case(draw: random.Random) -> tuple[str, list[str]]:
    """Return a prompt and options."""
    prompt = f"Request: {' '.join(draw.choices(WORDS, k=draw.randint(3, 60)))}\nCommand:"
    options = {" ".join(draw.choices(WORDS, k=draw.randint(1, 6))) for _ in range(draw.randint(3, 14))}
    if draw.random() < 0.3:
        options.add("x" * draw.randint(5, 30) + "ℵ")
    return prompt, sorted(options)


def measure(kernel: Kernel, decisions: int) -> dict[str, Any]:
    """Return how far scores moved over so many decisions, and how often a choice did."""
    draw, moved, changed, cpu = random.Random(1), [], 0, 0.0
    for _ in range(decisions):
        prompt, options = case(draw)
        kernel.choose(" ".join(draw.choices(WORDS, k=draw.randint(3, 40))), options)
        started = time.process_time()
        first = kernel.choose(prompt, options)
        cpu += time.process_time() - started
        again = kernel.choose(prompt, options)
        kernel.memory.reset()
        turned = kernel.choose(prompt, options[::-1])
        by_text = dict(zip(first.texts, first.raw.tolist(), strict=True))
        for other in (again, turned):
            moved += [abs(by_text[t] - v) for t, v in zip(other.texts, other.raw.tolist(), strict=True)]
        changed += len({first.text, again.text, turned.text}) > 1
    shifts = np.array(moved)
    return {
        "comparisons": len(shifts),
        "worst": round(float(shifts.max()), 4),
        "p99": round(float(np.quantile(shifts, 0.99)), 4),
        "median": round(float(np.median(shifts)), 4),
        "equal": round(float((shifts == 0).mean()), 4),
        "over_0.5": int((shifts > 0.5).sum()),
        "decisions": decisions,
        "choices_changed": changed,
        "cpu_ms": round(1000 * cpu / decisions, 1),
    }


def main() -> None:
    """Measure with and without flash attention."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--decisions", type=int, default=80)
    asked = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    for name, flash in (("off (kept)", False), ("on", True)):
        with Kernel(LlamaCppBackend(resolve(asked.model), threads=asked.threads, flash_attention=flash)) as kernel:
            rows[name] = measure(kernel, asked.decisions)
    table = Table("flash attention", *rows["on"], title=asked.model, box=None)
    for name, row in rows.items():
        table.add_row(name, *map(str, row.values()))
    Console().print(table)
    publish("shift", {"model": asked.model, "rows": rows}, asked.out)


if __name__ == "__main__":
    main()
