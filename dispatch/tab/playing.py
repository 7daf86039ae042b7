"""A session that is played in the tab, and how it is paced; it writes a log, through which the page sees it."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatch.inspector.jsonable import Json, clip
from dispatch.loading.error_line import why
from dispatch.log.objects import ModelRecord, RuleRecord
from dispatch.log.records import Ending, Header
from dispatch.log.writer import LogWriter
from dispatch.session.players import Player, unaided
from dispatch.session.session import Session
from dispatch.session.settling import Made, settle
from dispatch.session.turn import Turn
from dispatch.tab.choosing import WIRE, Chooser
from kernel.choose.kinds import RuleName
from kernel.contract import Cartridge


@dataclass(frozen=True)
class Wish:
    """What is to be played.

    Attributes:
        chooser: the tab's kernel; None where the planner or chance plays.
        model: record of the model that chooses.
        limits: largest values of an engine's summary, by name, or `decisions`.
        versions: of the software, for the log.
    """

    cartridge: Cartridge
    seed: int
    player: str
    chooser: Chooser | None
    model: ModelRecord
    limits: Mapping[str, int | float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


class Playing:
    """One session, which one task plays.

    Attributes:
        speed: decisions a second; None is as fast as it goes.
        paused: whether it waits.
        steps: decisions that are made although it is paused.
    """

    def __init__(
        self, wish: Wish, path: Path, keep: Callable[[str], None], *, paused: bool, speed: float | None
    ) -> None:
        """Begin it.

        Args:
            path: of its log.
            keep: is given the lines of the log as they are written, to keep them where a reload does not reach.
        """
        self.paused = paused
        self.speed = speed
        self.steps = 0
        self.error: str | None = None
        self._chooser = wish.chooser
        self._stopping = False
        self._due = time.monotonic()
        self._changed = asyncio.Event()
        self._session = Session([wish.cartridge], _player(wish), seed=wish.seed, limits=wish.limits)
        self._writer = LogWriter(path, _header(self._session, wish))
        self._session.write_to(self._writer)
        self._path, self._kept, self._keep = path, 0, keep
        self._keep_lines()

    @property
    def ended(self) -> bool:
        """Whether its log has its last line."""
        return self._session.ending is not None

    def told(self) -> Json:
        """Return how it stands, as the page is told."""
        session = self._session
        return {
            "state": "ended" if self.ended else "paused" if self.paused and not self.steps else "playing",
            "speed": self.speed,
            "decisions": session.tally.decisions,
            "ending": None if session.ending is None else str(session.ending),
            "detail": clip(session.detail) if self.ended else None,
            "error": None if self.error is None else clip(self.error),
            "asks": False,
            "stopping": self._stopping and not self.ended,
        }

    def play(self) -> None:
        """Go on."""
        self.paused, self.steps, self._due = False, 0, time.monotonic()
        self._changed.set()

    def pause(self) -> None:
        """Make no decision behind the one that is being made."""
        self.paused, self.steps = True, 0
        self._changed.set()

    def step(self, count: int) -> None:
        """Make so many decisions, then pause."""
        self.paused, self.steps = True, self.steps + count
        self._changed.set()

    def stop(self) -> None:
        """End when the decision that is being made is made."""
        self._stopping = True
        self._changed.set()

    def pace(self, speed: float | None) -> None:
        """Make so many decisions a second; None is as fast as it goes."""
        self.speed = speed
        self._changed.set()

    async def run(self) -> None:
        """Make the decisions as they are due, until the session has ended."""
        while not self.ended:
            self._changed.clear()
            wait = self._wait_seconds()
            if self._stopping:
                self._session.end(Ending.INTERRUPTED, "stopped in the page")
            elif wait:
                await self._until_changed(wait)
            elif self._session.over():
                self._session.end_log()
            else:
                await self._turn()
                await asyncio.sleep(0)  # the page's questions have their turn
            self._keep_lines()

    def close(self, detail: str) -> None:
        """End it, if it has not ended, and close its log."""
        if not self.ended:
            self._session.end(Ending.INTERRUPTED, detail)
        self._writer.close()

    def _keep_lines(self) -> None:
        """Hand on the lines that were written since the last time."""
        with self._path.open("rb") as file:
            file.seek(self._kept)
            lines = file.read()
        self._kept += len(lines)
        if lines:
            self._keep(lines.decode())

    def _wait_seconds(self) -> float:
        """Return how long nothing is to be done; infinity until somebody does something."""
        if self.paused and not self.steps:
            return float("inf")
        return 0.0 if self.speed is None or self.steps else max(0.0, self._due - time.monotonic())

    async def _until_changed(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _turn(self) -> None:
        if self.speed is not None:
            self._due = max(self._due + 1 / self.speed, time.monotonic() - 1.0)
        try:
            await self._decide()
            self._session.lapse()  # nobody can be asked in the page, so what has to be agreed to is not done
        except Exception as error:  # an author's engine or view as well
            self.error = why(error)
            self._session.end(Ending.ERROR, self.error)
            return
        self.error = None
        self.steps = max(0, self.steps - 1)
        if self._session.over():
            self._session.end_log()

    async def _decide(self) -> Turn:
        """Make one decision, as `Session.turn` does; the kernel beside answers later."""
        session = self._session
        if self._chooser is None:
            return session.turn()
        session.lapse()
        number = session.tally.decisions + 1
        started = time.perf_counter()
        situation, offered = session.situation(number, "")
        ms = 1000 * (time.perf_counter() - started)
        return settle(session, Made(number, "", offered, ms, await self._chooser.decide(situation)))


def _player(wish: Wish) -> Player:
    player = unaided(wish.player, wish.seed) or wish.chooser
    assert player is not None, "a model plays only where there is one"
    return player


def _header(session: Session, wish: Wish) -> Header:
    """Return the first line of the log."""
    known: dict[str, Any] = {}
    if wish.chooser is not None:
        parameters: dict[str, float] = {"planner_weight": 0.0}
        if wish.chooser.rule is RuleName.CALIBRATED:
            parameters["calibration"] = 1.0
        known = {"rule": RuleRecord(name=str(wish.chooser.rule), parameters=parameters), "model": wish.model}
    return Header(
        cartridges=session.records,
        seed=wish.seed,
        player=wish.player,
        limits=dict(wish.limits) or None,
        versions={**wish.versions, "python": platform.python_version()},
        wire=WIRE if wish.chooser is not None else None,
        **known,
    )
