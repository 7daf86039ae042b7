"""What the page asks of a tab, answered by the code that a server asks; docs/inspector.md has the paths and the forms.

The worker makes one `Program` and hands it every question of the page. An answer is `(status, body)`; a body is JSON as
text, or the bytes of a strip.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from dispatch.inspector.jsonable import Json, dump
from dispatch.inspector.opened import OpenedLog
from dispatch.log.diff import diff
from dispatch.log.objects import CartridgeRecord, ModelRecord
from dispatch.session.players import PLAYERS
from dispatch.tab.benching import TabBench
from dispatch.tab.bridge import Bridge, TabVocabulary
from dispatch.tab.choosing import RULES, Chooser
from dispatch.tab.errors import ConflictError
from dispatch.tab.playing import Playing, Wish
from dispatch.tab.told import Answer, line, refused, told
from kernel.contract import Cartridge
from kernel.errors import CartridgeError, NotThereError, UsageError, did_you_mean, short

FOLDER = Path("/sessions")
MOST_SESSIONS = 4
"""Sessions that may be played at a time."""
MOST_SPEED = 10_000.0


class Vocabularies:
    """The one vocabulary that a tab has: that of its model."""

    def __init__(self, here: TabVocabulary) -> None:
        self._here = here

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
        presets: of the bench, those that were packed.
    """

    def __init__(
        self,
        bridge: Bridge,
        cartridges: Sequence[Cartridge],
        versions: Mapping[str, str],
        folder: Path = FOLDER,
        presets: Sequence[Json] = (),
    ) -> None:
        about = json.loads(bridge.about())
        self._bridge = bridge
        self._cartridges = {cartridge.name: cartridge for cartridge in cartridges}
        self._versions = dict(versions)
        self._folder = folder
        self._model = ModelRecord(name=about["model"], tokenizer=about["fingerprint"])
        vocabulary = TabVocabulary(bridge)
        self._vocabularies = Vocabularies(vocabulary)
        self.bench = TabBench(bridge, vocabulary, presets)
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
            return refused(error)
        return 200, found if isinstance(found, bytes) else dump(found).decode("ascii")

    async def lines(self, path: str, body: str, tell: Callable[[str], None]) -> Answer:
        """Tell the lines of a run of the bench, then return how it ended, as `answer` does."""
        try:
            if path != "/api/bench/run":
                raise NotThereError(f"a tab has no lines at {path[:200]!r}")
            await self.bench.run(json.loads(body), tell)
        except Exception as error:
            return refused(error)
        return 200, ""

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
            case ["api", "bench", "presets"]:
                return {"presets": self.bench.presets}
            case ["api", "bench", "stop"] if method == "POST":
                return {"stopped": self.bench.stop(str(body.get("run")))}
            case ["api", "live", action] if method == "POST":
                return self._act(action, body)
            case ["api", "s", name, *rest] if method == "GET":
                return told(self._read(name), rest, asked)
            case ["api", "s", _, "d", _, "again"]:
                raise ConflictError("a tab does not decide again; save the log, and use replay --decide")
        raise NotThereError(f"a tab has nothing at {place[:200]!r}")

    def _listed(self) -> Json:
        live = [name for name in reversed(self._opened) if name in self._live]
        logs = [name for name in reversed(self._opened) if name not in self._live]
        return {
            "sessions": [line(name, self._opened[name]) for name in (*live, *logs)],
            "default": live[0] if live else None,
            "model": self._model.name,
            "models": [],
            "rules": [str(rule) for rule in RULES],
            "cartridges": list(self._cartridges),
            "bench": bool(self.bench.presets),
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


def begin(bridge: Bridge, makers: str, versions: str, presets: str = "[]") -> Program:
    """Return the program of a tab; the worker calls it.

    Args:
        makers: JSON: what makes each cartridge, as `module:name`.
        versions: JSON: versions of the software by name.
        presets: JSON: of the bench.
    """
    cartridges = []
    for maker in json.loads(makers):
        module, _, name = maker.partition(":")
        cartridges.append(getattr(importlib.import_module(module), name)())
    return Program(bridge, cartridges, json.loads(versions), presets=json.loads(presets))


def _speed(value: Any) -> float | None:
    if value is None:
        return None
    if not 0 < float(value) <= MOST_SPEED:
        raise UsageError(f"speed: {value!r} is no number of decisions a second from 0 to {MOST_SPEED:g}")
    return float(value)
