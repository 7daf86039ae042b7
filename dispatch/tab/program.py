"""What the page asks of a tab, answered by the code that a server asks; docs/inspector.md has the paths and the forms.

The worker makes one `Program` and hands it every question of the page. An answer is `(status, body)`; a body is JSON as
text, or the bytes of a strip.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from dispatch.inspector.columns import Filter
from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import OpenedLog
from dispatch.log.diff import diff
from dispatch.log.objects import CartridgeRecord, ModelRecord
from dispatch.tab.bridge import Bridge, TabVocabulary
from dispatch.tab.choosing import RULES, Chooser
from dispatch.tab.playing import Playing, Wish
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, ContextError, KernelError, NotThereError, UsageError, did_you_mean, short

FOLDER = Path("/sessions")
PLAYERS = ("model", "planner", "random")
MOST_SESSIONS = 4
"""Sessions that may be played at a time."""
MOST_SPEED = 10_000.0
Answer = tuple[int, str | bytes]


class ConflictError(UsageError):
    """It is not possible now."""


class Vocabularies:
    """The one vocabulary that a tab has: that of its model."""

    def __init__(self, bridge: Bridge) -> None:
        self._here = TabVocabulary(bridge)

    def of(self, header: Any, seconds: float = 0.0) -> Any:
        """Return the vocabulary of a log; None where another model wrote it."""
        return self._here if header.model is not None and header.model.tokenizer == self._here.fingerprint else None


class Program:
    """The sessions of a tab.

    Args:
        bridge: the kernel beside.
        cartridges: that may be played.
        versions: of the software, for logs.
        folder: where logs are written; in a tab it is memory.
    """

    def __init__(
        self, bridge: Bridge, cartridges: Sequence[Cartridge], versions: Mapping[str, str], folder: Path = FOLDER
    ) -> None:
        about = json.loads(bridge.about())
        self._bridge = bridge
        self._cartridges = {cartridge.name: cartridge for cartridge in cartridges}
        self._versions = dict(versions)
        self._folder = folder
        self._model = ModelRecord(name=about["model"], tokenizer=about["fingerprint"])
        self._vocabularies = Vocabularies(bridge)
        self._opened: dict[str, OpenedLog] = {}
        self._live: dict[str, Playing] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)
        folder.mkdir(parents=True, exist_ok=True)

    async def answer(self, method: str, path: str, body: str) -> Answer:
        """Return what the page is told."""
        try:
            found = self._answer(method, path, json.loads(body or "null"))
        except Exception as error:
            return _refused(error)
        return 200, found if isinstance(found, bytes) else dump(found).decode("ascii")

    def take(self, name: str, text: str) -> None:
        """Take in a log that was kept from before; it is shown beside the sessions that are played."""
        path = self._folder / f"{next(self._numbers)}.jsonl"
        path.write_bytes(text.encode())
        self._opened[name] = self._open(name, path)

    def log(self, name: str) -> bytes:
        """Return the log of a session, as far as it is written."""
        return self._session(name).keeper.path.read_bytes()

    def _answer(self, method: str, path: str, body: Any) -> Json | bytes:
        place, _, question = path.partition("?")
        asked = dict(parse_qsl(question))
        match [unquote(each) for each in place.strip("/").split("/")]:
            case ["api", "sessions"]:
                return self._listed()
            case ["api", "diff"]:
                return self._compared(asked)
            case ["api", "live", action] if method == "POST":
                return self._act(action, body)
            case ["api", "s", name, *rest] if method == "GET":
                return _told(self._read(name), rest, asked)
        raise NotThereError(f"a tab has nothing at {place[:200]!r}")

    def _listed(self) -> Json:
        live = [name for name in reversed(self._opened) if name in self._live]
        logs = [name for name in reversed(self._opened) if name not in self._live]
        return {
            "sessions": [_line(name, self._opened[name]) for name in (*live, *logs)],
            "default": live[0] if live else None,
            "model": self._model.name,
            "models": [],
            "rules": [str(rule) for rule in RULES],
            "cartridges": list(self._cartridges),
            "bench": False,
            "starting": False,
        }

    def _compared(self, asked: Mapping[str, str]) -> Json:
        paths = [self._session(asked.get(name, "")).keeper.path for name in ("a", "b")]
        return diff(*paths).model_dump(mode="json")

    def _act(self, action: str, body: Mapping[str, Any]) -> Json:
        if action == "start":
            return self._start(body)
        name = str(body.get("session", ""))
        playing = self._live.get(name)
        if playing is None:
            raise NotThereError(f"there is no live session {short(name)}")
        if playing.ended and action in ("play", "pause", "step"):
            raise ConflictError("the session has ended")
        match action:
            case "play":
                playing.play()
            case "pause":
                playing.pause()
            case "stop":
                playing.stop()
            case "step":
                playing.step(max(1, int(body.get("count") or 1)))
            case "speed":
                playing.pace(_speed(body.get("speed")))
            case _:
                raise NotThereError(f"a tab does not {short(action)}")
        return {"live": playing.told()}

    def _start(self, body: Mapping[str, Any]) -> Json:
        """Begin a session; raises UsageError for what cannot be played."""
        if sum(not each.ended for each in self._live.values()) >= MOST_SESSIONS:
            raise ConflictError(f"{MOST_SESSIONS} sessions are being played; stop one")
        (wanted,) = body["cartridges"]
        if wanted not in self._cartridges:
            raise UsageError(f"no cartridge {short(wanted)} is in this tab{did_you_mean(wanted, self._cartridges)}")
        cartridge, player = self._cartridges[wanted], body.get("player") or "model"
        if player not in PLAYERS:
            raise UsageError(f"player: there is no {short(player)}; there is: {', '.join(PLAYERS)}")
        chooser = Chooser(self._bridge, cartridge, body.get("rule")) if player == "model" else None
        limits = {str(name): int(most) for name, most in (body.get("limits") or {}).items()}
        wish = Wish(cartridge, int(body.get("seed") or 0), player, chooser, self._model, limits, self._versions)
        number = next(self._numbers)
        name, path = f"live:{number}", self._folder / f"{number}.jsonl"
        paused, speed = bool(body.get("paused")), _speed(body.get("speed"))
        playing = Playing(wish, path, partial(self._bridge.keep, name), paused=paused, speed=speed)
        opened = self._open(name, path)
        opened.live = playing.told
        self._live[name], self._opened[name] = playing, opened
        task = asyncio.ensure_future(playing.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return {"name": name, "live": playing.told()}

    def _open(self, name: str, path: Path) -> OpenedLog:
        return OpenedLog(name, path, self._make, self._vocabularies, until=0)  # type: ignore[arg-type]

    def _make(self, record: CartridgeRecord) -> Cartridge:
        """Return the cartridge that a log names, if it is in the tab with the same options."""
        found = self._cartridges.get(record.name)
        if found is None or dict(found.options) != (record.options or {}):
            raise CartridgeError(f"cartridge {record.name!r} with these options is not in this tab")
        return found

    def _session(self, name: str) -> OpenedLog:
        if name not in self._opened:
            raise NotThereError(f"there is no session {short(name)}")
        return self._opened[name]

    def _read(self, name: str) -> OpenedLog:
        """Return a session, read and checked to the end of what is written."""
        opened = self._session(name)
        opened.keeper.finish()
        return opened


def begin(bridge: Bridge, makers: str, versions: str) -> Program:
    """Return the program of a tab; the worker calls it.

    Args:
        makers: JSON: what makes each cartridge, as `module:name`.
        versions: JSON: versions of the software by name.
    """
    cartridges = []
    for maker in json.loads(makers):
        module, _, name = maker.partition(":")
        cartridges.append(getattr(importlib.import_module(module), name)())
    return Program(bridge, cartridges, json.loads(versions))


def _told(opened: OpenedLog, rest: Sequence[str], asked: Mapping[str, str]) -> Json | bytes:
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


def _line(name: str, opened: OpenedLog) -> Json:
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


def _speed(value: Any) -> float | None:
    if value is None:
        return None
    if not 0 < float(value) <= MOST_SPEED:
        raise UsageError(f"speed: {value!r} is no number of decisions a second from 0 to {MOST_SPEED:g}")
    return float(value)


def _refused(error: Exception) -> Answer:
    """Return an error as the page reads it; what nobody foresaw is told by its type."""
    status, message = 500, f"the tab failed: {type(error).__name__}: {error}"
    match error:
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
        "param": None,
        "code": None,
    }
    return status, json.dumps({"error": told})
