"""Counts what happens, and writes it in Prometheus' text form.

The form is the text exposition format 0.0.4 (prometheus.io, "Exposition formats"). It is a few lines, so no library
writes it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

BOUNDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0)
"""Upper bounds of the histogram, in seconds."""

ROUTES = ("/v1/chat/completions", "/v1/choose", "/v1/models", "/healthz", "/metrics")
"""What is counted by name; all else is `page`, so that no client can make names without end."""


@dataclass
class Metrics:
    """The counts of the requests: by route and status, and how long their answers took."""

    requests: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    buckets: dict[str, list[int]] = field(default_factory=dict)
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self.requests[route, status] += 1
        counts = self.buckets.setdefault(route, [0] * len(BOUNDS))
        for place, bound in enumerate(BOUNDS):
            counts[place] += seconds <= bound
        self.sums[route] += seconds


@dataclass(frozen=True)
class Sample:
    """One metric without labels."""

    name: str
    kind: str
    help: str
    value: float


def text(metrics: Metrics, samples: list[Sample]) -> str:
    """Return everything in the text form."""
    return "".join(f"{line}\n" for line in (*_of_requests(metrics), *_of_samples(samples)))


def _of_requests(metrics: Metrics) -> Iterator[str]:
    yield "# HELP kernel_requests_total Answered requests by route and status."
    yield "# TYPE kernel_requests_total counter"
    for (route, status), count in sorted(metrics.requests.items()):
        yield f'kernel_requests_total{{route="{route}",status="{status}"}} {count}'
    yield "# HELP kernel_request_seconds From the head of a request to the end of its answer."
    yield "# TYPE kernel_request_seconds histogram"
    for route, counts in sorted(metrics.buckets.items()):
        total = sum(count for (name, _), count in metrics.requests.items() if name == route)
        for bound, count in zip((*BOUNDS, "+Inf"), (*counts, total), strict=True):
            yield f'kernel_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}'
        yield f'kernel_request_seconds_sum{{route="{route}"}} {metrics.sums[route]:.6f}'
        yield f'kernel_request_seconds_count{{route="{route}"}} {total}'


def _of_samples(samples: list[Sample]) -> Iterator[str]:
    for sample in samples:
        yield f"# HELP {sample.name} {sample.help}"
        yield f"# TYPE {sample.name} {sample.kind}"
        yield f"{sample.name} {sample.value}"


class Counting:
    """An ASGI middleware that counts every answer, refusals included."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count what was answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 0, time.perf_counter()

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            route = scope["path"] if scope["path"] in ROUTES else "page"
            self.metrics.answered(route, status, time.perf_counter() - started)
