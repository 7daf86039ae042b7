"""Counts over many logs, grouped by cartridge, player and rule, in constant memory.

Checksums are verified while the logs are read; states are not, since no engine is run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Header
from dispatch.log.tally import Tally
from kernel.errors import LogError

SLOWEST = 5
"""So many slowest decisions are named."""
NAMED = 20
"""So many damaged files are named; the rest is counted."""
COUNTS = ("decisions", "held", "refused", "failed", "passes", "tokens_evaluated")
"""Sums of a group that are those of its tally."""
_STEP = math.log(1.02)


class Histogram:
    """Quantiles of positive numbers to within 1 %, in the memory of its buckets.

    >>> h = Histogram()
    >>> for ms in range(1, 1001): h.add(ms)
    >>> round(h.quantile(0.5)), round(h.quantile(0.99))
    (502, 984)
    """

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._count = 0

    def add(self, value: float) -> None:
        """Count a value; what is not above a millionth, or not finite, counts as a millionth."""
        self._buckets[round(math.log(value) / _STEP) if 1e-6 < value < math.inf else -700] += 1
        self._count += 1

    def quantile(self, q: float) -> float | None:
        """Return the value below which a share `q` lies; None without values."""
        left = q * self._count
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return math.exp(bucket * _STEP)
        return None


class Slow(BaseModel):
    """A decision that took long."""

    ms: float
    path: str
    n: int


class Group(BaseModel):
    """What all sessions of one cartridge, player and rule have in common."""

    model_config = ConfigDict(frozen=True)

    cartridge: str
    player: str
    rule: str
    sessions: int
    decisions: int
    decisions_per_second: float | None
    agree_first: float | None
    """Share of decisions that took the planner's best option, of those where it offered any."""
    agree_any: float | None
    """Share of decisions that took one of the options it offered."""
    refused: int
    held: int
    """Decisions after which nothing was done, as nothing was chosen or nobody agreed."""
    outcomes: dict[str, int]
    """How many decisions ended in which way."""
    confirmed: dict[str, int]
    """What became of the instructions that somebody has to agree to."""
    failed: int
    """Of those refused, the instructions that were tried and failed outside the engine."""
    passes: int
    tokens_evaluated: int
    ms_median: float | None
    ms_p99: float | None
    endings: dict[str, int]


class Stats(BaseModel):
    """Counts over some logs."""

    files: int
    groups: tuple[Group, ...]
    slowest: tuple[Slow, ...]
    damaged: int
    """Files that are damaged or cannot be read; what stands before the damage is counted."""
    damages: tuple[str, ...]


class _Sessions:
    """The sessions of a group so far."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.count = self.timed = 0
        self.seconds = 0.0
        self.ms = Histogram()
        self.endings: Counter[str] = Counter()

    def group(self, cartridge: str, player: str, rule: str) -> Group:
        tally = self.tally
        return Group(
            cartridge=cartridge,
            player=player,
            rule=rule,
            sessions=self.count,
            decisions_per_second=self.timed / self.seconds if self.seconds > 0 else None,
            agree_first=tally.agreed_first / tally.with_offer if tally.with_offer else None,
            agree_any=tally.agreed / tally.with_offer if tally.with_offer else None,
            ms_median=self.ms.quantile(0.5),
            ms_p99=self.ms.quantile(0.99),
            endings=dict(self.endings),
            outcomes=dict(tally.outcomes),
            confirmed=dict(tally.confirmed),
            **{name: getattr(tally, name) for name in COUNTS},
        )


def names(header: Header) -> tuple[str, str, str]:
    """Return the cartridges, the player (a model by its name) and the rule of a session."""
    cartridges = "+".join(cartridge.name for cartridge in header.cartridges)
    return cartridges, header.model.name if header.model else header.player, header.rule.name if header.rule else ""


def took_ms(record: DecisionRecord) -> float | None:
    """Return the time in model and planner, as far as it was logged."""
    if record.model_ms is None and record.planner_ms is None:
        return None
    return (record.model_ms or 0.0) + (record.planner_ms or 0.0)


def stats(paths: Iterable[str | Path]) -> Stats:
    """Count over the logs, each read once. A file that cannot be read counts as damaged."""
    groups: dict[tuple[str, str, str], _Sessions] = {}
    slowest: list[Slow] = []
    damages: list[str] = []
    files = damaged = 0
    for path in paths:
        files += 1
        try:
            with LogReader(path) as reader:
                group = groups.setdefault(names(reader.header), _Sessions())
                group.count += 1
                at_ms: float | None = None
                for record in reader:
                    ms = took_ms(record)
                    group.tally.add(record)
                    at_ms = record.at_ms if record.at_ms is not None else at_ms
                    if ms is not None:
                        group.ms.add(ms)
                        if len(slowest) < SLOWEST or ms > slowest[-1].ms:
                            slowest.append(Slow(ms=ms, path=str(path), n=record.n))
                            slowest = sorted(slowest, key=lambda slow: -slow.ms)[:SLOWEST]
                seconds = reader.outcome.seconds if reader.outcome else None
                seconds = at_ms / 1000 if seconds is None and at_ms is not None else seconds
                if seconds:
                    group.timed, group.seconds = group.timed + reader.n, group.seconds + seconds
                group.endings[reader.outcome.ending if reader.outcome else "none"] += 1
                fault = f"{path}: {reader.damage}" if reader.damage else None
        except LogError as error:
            fault = str(error)
        if fault:
            damaged += 1
            damages += [fault] if len(damages) < NAMED else []
    return Stats(
        files=files,
        groups=tuple(groups[key].group(*key) for key in sorted(groups)),
        slowest=tuple(slowest),
        damaged=damaged,
        damages=tuple(damages),
    )
