"""A session that is played in the server, and how it is paced. It writes a log, through which the page sees it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dispatch.inspector.jsonable import Json, clip
from dispatch.loading.error_line import why
from dispatch.log.records import Ending
from dispatch.log.writer import LogWriter
from dispatch.session.guides import waits_for_requests
from dispatch.session.header import By, header
from dispatch.session.judging import judge_for
from dispatch.session.learned import default_rule
from dispatch.session.model_player import ModelPlayer
from dispatch.session.players import PLAYERS, Player, unaided
from dispatch.session.rules import make_rule, rule_for
from dispatch.session.session import Session
from dispatch.wire.form import form
from dispatch.wire.wire import Wire
from kernel.api import Kernel
from kernel.choose.rule import Rule, RuleName
from kernel.contract import Cartridge
from kernel.errors import ContextError, UsageError, WireError

TOGETHER_SECONDS = 0.025
"""Decisions that follow each other are made for so long before others have their turn at the kernel."""
CLOSE_SECONDS = 0.1
"""So long a decision that is being made is waited for when the server ends: nothing can stop a pass."""
MOST_WAITING = 100
"""Requests that may wait."""
MOST_SPEED = 10_000.0


@dataclass(frozen=True)
class Wish:
    """What is to be played.

    Attributes:
        player: model, planner or random.
        rule: None is what a session has where none is named.
        wire: form of the decoded text.
        limits: largest values of an engine's summary, by name, or `decisions`.
    """

    cartridges: Sequence[Cartridge]
    seed: int
    player: str
    model: str
    rule: Rule | None
    wire: str
    limits: Mapping[str, int | float] = field(default_factory=dict)


class LiveSession:
    """One session; `turns` is called on one thread at a time, everything else on any.

    Attributes:
        speed: decisions a second; None is as fast as it goes.
        paused: whether it waits.
        steps: decisions that are made although it is paused.
    """

    def __init__(self, wish: Wish, path: Path, kernel: Kernel | None, *, paused: bool, speed: float | None) -> None:
        """Begin it; `kernel` is given, on its thread, where a model plays."""
        self.paused = paused
        self.speed = speed
        self.steps = 0
        self.error: str | None = None
        self._requests: deque[str] = deque()
        self._lock = threading.Lock()
        self._stopping = False
        self._due = time.monotonic()
        self.asks = wish.player == "model" and waits_for_requests(wish.cartridges)
        if kernel is not None and wish.rule is None:
            taught = default_rule(kernel, wish.cartridges, wish.wire) if self.asks else None
            wish = replace(wish, rule=taught or make_rule(None))
        if wish.rule is not None:
            wish = replace(wish, rule=rule_for(wish.rule, wish.cartridges))
        self._session = Session(wish.cartridges, _player(wish, kernel), seed=wish.seed, limits=wish.limits)
        by = None
        player = self._session.player
        if isinstance(player, ModelPlayer) and wish.rule is not None:
            learned = player.kernel.learned_of(player.opcodes) if wish.rule.name is RuleName.LEARNED else None
            by = By(player.kernel, wish.model, wish.rule, wish.wire, player.max_tokens, learned)
        self._writer = LogWriter(path, header(self._session, by))
        self._session.write_to(self._writer)

    @property
    def ended(self) -> bool:
        """Whether its log has its last line."""
        return self._session.ending is not None

    def told(self) -> Json:
        """Return how it stands, as the page is told."""
        session = self._session
        state = "ended" if self.ended else "paused" if self.paused and not self.steps else "playing"
        return {
            "state": state,
            "speed": self.speed,
            "decisions": session.tally.decisions,
            "ending": None if session.ending is None else str(session.ending),
            "detail": clip(session.detail) if self.ended else None,
            "error": None if self.error is None else clip(self.error),
            "asks": self.asks,
            "stopping": self._stopping and not self.ended,
        }

    def play(self) -> None:
        """Go on."""
        self.paused, self.steps, self._due = False, 0, time.monotonic()

    def pause(self) -> None:
        """Make no decision behind the one that is being made."""
        self.paused, self.steps = True, 0

    def step(self, count: int) -> None:
        """Make so many decisions, then pause."""
        self.paused, self.steps = True, self.steps + count

    def stop(self) -> None:
        """End when the decision that is being made is made."""
        self._stopping = True

    def ask(self, request: str) -> int:
        """Take a request; return how many wait."""
        if not request.strip():
            raise UsageError("a request is not blank")
        if len(self._requests) >= MOST_WAITING:
            raise UsageError(f"{MOST_WAITING} requests wait already")
        self._requests.append(request)
        return len(self._requests)

    def wait_seconds(self) -> float | None:
        """Return how long nothing is to be done; 0 when something is, None until somebody does something."""
        if self.ended:
            return None
        if self._stopping:
            return 0.0
        if (self.asks and not self._requests) or (self.paused and not self.steps):
            return None
        return 0.0 if self.speed is None or self.steps else max(0.0, self._due - time.monotonic())

    def turns(self) -> int:
        """Make the decisions that are due, for a moment at most; return how many."""
        until, made = time.monotonic() + TOGETHER_SECONDS, 0
        with self._lock:
            while not self.ended and self.wait_seconds() == 0.0:
                if self._stopping:
                    self._session.end(Ending.INTERRUPTED, "stopped in the page")
                elif self._session.over():
                    self._session.end_log()
                else:
                    made += self._turn()
                if time.monotonic() > until:
                    break
        return made

    def close(self, detail: str) -> None:
        """End it, if it has not ended, and close its log; one that is in the middle of a decision is left as it is."""
        if not self._lock.acquire(timeout=CLOSE_SECONDS):
            return
        try:
            if not self.ended:
                self._session.end(Ending.INTERRUPTED, detail)
            self._writer.close()
        finally:
            self._lock.release()

    def _turn(self) -> int:
        request = self._requests.popleft() if self.asks else ""
        if self.speed is not None:
            self._due = max(self._due + 1 / self.speed, time.monotonic() - 1.0)
        try:
            self._session.turn(request)
            self._session.lapse()  # nobody can be asked in the page, so what has to be agreed to is not done
        except (ContextError, WireError) as error:
            if not self.asks:
                self._fail(error)
            else:  # this request alone
                self.error = f"{request!r}: {error}"
            return 0
        except Exception as error:  # an author's engine or view as well
            self._fail(error)
            return 0
        self.error = None
        self.steps = max(0, self.steps - 1)
        if self._session.over():
            self._session.end_log()
        return 1

    def _fail(self, error: Exception) -> None:
        self.error = why(error)
        self._session.end(Ending.ERROR, self.error)


def _player(wish: Wish, kernel: Kernel | None) -> Player:
    if (plain := unaided(wish.player, wish.seed)) is not None:
        return plain
    if wish.player != "model" or kernel is None or wish.rule is None:
        raise UsageError(f"player: there is no {wish.player!r}; there is: {', '.join(PLAYERS)}")
    wire = Wire(wish.cartridges, form(wish.wire))
    player = ModelPlayer(kernel, wire, wish.cartridges, wish.rule, ledger=True)
    player.judge = judge_for(kernel, wish.cartridges, wish.rule)
    return player
