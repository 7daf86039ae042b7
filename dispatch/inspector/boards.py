"""Boards of any decision: the nearest engines that were kept on the way are played on to it, and drawn as runs."""

from __future__ import annotations

import contextlib
import io
import threading
from collections import OrderedDict
from typing import Any, NamedTuple

from pydantic_core import from_json
from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from dispatch.inspector.index import LogIndex
from dispatch.inspector.jsonable import Json
from dispatch.log.objects import InstructionRecord
from dispatch.log.records import Joined, held
from dispatch.log.replay import MakeCartridge
from dispatch.session.board import Board
from kernel.contract import Cartridge, Engine
from kernel.errors import IllegalInstructionError
from kernel.opcode import HALT_INSTRUCTION
from kernel.recent import keep, recall

FIRST = 16
"""Decisions between two kept engines, at first."""
MOST = 1024
"""So many are kept; then every second one is let go."""
RECENT = 64
"""Engines that were asked for are kept as well, so that going on and back is one step."""
WIDTH = 100
"""Columns in which a board is drawn."""


class Engines(NamedTuple):
    """The engines after a decision, and the cartridges that take part. They are to be looked at, or copied."""

    engines: dict[str, Engine]
    cartridges: dict[str, Cartridge]


class Snapshots:
    """Engines after some decisions of a log, evenly spread, from which those after any other are played."""

    def __init__(self, index: LogIndex, make: MakeCartridge) -> None:
        self._index = index
        self._make = make
        self._kept: dict[int, Engines] = {}
        self._every = FIRST
        self._recent: OrderedDict[int, Engines] = OrderedDict()
        self._lock = threading.Lock()

    def due(self, n: int) -> bool:
        """Return whether the engines after decision `n` are to be kept."""
        return n % self._every == 0

    def take(self, n: int, engines: dict[str, Engine], cartridges: dict[str, Cartridge]) -> None:
        """Keep copies of the engines after decision `n`."""
        copied = _copies(Engines(engines, cartridges))
        with self._lock:
            self._kept[n] = copied
            if len(self._kept) > MOST:
                self._every *= 2
                self._kept = {at: each for at, each in self._kept.items() if at % self._every == 0}

    def at(self, n: int) -> Engines:
        """Return the engines after decision `n`, which has been checked."""
        with self._lock:
            known = recall(self._recent, n)
            if known is not None:
                return known
            near = [at for at in (*self._kept, *self._recent) if at <= n]
            start = max(near)
            found = _copies(self._recent.get(start) or self._kept[start])
        for at in range(start + 1, n + 1):
            self._play(found, at)
        with self._lock:
            keep(self._recent, n, found, RECENT)
        return found

    def _play(self, found: Engines, n: int) -> None:
        """Let the engines take decision `n`, which is known to hold."""
        for change in self._index.changes_between(n - 1, n):
            if isinstance(change, Joined):
                cartridge = self._make(change.cartridge)
                joined = cartridge.engine()
                joined.reset(self._index.header.seed)
                found.engines[change.cartridge.name], found.cartridges[change.cartridge.name] = joined, cartridge
            else:
                del found.engines[change.cartridge], found.cartridges[change.cartridge]
        line: dict[str, Any] = from_json(self._index.line(n))
        instruction = InstructionRecord(**line["instruction"]).instruction()
        undone = held(line.get("outcome"), line.get("confirmed"), settled=bool(line.get("settled")))
        if undone or line.get("refused") or instruction == HALT_INSTRUCTION:
            return
        engine: Any = found.engines[line["cartridge"]]
        with contextlib.suppress(IllegalInstructionError):
            if found.cartridges[line["cartridge"]].acts_outside:
                engine.recall(instruction, line.get("result", ""))
            else:
                engine.apply(instruction)


def _copies(of: Engines) -> Engines:
    return Engines({name: engine.copy() for name, engine in of.engines.items()}, dict(of.cartridges))


def drawn(cartridge: Cartridge, engine: Engine) -> Json:
    """Return the board of an engine: `{"lines": [[run, ...], ...]}`, neighbours of one style in one run."""
    console = Console(
        width=WIDTH, file=io.StringIO(), color_system="truecolor", force_terminal=True, legacy_windows=False
    )
    lines = console.render_lines(Board(cartridge.view, engine), pad=False)
    rows = [_runs(line) for line in lines]
    while rows and not rows[-1]:
        rows.pop()
    return {"lines": rows}


def _runs(line: list[Segment]) -> list[Json]:
    runs: list[Json] = []
    for text, style, _ in line:
        run = _run(text.rstrip("\n"), style or Style.null())
        if runs and all(runs[-1][name] == run[name] for name in run if name != "text"):
            runs[-1]["text"] += run["text"]
        elif run["text"]:
            runs.append(run)
    return runs


def _run(text: str, style: Style) -> Json:
    return {
        "text": text,
        "fg": _hex(style.color),
        "bg": _hex(style.bgcolor),
        "bold": bool(style.bold),
        "dim": bool(style.dim),
        "reverse": bool(style.reverse),
    }


def _hex(color: Color | None) -> str | None:
    return None if color is None or color.is_default else color.get_truecolor().hex
