"""From N literal texts to the legal ids of a step: how long, how much memory, ours beside its peers.

Each row is a fresh process: vocabulary and texts are loaded, then the clock starts and the memory is marked; texts go
in, the first mask comes out; then sampled texts are walked token by token and every mask is timed. A peer that fails,
is not installed, grows over the memory limit or takes longer than the time limit is a row that says so. Masks are
compared with a brute-force search on samples: over the ids of all texts for engines that allow one tokenization, over
the bytes of all texts for those that allow every one.

    python benchmarks/bench_trie.py                                       everything: about half an hour
    python benchmarks/bench_trie.py --n 1000 --peer ours,llguidance --vocab smollm2

Peers: `pip install -e .[bench]` and, without its dependencies, xgrammar. Run it with nothing else on the machine.
"""

from __future__ import annotations

import argparse
import bisect
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from harness import make_parser, publish
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from trie_peers import ENGINES, Engine

SIZES = (5, 100, 1_000, 10_000, 100_000, 1_000_000)
VOCABULARIES = ("smollm2", "gemma3-270m")
WALKED = 400
"""Texts walked token by token for the time of a step."""
WALK_SECONDS = 20.0
"""A slow engine walks fewer, and has fewer masks checked."""

# 92 x 143 x 100 = 1,315,600 different texts
FIRST = """
amber azure brass bright calm cedar clear cold coral crimson dark deep dusty early faint fine flint gentle gilded
glass golden grand gray green hollow ivory jade keen large late light little lonely long lost loud lucky maple mellow
misty narrow noble north old opal pale patient plain proud quick quiet rapid rare red rough royal rusty sandy sharp
short silent silver slow small soft solid south spare stark steady still stone strong sunny sweet swift tall tender
thin tidy tiny true vast velvet violet warm west white wide wild wise young
"""
SECOND = """
anchor apple arrow badger barn basin beacon bell birch blade boat bottle branch bridge brook bucket cabin candle
canyon castle cellar chair chapel cliff clock cloud coast coin compass cottage crane creek crown desk door dove drum
eagle engine falcon farm feather fence ferry field flame forest fountain fox garden gate glacier glove grove hammer
harbor hawk heron hill house island jacket kettle key kite ladder lake lamp lantern lark lemon lighthouse lily lock
market meadow mill mirror moon mountain needle oak orchard otter owl paddle parrot path pebble pencil pepper piano
pigeon pillow pine pocket pond puzzle rabbit raven ribbon ridge river road robin rocket rope sail salmon school shadow
shed ship shore signal spoon sparrow spring star stable stove street summit table temple tent thread tiger tower trail
tunnel valley village wagon wall watch wave well wheel whistle willow window wolf
"""


def make_texts(kind: str, count: int) -> list[str]:
    """Return different JSON texts: `names` share words, as names do; `letters` share nothing, the worst case."""
    if kind == "letters":
        rng = random.Random(count)
        return ['"' + "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=12)) + '"' for _ in range(count)]
    firsts, seconds = FIRST.split(), SECOND.split()
    picked = np.random.default_rng(0).permutation(len(firsts) * len(seconds) * 100)[:count].tolist()
    many = len(seconds)
    return [f'{{"item":"{firsts[at // 100 // many]}-{seconds[at // 100 % many]}-{at % 100:02d}"}}' for at in picked]


def status(field: str) -> float:
    """Return a field of /proc/self/status in MB; 0 where there is no such file."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field)), 0.0)


def percentiles(nanoseconds: Sequence[int]) -> dict[str, float]:
    """Return median, 99th percentile and maximum in microseconds."""
    values = np.asarray(nanoseconds) / 1000
    return {
        "median_us": float(np.median(values)),
        "p99_us": float(np.percentile(values, 99)),
        "max_us": float(values.max()),
    }


def work(peer: str, n: int, vocab: str, kind: str, model: str) -> dict[str, Any]:
    """Measure one row in this process."""
    from kernel.backends.llama_cpp import read_vocabulary

    vocabulary = read_vocabulary(Path(model))
    assert vocabulary.is_text.any()
    texts = make_texts(kind, n)
    assert len(set(texts)) == n
    walked = [texts[i] for i in np.unique(np.linspace(0, n - 1, min(n, WALKED)).astype(int))]
    random.Random(1).shuffle(walked)
    paths = [vocabulary.literal(text) for text in walked]

    start = time.perf_counter()
    engine = ENGINES[peer](vocabulary)
    row: dict[str, Any] = {"peer": peer, "n": n, "vocab": vocab, "texts": kind}
    row["once_a_model_s"] = time.perf_counter() - start
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    except OSError:
        row["peak_counts_from"] = "start of the process"
    before = status("VmRSS")
    start = time.perf_counter()
    engine.compile(texts)
    engine.reset()
    engine.mask()
    row["first_mask_s"] = time.perf_counter() - start
    row |= {f"{part}_s": seconds for part, seconds in engine.parts.items()}
    print(json.dumps(row), flush=True)  # the time limit is for this

    clock = time.perf_counter_ns
    masks: list[int] = []
    steps: list[int] = []
    parting: list[int] = []
    choices: list[int] = []
    logits = np.random.default_rng(0).normal(size=len(vocabulary)).astype(np.float32)
    end = time.perf_counter() + WALK_SECONDS
    for path in paths:
        engine.reset()
        for token in path:
            a = clock()
            engine.mask()
            b = clock()
            masks.append(b - a)
            if engine.width() > 1:
                parting.append(b - a)
                c = clock()
                engine.choose(logits)
                choices.append(b - a + clock() - c)
            c = clock()
            engine.advance(token)
            steps.append(b - a + clock() - c)
        if time.perf_counter() > end:
            break
    row["peak_mb"] = status("VmHWM") - before
    row["kept_mb"] = status("VmRSS") - before
    row["mask"] = percentiles(masks)
    row["step"] = percentiles(steps)
    row["steps"] = len(masks)
    if parting:
        row["mask_where_paths_part"] = percentiles(parting)
        row["mask_and_choice_where_paths_part"] = percentiles(choices)
    row |= check(engine, texts, walked, paths)
    return row


def check(engine: Engine, texts: Sequence[str], walked: Sequence[str], paths: list[list[int]]) -> dict[str, Any]:
    """Compare masks, and choices, with brute force: every position of some texts.

    A mask that lacks some of several tokenizations is `narrower`; where there is one tokenization, that is wrong.
    """
    wrong = narrower = checked = 0
    row = np.random.default_rng(0).normal(size=len(engine.vocabulary)).astype(np.float32)
    if engine.by_ids:
        ids, offsets = engine.sequences()
        samples = paths[:40]
    else:
        ids, offsets = np.empty(0, np.int32), np.empty(0, np.int64)
        samples = paths[:3]
        ordered = sorted(text.encode() for text in texts)
    end = time.perf_counter() + WALK_SECONDS
    for path in samples:
        if time.perf_counter() > end:
            break
        engine.reset()
        for at in range(len(path)):
            engine.mask()
            allowed = engine.allowed()
            if engine.by_ids:
                expected = next_ids(ids, offsets, path[:at])
                best = engine.choose(row)
                wrong += best not in (None, max(expected, key=lambda token: row[token]))
            else:
                expected = next_by_bytes(engine, ordered, path[:at])
            checked += 1
            fewer = not engine.by_ids and allowed < expected and path[at] in allowed
            narrower += fewer
            wrong += allowed != expected and not fewer
            engine.advance(path[at])
    return {"masks_checked": checked, "masks_wrong": wrong, "masks_narrower": narrower}


def next_ids(ids: NDArray[np.int32], offsets: NDArray[np.int64], prefix: list[int]) -> set[int]:
    """Return the ids that follow a prefix in any of the sequences, by looking at all of them."""
    starts = offsets[np.flatnonzero(np.diff(offsets) > len(prefix))]
    for at, token in enumerate(prefix):
        starts = starts[ids[starts + at] == token]
    return set(ids[starts + len(prefix)].tolist())


def next_by_bytes(engine: Engine, ordered: list[bytes], prefix: list[int]) -> set[int]:
    """Return every id whose bytes go on a text that begins with the bytes of the prefix, by trying all ids."""
    vocabulary = engine.vocabulary
    head = vocabulary.join(prefix)
    low = bisect.bisect_left(ordered, head)
    high = bisect.bisect_left(ordered, head + b"\xff" * 8)
    out = set()
    for token in np.flatnonzero(vocabulary.is_text).tolist():
        wanted = head + vocabulary.pieces[token]
        at = bisect.bisect_left(ordered, wanted, low, high)
        if at < high and ordered[at].startswith(wanted):
            out.add(token)
    return out


def run(arguments: list[str], seconds: float, gigabytes: float) -> dict[str, Any]:
    """Run one row in a fresh process; return its row, or a row that says what went wrong."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--work", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines: list[str] = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, "")))  # type: ignore[union-attr]
    errors: list[str] = []
    other = threading.Thread(target=lambda: errors.extend(iter(process.stderr.readline, "")))  # type: ignore[union-attr]
    reader.start()
    other.start()
    start = time.monotonic()
    failure = None
    while process.poll() is None and failure is None:
        time.sleep(0.05)
        if time.monotonic() - start > seconds + (4 * WALK_SECONDS if lines else 0):
            failure = f"over {seconds:.0f} s" if not lines else "first mask in time, steps not"
        try:
            used = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            continue
        if used > gigabytes * 1e9:
            failure = f"over {gigabytes:.0f} GB"
    if failure is not None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    reader.join()
    other.join()
    if failure is None and process.returncode == 0:
        result: dict[str, Any] = json.loads(lines[-1])
        return result
    if failure is None:
        said = [line.strip() for line in errors if line.strip()] or [f"exit {process.returncode}"]
        failure = "not installed" if "ModuleNotFoundError" in said[-1] else said[-1][:160]
    return {**(json.loads(lines[0]) if lines else {}), "failure": failure}


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Print a table for each vocabulary; ratios are to our row of the same N."""
    for vocab in dict.fromkeys(row["vocab"] for row in rows):
        table = Table(title=f"{vocab}: time from texts to the first mask, one mask, memory (times ours in brackets)")
        for column in (
            "N",
            "engine",
            "first mask",
            "mask median",
            "mask p99",
            "mask + advance",
            "peak growth",
            "check",
        ):
            table.add_column(column, justify="left" if column == "engine" else "right")
        size = None
        for row in (row for row in rows if row["vocab"] == vocab):
            if size not in (None, row["n"]):
                table.add_section()
            size = row["n"]
            base = next((r for r in rows if r["vocab"] == vocab and r["n"] == size and r["peer"] == "ours"), {})
            table.add_row(f"{size:,}", row["peer"], *_cells(row, base))
        console.print(table)


def _cells(row: dict[str, Any], base: dict[str, Any]) -> list[str]:
    if "failure" in row:
        seconds = row.get("first_mask_s")
        return [row["failure"] + (f" ({seconds:.1f} s)" if seconds else "")]

    def times(value: float, reference: float | None) -> str:
        same = reference is None or row["peer"] == "ours" or reference <= 0
        return "" if same or reference is None else f" ({value / reference:.1f}x)"

    first, mask, step = row["first_mask_s"], row["mask"], row["step"]
    other = base.get("mask", {})
    return [
        (f"{first:.2f} s" if first >= 0.1 else f"{first * 1000:.1f} ms") + times(first, base.get("first_mask_s")),
        f"{mask['median_us']:.2f} us" + times(mask["median_us"], other.get("median_us")),
        f"{mask['p99_us']:.1f} us" + times(mask["p99_us"], other.get("p99_us")),
        f"{step['median_us']:.2f} us",
        f"{row['peak_mb']:.0f} MB" + times(row["peak_mb"], base.get("peak_mb") if row["n"] >= 100_000 else None),
        _verdict(row),
    ]


def _verdict(row: dict[str, Any]) -> str:
    if row["masks_wrong"]:
        return f"{row['masks_wrong']} of {row['masks_checked']} wrong"
    return f"{row['masks_narrower']} of {row['masks_checked']} narrower" if row["masks_narrower"] else "ok"


def main() -> None:
    """Run the rows that are asked for."""
    parser = make_parser(__doc__)
    parser.add_argument("--n", default=",".join(map(str, SIZES)), help="sizes, comma-separated (default: %(default)s)")
    parser.add_argument("--peer", default=",".join(ENGINES), help="engines, comma-separated (default: %(default)s)")
    parser.add_argument("--vocab", default=",".join(VOCABULARIES), help="models (default: %(default)s)")
    parser.add_argument("--texts", default="names", choices=["names", "letters"], help="(default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a row (default: %(default)s)")
    parser.add_argument("--memory", type=float, default=20.0, help="GB a row (default: %(default)s)")
    parser.add_argument("--work", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        peer, size, vocab, kind, model = options.work
        print(json.dumps(work(peer, int(size), vocab, kind, model)))
        return
    from kernel.models import catalogue as models

    console = Console(stderr=True, width=150)
    rows: list[dict[str, Any]] = []
    for vocab in options.vocab.split(","):
        model = str(models.resolve(vocab))
        gave_up: dict[str, str] = {}
        for size in map(int, options.n.split(",")):
            for peer in options.peer.split(","):
                row = {"peer": peer, "n": size, "vocab": vocab, "texts": options.texts}
                if peer in gave_up:
                    row["failure"] = gave_up[peer]
                else:
                    row |= run([peer, str(size), vocab, options.texts, model], options.timeout, options.memory)
                    if "failure" in row and row["failure"].startswith("over"):
                        gave_up[peer] = f"not tried: {row['failure']} at N = {size:,}"
                rows.append(row)
                console.print(f"{vocab} {size:>9,} {peer:<14}", " | ".join(_cells(row, {})), highlight=False)
    show(rows, Console(width=150))
    packages = [engine.package for engine in ENGINES.values() if engine.package]
    publish("trie", {"rows": rows}, options.out, packages)


if __name__ == "__main__":
    main()
