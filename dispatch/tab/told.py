"""What a tab says of one session, of all of them, and of what it cannot do; docs/inspector.md has the forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from dispatch.inspector.columns import Filter
from dispatch.inspector.jsonable import Json
from dispatch.inspector.opened import OpenedLog
from dispatch.tab.errors import ConflictError, FieldError
from kernel.errors import ContextError, KernelError, NotThereError

Answer = tuple[int, str | bytes]
"""A status as of HTTP, and JSON as text or the bytes of a strip."""


def told(opened: OpenedLog, rest: Sequence[str], asked: Mapping[str, str]) -> Json | bytes:
    """Return what is asked of one session."""
    match rest:
        case []:
            return opened.summary()
        case ["strip"]:
            return opened.strip(int(asked.get("from", 1)))
        case ["changes"]:
            return opened.changes(int(asked.get("after", 0)))
        case ["least"]:
            return opened.least(int(asked.get("after", 0)) or None)
        case ["d"]:
            return opened.rows(int(asked.get("from", 0)), int(asked.get("count", 50)), _filter(asked))
        case ["d", n]:
            return opened.decision(int(n))
        case ["d", n, "prompt"]:
            return opened.prompt(int(n))
        case ["d", n, "t"]:
            return opened.ledger(int(n), None, int(asked.get("token", 0)))
        case ["d", n, "t", k]:
            return opened.ledger(int(n), int(k))
    raise NotThereError(f"a session has no {'/'.join(rest)[:100]!r}")


def _filter(asked: Mapping[str, str]) -> Filter:
    below, above = (float(asked[name]) if name in asked else None for name in ("margin_below", "ms_above"))
    return Filter(below, above, asked.get("cartridge"), asked.get("outcome"), int(asked.get("flags", 0)) or None)


def line(name: str, opened: OpenedLog) -> Json:
    """Return what the list says of a session."""
    header, path = opened.kept.index.header, opened.keeper.path
    stat = path.stat()
    return {
        "name": name,
        "kind": "log" if opened.live is None else "live",
        "bytes": stat.st_size,
        "modified": datetime.fromtimestamp(stat.st_mtime, UTC).isoformat(timespec="seconds"),
        "started": header.started,
        "cartridges": [each.name for each in header.cartridges],
        "player": header.player,
        "model": None if header.model is None else header.model.name,
        "rule": None if header.rule is None else header.rule.name,
        "seed": header.seed,
        "error": None,
    }


def refused(error: Exception) -> Answer:
    """Return an error as the page reads it; what nobody foresaw is told by its type."""
    status, message, param = 500, f"the tab failed: {type(error).__name__}: {error}", None
    match error:
        case FieldError():
            status, message, param = 422, str(error), error.param
        case NotThereError():
            status, message = 404, str(error)
        case ConflictError() | ContextError():
            status, message = 409, str(error)
        case KernelError():
            status, message = 400, str(error)
        case ValueError() | TypeError() | KeyError():
            status, message = 400, f"that cannot be asked of a tab: {error}"
    told = {
        "message": message,
        "type": "conflict" if status == 409 else type(error).__name__,
        "param": param,
        "code": None,
    }
    return status, json.dumps({"error": told})
