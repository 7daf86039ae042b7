"""How soon is a long log there to be looked at, and does a fast live session lose anything?

A planner's Tetris game of N decisions is logged as a model's game would be (`bench_log.py`), plain and compressed. A
server of its own is asked for it, as the page does: how long until the first rows and a first strip are there, until
the whole strip is, how long a jump to any decision takes while the log is being checked and afterwards, and how much
memory the server has. Targets: first row and strip in 1 s, a jump in 100 ms, 100 MB beyond the size of the file.

Then a session by chance is played as fast as it goes in the same server, and its events are counted at the other end of
a stream that breaks off and is taken up again. Target: 1,000 decisions a second, none lost.

    python benchmarks/bench_inspector.py [--decisions N] [--suffix .zst]
"""

from __future__ import annotations

import json
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_log import play, record
from harness import make_parser, publish

from cartridges.tetris import make
from dispatch.log.compression import SUFFIXES
from dispatch.log.objects import CartridgeRecord
from dispatch.log.records import Ending, Header, Outcome
from dispatch.log.writer import LogWriter

JUMPS = 200
LIVE = 10_000
"""Decisions of the live session."""
POLL_SECONDS = 0.02


def write(path: Path, decisions: int) -> None:
    """Log a planner's game."""
    cartridge = make("moves")
    engine = cartridge.engine()
    engine.reset(1)
    start = CartridgeRecord(
        name="tetris", version=cartridge.version, state=engine.state_hash(), options=dict(cartridge.options)
    )
    prompt = list(range(300))
    with LogWriter(path, Header(cartridges=(start,), seed=1)) as log:
        for n, (key, options) in enumerate(play(engine, decisions), 1):
            one = record(n, key, options, engine)
            prompt[200:] = [n + k for k in range(100)]
            log.decision(one, prompt=prompt, nulls=[prompt[:250]])
        log.outcome(Outcome(decisions=decisions, ending=Ending.LIMIT, summary={"tetris": dict(engine.summary())}))


class Client:
    """Asks a server."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.token = ""
        page = self.bytes("").decode()
        mark = 'name="kernel-token" content="'
        self.token = page[page.index(mark) + len(mark) :].partition('"')[0]

    def bytes(self, path: str, body: Any = None) -> bytes:
        """Return an answer."""
        headers = {"content-type": "application/json", "x-kernel-token": self.token}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}{path}", data, headers), timeout=60) as got:
            answer: bytes = got.read()
            return answer

    def json(self, path: str, body: Any = None) -> Any:
        """Return an answer as JSON."""
        return json.loads(self.bytes(path, body))

    def took(self, path: str) -> float:
        """Return how many milliseconds an answer took."""
        started = time.perf_counter()
        self.bytes(path)
        return 1000 * (time.perf_counter() - started)


@contextmanager
def serving(*things: str) -> Iterator[tuple[Client, int]]:
    """Give a client of a new server and the server's process id."""
    command = [sys.executable, "-m", "kernel", "serve", *things, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Client(process.stdout.readline().split()[1].rstrip("/") + "/"), process.pid
        finally:
            process.terminate()


def resident_mb(pid: int, what: str = "VmRSS") -> float:
    """Return the memory of a process: now, or at most (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def looked_at(path: Path, decisions: int, patience: float) -> dict[str, Any]:
    """Return what opening a log and jumping in it takes; the check is waited for so many seconds."""
    with serving(str(path)) as (client, pid):
        base = resident_mb(pid)
        place = f"api/s/{path.name}"
        started = time.perf_counter()
        rows = client.json(f"{place}/d?from=0&count=50")["rows"]
        first_row = time.perf_counter() - started
        known = struct.unpack("<8I", client.bytes(f"{place}/strip")[:32])[4]
        first_strip = time.perf_counter() - started
        while not (told := client.json(place))["complete"]:
            time.sleep(POLL_SECONDS)
        whole_strip = time.perf_counter() - started
        assert rows, "no row came"
        assert told["decisions"] == decisions, told["notes"]
        drawn = random.Random(1)
        jumps = [drawn.randint(1, decisions) for _ in range(JUMPS)]
        early = [client.took(f"{place}/d/{n}") for n in jumps]
        unfinished = client.json(place)["verified"]["state"]
        while (told := client.json(place))["verified"]["state"] == "checking":
            time.sleep(0.5)
            if time.perf_counter() - started > patience:
                break
        checked = time.perf_counter() - started
        late = [client.took(f"{place}/d/{n}") for n in jumps]
        shown = sum(client.json(f"{place}/d/{n}")["board_state"] == "shown" for n in jumps)
        return {
            "bytes": path.stat().st_size,
            "first_rows_s": round(first_row, 3),
            "first_strip_s": round(first_strip, 3),
            "first_strip_decisions": known,
            "whole_strip_s": round(whole_strip, 3),
            "jump_while_checking_ms": spread(early) if unfinished == "checking" else None,
            "checked_s": round(checked, 1),
            "checked_decisions": told["verified"]["decisions"],
            "verdict": told["verified"]["state"],
            "jump_ms": spread(late),
            "boards_shown": f"{shown} of {JUMPS}",
            "server_mb_before": round(base, 1),
            "server_mb_at_most": round(resident_mb(pid, "VmHWM"), 1),
        }


def spread(values: list[float]) -> dict[str, float]:
    """Return median, p99 and the largest."""
    found = (statistics.median(values), statistics.quantiles(values, n=100)[-1], max(values))
    return {name: round(value, 2) for name, value in zip(("median", "p99", "max"), found, strict=True)}


def live() -> dict[str, Any]:
    """Return how fast a session by chance is played in a server, and what a client that breaks off is told of it."""
    with serving("home") as (client, _):
        body = {"cartridges": ["home"], "player": "random", "limits": {"decisions": LIVE}, "seed": 1}
        started = time.perf_counter()
        name = client.json("api/live/start", body)["name"]
        told: list[int] = []
        breaks = 0
        last = "0"
        ended = 0.0
        while len(told) < LIVE:
            request = urllib.request.Request(f"{client.address}api/s/{name}/events", headers={"Last-Event-ID": last})
            with urllib.request.urlopen(request, timeout=60) as stream:
                for count, event in enumerate(events(stream)):
                    last = event["id"]
                    if event["event"] == "decisions":
                        data = json.loads(event["data"])
                        told += range(data["from"], data["from"] + data["count"])
                    if len(told) >= LIVE or (len(told) < LIVE and count == 9):
                        break
            breaks += 1
            live = client.json(f"api/s/{name}")
            if not ended and live["live"]["state"] == "ended":
                ended = time.perf_counter()
                if live["decisions"] < LIVE:  # the game was over before
                    break
        seconds = (ended or time.perf_counter()) - started
        decisions = client.json(f"api/s/{name}")["live"]["decisions"]
        return {
            "decisions": decisions,
            "decisions_per_second": round(decisions / seconds, 1),
            "events_lost": decisions - len(set(told)),
            "events_twice": len(told) - len(set(told)),
            "streams": breaks,
        }


def events(stream: Any) -> Iterator[dict[str, str]]:
    """Yield the events of a stream."""
    found: dict[str, str] = {}
    for raw in stream:
        line = raw.decode().rstrip("\n")
        name, colon, value = line.partition(": ")
        if colon and name:
            found[name] = value
        elif not line and "data" in found:
            yield found
            found = {}


def main() -> None:
    """Write the logs, look at them, play; print a table for people and one line of JSON."""
    parser = make_parser(__doc__)
    parser.add_argument("--decisions", type=int, default=100_000, help="of the log (default: %(default)s)")
    parser.add_argument("--suffix", action="append", help="of a log: .gz, .zst (default: plain and .gz)")
    parser.add_argument("--log", type=Path, help="a log of so many decisions that was written before")
    parser.add_argument("--patience", type=float, default=1e6, help="seconds for the check (default: to its end)")
    given = parser.parse_args()
    found: dict[str, Any] = {"decisions": given.decisions, "logs": {}}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in [given.log.suffix] if given.log else given.suffix or ("", ".gz"):
            path = given.log or Path(folder, f"long.jsonl{suffix}")
            if given.log is None:
                write(path, given.decisions)
            kind = suffix if suffix in SUFFIXES else "plain"
            found["logs"][kind] = looked_at(path, given.decisions, given.patience)
            for name, value in found["logs"][kind].items():
                print(f"{kind:6} {name:24} {value}", flush=True)
    found["live"] = live()
    for name, value in found["live"].items():
        print(f"live   {name:24} {value}")
    publish("inspector", found, given.out, ("starlette", "uvicorn"))


if __name__ == "__main__":
    main()
