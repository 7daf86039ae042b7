"""What happens in a session, as events that a client can take up again where it lost them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from dispatch.inspector.jsonable import dump
from dispatch.inspector.opened import MOST_TOLD, OpenedLog
from dispatch.serve.streams import Event

EVERY_SECONDS = 0.05
"""Between two events: twenty a second at most, each with all decisions since the last."""
STATE_SECONDS = 0.25
"""Between two events that say only how far the check is."""


async def events(opened: OpenedLog, told: str | None) -> AsyncIterator[Event]:
    """Yield the events of a session; the decisions are those of its log, so that none is lost on the way.

    Args:
        told: the id of the last event that the client has, or the number of the last decision; None begins now.
    """
    opened.followers += 1
    try:
        async for event in _told(opened, *_place(told, opened)):
            yield event
    finally:
        opened.followers -= 1


async def _told(opened: OpenedLog, generation: int, after: int) -> AsyncIterator[Event]:
    state, said, at = None, b"", 0.0
    while True:
        kept = opened.kept
        if kept.generation != generation:
            generation, after = kept.generation, 0
            yield _event("reset", generation, after, dump({"generation": generation}))
        columns = kept.index.columns
        behind = columns.count - after
        if behind > 0:
            data = {**columns.told(after + 1, MOST_TOLD), "names": columns.names()}
            after += data["count"]
            yield _event("decisions", generation, after, dump(data))
        now = opened.state()
        live = (now["live"], now["verified"]["state"], now["complete"])
        if live != state or (time.monotonic() - at > STATE_SECONDS and dump(now) != said):
            state, said, at = live, dump(now), time.monotonic()
            yield _event("state", generation, after, said)
        await asyncio.sleep(0 if behind > MOST_TOLD else EVERY_SECONDS)


def _place(told: str | None, opened: OpenedLog) -> tuple[int, int]:
    """Return the generation and the number of the last decision that a client has."""
    kept = opened.kept
    generation, dash, after = (told or "").rpartition("-")
    if not (after.isascii() and after.isdecimal() and len(after) < 12):
        return kept.generation, kept.index.columns.count
    if dash and (not generation.isdecimal() or len(generation) > 9):
        return kept.generation, kept.index.columns.count
    return int(generation) if dash else kept.generation, int(after)


def _event(kind: str, generation: int, after: int, data: bytes) -> Event:
    return {"event": kind, "id": f"{generation}-{after}", "data": data.decode("ascii")}
