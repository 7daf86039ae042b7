"""What bounds a request: how large its body, how slow its sender, how long its answer, how many wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of the server; sizes in bytes, times in seconds.

    Attributes:
        body_bytes: of a request's body.
        body_seconds: from a request's head to the end of its body.
        head_seconds: from the first byte, or from the connection, to the end of a request's head.
        answer_seconds: of one request, the time in the queue included; what takes longer is given up.
        waiting: requests that have a place in the queue, the one that is being decided included.
        shared: decisions that are made in the same passes.
        connections: open at a time; more are told to come later.
    """

    body_bytes: int = 1 << 20
    body_seconds: float = 10.0
    head_seconds: float = 10.0
    answer_seconds: float = 120.0
    waiting: int = 64
    shared: int = 16
    connections: int = 256
