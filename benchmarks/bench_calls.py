"""Is the right function called with the right arguments? The Berkeley leaderboard's own cases and its own checker.

    python benchmarks/bench_calls.py --model smollm2 --out benchmarks/results/calls-smollm2.json
    python benchmarks/bench_calls.py --dev 40 --category simple_python --contestant ours      while developing

Contestants: `ours` (Kernel.call), `llguidance` (the same functions as a JSON grammar, greedy), `unconstrained` (a
lenient JSON reader behind free text). In the categories of irrelevance no function fits, and right is to call none.

Others may be given a part of the cases, drawn by the same seed: --others 100. What ours makes of that part is a row of
its own then, `ours, same cases`.

Seconds are those of the processor, on one thread: they hardly depend on what else runs.

Each answer is kept in .cache/bfcl/bench-*.jsonl as soon as it is made, so the same command goes on where it was
stopped; --fresh begins anew. Nothing was tuned on the cases that the seed draws.
The last line of stdout is one JSON document.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bfcl_cases import CACHE, CATEGORIES, PACKAGE, SEED, Case, Judge, cases, checker
from call_peers import CONTESTANTS, Made, opcodes
from harness import make_parser, publish
from jsonschema import Draft202012Validator

from kernel.api import Kernel

Row = dict[str, Any]


def main() -> None:
    """Let every contestant call, judge what it called, print a table."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2", help="(default: %(default)s)")
    parser.add_argument("--category", action="append", choices=CATEGORIES, help="(default: all)")
    parser.add_argument("--contestant", action="append", choices=list(CONTESTANTS), help="(default: all)")
    parser.add_argument("--cases", type=int, default=200, help="of each category (default: %(default)s)")
    parser.add_argument("--others", type=int, help="of each category for the others (default: as many)")
    parser.add_argument("--dev", type=int, default=0, help="so many of the cases that are for development, instead")
    parser.add_argument("--seed", type=int, default=SEED, help="draws the cases (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--kept", action="store_true", help="judge the calls that are kept, and make none")
    parser.add_argument("--fresh", action="store_true", help="make all calls anew")
    given = parser.parse_args()
    judge = checker()
    made: dict[tuple[str, str], tuple[Sequence[Case], list[Row]]] = {}
    with Kernel.load(given.model, n_ctx=4096, threads=given.threads) as kernel:
        for name in given.contestant or CONTESTANTS:
            contestant = CONTESTANTS[name](kernel)
            for category in given.category or CATEGORIES:
                several: Sequence[Case] = cases(category, seed=given.seed, most=given.cases, dev=bool(given.dev))
                several = several[: given.dev or given.cases]
                if name != "ours":
                    several = _part(several, given.others, given.seed)
                drawn = "dev" if given.dev else str(given.seed)
                kept = CACHE / f"bench-{Path(given.model).stem}-{name}-{category}-{drawn}.jsonl"
                if given.fresh:
                    kept.unlink(missing_ok=True)
                known = _known(kept)
                several = [case for case in several if case.id in known] if given.kept else several
                if several:
                    made[name, category] = several, _made(contestant, several, kept, known)
                    _tell(summed(name, category, *made[name, category], judge))
    found = [summed(*key, *rows, judge) for key, rows in made.items()]
    found += [summed("ours, same cases", category, *rows, judge) for category, rows in _same(made).items()]
    publish("calls", {"model": given.model, "package": PACKAGE, "seed": given.seed, "rows": found}, given.out)


def _same(
    made: Mapping[tuple[str, str], tuple[Sequence[Case], list[Row]]],
) -> dict[str, tuple[Sequence[Case], list[Row]]]:
    """Return what ours made of the cases that another has, by category, where these are fewer; of several others, the
    one with most."""
    found: dict[str, tuple[Sequence[Case], list[Row]]] = {}
    for (name, category), (several, _) in made.items():
        mine = made.get(("ours", category))
        part = found.get(category, ([], []))[0]
        if name != "ours" and mine is not None and len(part) < len(several) < len(mine[0]):
            ids = {case.id for case in several}
            rows = [(case, row) for case, row in zip(*mine, strict=True) if case.id in ids]
            found[category] = [case for case, _ in rows], [row for _, row in rows]
    return found


def _part(several: Sequence[Case], most: int | None, seed: int) -> Sequence[Case]:
    """Return as many of the cases as the others get, drawn by the seed, in their order."""
    if most is None or most >= len(several):
        return several
    drawn = set(random.Random(f"{seed} others").sample([case.id for case in several], most))
    return [case for case in several if case.id in drawn]


def _made(contestant: Any, several: Sequence[Case], kept: Path, known: Mapping[str, Row]) -> list[Row]:
    """Return what a contestant makes of each case; what it has made before is known."""
    made: list[Row] = []
    with kept.open("a", encoding="utf-8") as file:
        for case in several:
            row = known.get(case.id)
            if row is None:
                started = time.process_time()
                call: Made = contestant.call(case)
                row = {"id": case.id, **asdict(call), "seconds": round(time.process_time() - started, 3)}
                print(json.dumps(row, ensure_ascii=False, default=str), file=file, flush=True)
            made.append(row)
    return made


def _known(kept: Path) -> dict[str, Row]:
    if not kept.exists():
        return {}
    return {row["id"]: row for row in map(json.loads, kept.read_text("utf-8").splitlines())}


def summed(name: str, category: str, several: Sequence[Case], made: Sequence[Row], judge: Judge) -> Row:
    """Return what came of a category; `all` is the share of right calls, and of cases without one where none fits."""
    tool = [
        case.wanted == row["name"] and not (row["fault"] and case.wanted)
        for case, row in zip(several, made, strict=True)
    ]
    reasons = [
        _why(judge, case, row["name"], row["arguments"]) if right else "another function"
        for case, row, right in zip(several, made, tool, strict=True)
    ]
    irrelevant = not several[0].wanted if several else False
    named = sum(tool)
    return {
        "contestant": name,
        "category": category,
        "cases": len(made),
        "tool": share(named, len(made)),
        "arguments": None if irrelevant else share(sum(not reason for reason in reasons), named),
        "all": share(sum(not reason for reason in reasons), len(made)),
        "refused": share(sum(not row["name"] and not row["fault"] for row in made), len(made)),
        "valid": share(sum(_valid(case, row) for case, row in zip(several, made, strict=True)), _calls(made)),
        "faults": sum(bool(row["fault"]) for row in made),
        "passes": statistics.median(row["passes"] for row in made) if made else 0,
        "tokens": statistics.median(row["tokens"] for row in made) if made else 0,
        "seconds": round(statistics.median(row["seconds"] for row in made), 2) if made else 0,
        "wrong": [f"{case.id}: {reason}"[:200] for case, reason in zip(several, reasons, strict=True) if reason],
    }


def _calls(made: Sequence[Row]) -> int:
    return sum(bool(row["name"]) for row in made)


def _valid(case: Case, row: Row) -> bool:
    """Return whether there is a call, and jsonschema takes its arguments."""
    schema = next((opcode.schema_ for opcode in opcodes(case) if opcode.original == row["name"]), None)
    return schema is not None and Draft202012Validator(dict(schema)).is_valid(row["arguments"])


def _why(judge: Judge, case: Case, name: str, arguments: Mapping[str, Any]) -> str:
    if not case.wanted:
        return ""
    try:
        return judge(case, name, arguments)
    except (KeyError, TypeError, IndexError) as error:  # the checker meets a schema or a value that it does not know
        return f"the checker gives up: {type(error).__name__}: {error}"


def share(part: int, whole: int) -> float | None:
    """Return a part in per cent, to one place."""
    return round(100 * part / whole, 1) if whole else None


def _tell(row: Row) -> None:
    shown = ", ".join(
        f"{key} {row[key]}" for key in ("tool", "arguments", "all", "refused", "faults", "passes", "seconds")
    )
    print(f"{row['contestant']:14} {row['category']:16} {row['cases']:4}: {shown}", flush=True)


if __name__ == "__main__":
    main()
