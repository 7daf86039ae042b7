"""The sessions that can be looked at: logs that were named, logs in a folder, live ones. Few are open at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dispatch.inspector.jsonable import Json, brief
from dispatch.inspector.keeper import Foreground
from dispatch.inspector.opened import OpenedLog
from dispatch.inspector.vocabularies import Vocabularies
from dispatch.log.reader import LogReader
from dispatch.log.replay import MakeCartridge
from kernel.errors import LogError, NotThereError

SUFFIXES = (".jsonl", ".log", ".gz", ".zst")
"""Names of files that are listed of a folder; any file in it can be opened by its name."""
MOST_LISTED = 1000
MOST_OPEN = 8
"""Logs that are kept open; the one that was not used for longest, and is not followed, is closed for another."""


class Sessions:
    """Sessions by name.

    Args:
        logs: files that were named one by one.
        folder: whose files are sessions too; names lead nowhere else.
        make: builds the cartridges of logs.
    """

    def __init__(
        self, logs: Sequence[Path], folder: Path | None, make: MakeCartridge, vocabularies: Vocabularies
    ) -> None:
        self.foreground = Foreground()
        self._logs: dict[str, Path] = {}
        for path in logs:
            name, count = path.name, 1
            while name in self._logs:
                count += 1
                name = f"{path.name} ({count})"
            self._logs[name] = path
        self._folder = folder
        self._make = make
        self._vocabularies = vocabularies
        self._live: dict[str, OpenedLog] = {}
        self._opened: OrderedDict[str, OpenedLog] = OrderedDict()
        self._listed: dict[Path, tuple[tuple[float, int], Json]] = {}
        self._lock = threading.Lock()

    @property
    def default(self) -> str | None:
        """The session that is shown when none is asked for: the newest live one, or the only log."""
        if self._live:
            return list(self._live)[-1]
        return next(iter(self._logs)) if len(self._logs) == 1 and self._folder is None else None

    def listed(self) -> list[Json]:
        """Return all sessions, live ones first, then logs, the newest first."""
        paths = {**self._logs, **self._in_folder()}
        found = [self._line(name, path) for name, path in paths.items()]
        found.sort(key=lambda each: str(each["modified"]), reverse=True)
        live = [{**self._line(name, each.keeper.path), "kind": "live"} for name, each in reversed(self._live.items())]
        return live + found[:MOST_LISTED]

    def open(self, name: str) -> OpenedLog:
        """Return a session by its name; raises NotThereError where there is none, LogError where it is no log."""
        with self._lock:
            if name in self._live:
                return self._live[name]
            if name in self._opened:
                self._opened.move_to_end(name)
                return self._opened[name]
            made = OpenedLog(name, self._path(name), self._make, self._vocabularies, foreground=self.foreground)
            self._opened[name] = made
            idle = [other for other, each in self._opened.items() if not each.followers and each is not made]
            dropped = [self._opened.pop(other) for other in idle[: max(0, len(self._opened) - MOST_OPEN)]]
        for each in dropped:
            each.close()
        return made

    def add_live(self, name: str, path: Path, live: Callable[[], Json]) -> OpenedLog:
        """Take in a session that is being played, by the log that it writes."""
        made = OpenedLog(name, path, self._make, self._vocabularies, foreground=self.foreground)
        made.live = live
        with self._lock:
            self._live[name] = made
        return made

    def drop_live(self, name: str) -> None:
        """Forget a live session."""
        with self._lock:
            made = self._live.pop(name, None)
        if made is not None:
            made.close()

    def path(self, name: str) -> Path:
        """Return the file of a session; raises NotThereError where there is none."""
        live = self._live.get(name)
        return live.keeper.path if live is not None else self._path(name)

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            found = [*self._live.values(), *self._opened.values()]
            self._live.clear()
            self._opened.clear()
        for each in found:
            each.close()

    def _path(self, name: str) -> Path:
        if name in self._logs:
            return self._logs[name]
        if self._folder is not None and name and not any(c in name for c in "/\\\0") and name not in (".", ".."):
            try:
                root = self._folder.resolve(strict=True)
                found = (root / name).resolve(strict=True)
            except (OSError, RuntimeError):  # not there, too long a name, a loop of links
                found = None
            if found is not None and found.is_relative_to(root) and found.is_file():
                return found
        raise NotThereError(f"there is no session {brief(name)!r}")

    def _in_folder(self) -> dict[str, Path]:
        if self._folder is None:
            return {}
        found = {}
        try:
            names = sorted(path.name for path in self._folder.iterdir() if path.suffix in SUFFIXES)
        except OSError as error:
            raise LogError(f"the folder {str(self._folder)!r} cannot be read: {error.strerror}") from error
        for name in names:
            try:
                found[name] = self._path(name)
            except NotThereError:  # a link that leads out of the folder, or no file
                continue
        return found

    def _line(self, name: str, path: Path) -> Json:
        """Return what the list says of a log; its header is read again only when the file has changed."""
        try:
            stat = path.stat()
        except OSError:
            return _listed(name, 0, 0.0, error="it is gone")
        known = self._listed.get(path)
        if known is not None and known[0] == (stat.st_mtime, stat.st_size):
            return {**known[1], "name": name}
        made = _listed(name, stat.st_size, stat.st_mtime)
        try:
            with LogReader(path) as reader:
                header = reader.header
        except (LogError, OSError) as error:
            made["error"] = str(error)
        else:
            made |= {
                "started": header.started,
                "cartridges": [brief(each.name) for each in header.cartridges],
                "player": brief(header.player),
                "model": None if header.model is None else brief(header.model.name),
                "rule": None if header.rule is None else brief(header.rule.name),
                "seed": header.seed,
            }
        self._listed[path] = ((stat.st_mtime, stat.st_size), made)
        return made


def _listed(name: str, size: int, modified: float, error: str | None = None) -> Json:
    return {
        "name": name,
        "kind": "log",
        "bytes": size,
        "modified": datetime.fromtimestamp(modified, UTC).isoformat(timespec="seconds"),
        "started": None,
        "cartridges": [],
        "player": None,
        "model": None,
        "rule": None,
        "seed": None,
        "error": error,
    }
