"""How many requests does `serve` answer, from one client and from sixteen, and what do shared passes add?

A server in this process, and clients in threads that ask again as soon as they are answered. Three kinds of requests:
a command of `home`, a call with two tools, one of five texts. Each is asked by one client, by many with every decision
on its own, and by many whose waiting decisions share their passes. An answer that differs from that of one client alone
is wrong.

    python benchmarks/bench_serve.py [--model MODEL] [--rule RULE] [--clients N] [--seconds S] [--threads N]

Target: many clients together are answered no less often than one. Run it with nothing else on the machine.
"""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness import make_parser, publish
from rich.console import Console
from rich.table import Table

from dispatch.loading.registry import load
from dispatch.serve.app import make_app
from dispatch.serve.limits import Limits
from dispatch.serve.queue import KernelQueue
from dispatch.serve.server import Server, bind
from dispatch.serve.services import Services
from dispatch.session.rules import make_rule
from kernel.api import Kernel

REQUESTS = ("I'm freezing", "kitchen light on please", "lock the door", "some music", "start cleaning", "it is dark")

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": told,
            "parameters": {"type": "object", "properties": {argument: schema}, "required": [argument]},
        },
    }
    for name, told, argument, schema in (
        ("set_temperature", "Heat or cool the house.", "degrees", {"type": "integer", "minimum": 15, "maximum": 25}),
        ("switch_light", "Switch the light of a room.", "room", {"enum": ["kitchen", "hall", "bedroom"]}),
    )
]

OPTIONS = ["heater warmer", "heater cooler", "light kitchen on", "door lock", "music play"]


def bodies(kind: str, model: str) -> list[tuple[str, bytes]]:
    """Return path and body of each request of a kind."""
    found: list[tuple[str, dict[str, Any]]] = []
    for request in REQUESTS:
        said = {"messages": [{"role": "user", "content": request}]}
        if kind == "home":
            found.append(("/v1/chat/completions", {"model": "home", **said}))
        elif kind == "tools":
            found.append(("/v1/chat/completions", {"model": model, "tools": TOOLS, **said}))
        else:
            prompts = {"prompt": f"Request: {request}\nCommand:", "null": "Request: N/A\nCommand:"}
            found.append(("/v1/choose", {**prompts, "options": OPTIONS}))
    return [(path, json.dumps(body).encode()) for path, body in found]


def answer_of(body: bytes) -> str:
    """Return what was chosen."""
    found = json.loads(body)
    if "choices" not in found:
        return str(found["text"])
    message = found["choices"][0]["message"]
    if "tool_calls" not in message:  # nothing of this seems to be meant
        return str(message["content"])
    function = message["tool_calls"][0]["function"]
    return f"{function['name']} {function['arguments']}"


@dataclass
class Served:
    """A server that runs."""

    port: int
    queue: KernelQueue

    def ask(self, connection: http.client.HTTPConnection, request: tuple[str, bytes]) -> str:
        """Send one request on a connection that stays open; return what was chosen."""
        connection.request("POST", request[0], request[1], {"Content-Type": "application/json"})
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise RuntimeError(body.decode())
        return answer_of(body)


@contextmanager
def server(kernel: Kernel, arguments: Any, shared: int) -> Iterator[Served]:
    """Run a server whose decisions share passes, up to so many."""
    limits = Limits(shared=shared)
    queue = KernelQueue(lambda: kernel, limits)
    rule = make_rule(arguments.rule) if arguments.rule else None
    made = Services(queue, arguments.model, lambda name: kernel, rule, (load("home"),), ("home",), limits=limits)
    with bind("127.0.0.1", 0) as listening:
        running = Server(make_app(made), made)
        thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield Served(listening.getsockname()[1], queue)
        finally:
            running.stop()
            thread.join(10)
            queue.end()


def measure(served: Served, requests: list[tuple[str, bytes]], clients: int, seconds: float) -> dict[str, Any]:
    """Let clients ask for so many seconds; return how often and how fast they were answered."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=600)
    expected = [served.ask(connection, request) for request in requests]  # what is read once is read now
    queue = served.queue
    before = served_counts(queue)
    times: list[list[float]] = [[] for _ in range(clients)]
    wrong: list[str] = []
    started = time.perf_counter()

    def ask(number: int) -> None:
        own = http.client.HTTPConnection("127.0.0.1", served.port, timeout=600)
        turn = number
        while time.perf_counter() - started < seconds:
            place, turn = turn % len(requests), turn + 1
            began = time.perf_counter()
            if (found := served.ask(own, requests[place])) != expected[place]:
                wrong.append(found)
            times[number].append(time.perf_counter() - began)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    decided, shared, passes, tokens = (now - then for now, then in zip(served_counts(queue), before, strict=True))
    every = sorted(each for client in times for each in client)
    counts = [len(client) for client in times]
    return {
        "clients": clients,
        "shared_at_most": queue.limits.shared,
        "answers": len(every),
        "answers_a_second": len(every) / took,
        "median_s": statistics.median(every),
        "p95_s": every[int(0.95 * (len(every) - 1))],
        "least_and_most_of_a_client": [min(counts), max(counts)],
        "wrong": len(wrong),
        "decisions": decided,
        "decisions_shared": shared,
        "passes_a_decision": passes / max(1, decided),
        "tokens_a_decision": tokens / max(1, decided),
    }


def served_counts(queue: KernelQueue) -> tuple[int, int, int, int]:
    """Return the counts of a queue."""
    return queue.decided, queue.shared, queue.passes, queue.tokens


def main() -> None:
    """Measure each kind of request."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rule", default=None)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {}
    table = Table(
        "requests", "clients", "shared", "a second", "median", "p95", "passes a decision", "tokens", "wrong", box=None
    )
    with Kernel.load(arguments.model, threads=arguments.threads) as kernel:
        for kind in ("home", "tools", "choose"):
            for clients, shared in ((1, 1), (arguments.clients, 1), (arguments.clients, Limits.shared)):
                with server(kernel, arguments, shared) as served:
                    row = measure(served, bodies(kind, arguments.model), clients, arguments.seconds)
                rows.setdefault(kind, []).append(row)
                table.add_row(
                    kind,
                    str(clients),
                    f"{row['decisions_shared']} of {row['decisions']}",
                    f"{row['answers_a_second']:.2f}",
                    f"{row['median_s']:.2f} s",
                    f"{row['p95_s']:.2f} s",
                    f"{row['passes_a_decision']:.2f}",
                    f"{row['tokens_a_decision']:.0f}",
                    str(row["wrong"]),
                )
    Console().print(table)
    settings = {"model": arguments.model, "rule": arguments.rule or "default", "seconds": arguments.seconds}
    publish("serve", {**settings, "rows": rows}, arguments.out, ("starlette", "uvicorn"))


if __name__ == "__main__":
    main()
