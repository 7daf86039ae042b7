"""One log that is looked at, and what is answered about it; docs/inspector.md has the forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dispatch.inspector import decision as told
from dispatch.inspector.boards import Engines, drawn
from dispatch.inspector.columns import Filter
from dispatch.inspector.jsonable import Json, brief, number, plain
from dispatch.inspector.keeper import Foreground, Keeper, Kept
from dispatch.inspector.lines import FAILED, FORCED, LOW, REFUSED, TOP, WISH
from dispatch.inspector.reading import reading
from dispatch.loading.error_line import error_line
from dispatch.log.replay import MakeCartridge
from kernel.errors import LogError, NotThereError

if TYPE_CHECKING:
    from dispatch.inspector.vocabularies import Vocabularies

FIRST_SECONDS = 0.25
"""The first answer waits so long for the whole file."""
MOST_ROWS = 200
MOST_TOLD = 2000
COUNTED = (
    ("refused", REFUSED), ("failed", FAILED), ("forced", FORCED), ("illegal_top", TOP), ("wish", WISH), ("low", LOW)
)  # fmt: skip


class OpenedLog:
    """A log that is looked at.

    Args:
        name: that it has in addresses.
        make: builds its cartridges, as a replay does.
        until: read and check up to this decision at once, or all (0), and let no thread do it; None begins a thread.
    """

    def __init__(
        self,
        name: str,
        path: Path,
        make: MakeCartridge,
        vocabularies: Vocabularies,
        *,
        foreground: Foreground | None = None,
        until: int | None = None,
    ) -> None:
        self.name = name
        self.live: Callable[[], Json] | None = None
        """Tells how a live session stands."""
        self.followers = 0
        """How many are told what happens in it."""
        self.keeper = Keeper(path, make, foreground)
        self.vocabularies = vocabularies
        vocabularies.of(self.kept.index.header, 0.0)  # it takes a while, and will be wanted
        if until is None:
            self.keeper.start()
            self.keeper.wait(FIRST_SECONDS)
        else:
            self.keeper.finish(until)

    @property
    def kept(self) -> Kept:
        """What is known of it now."""
        return self.keeper.kept

    def close(self) -> None:
        """Close it."""
        self.keeper.close()

    def summary(self) -> Json:
        """Return what stands above everything: header, how far it is read, whether it holds, how it ended."""
        self.keeper.poke()
        kept = self.kept
        index, columns = kept.index, kept.index.columns
        return {
            "name": self.name,
            "kind": "log" if self.live is None else "live",
            "generation": kept.generation,
            "header": plain(index.header),
            "decisions": columns.count,
            "complete": index.complete,
            "bytes": index.size,
            "read": index.at,
            "verified": kept.check.told(),
            "live": self.live and self.live(),
            "outcome": None if index.outcome is None else plain(index.outcome),
            "names": columns.names(),
            "boards": self._why(kept) is None,
            "boards_why": self._why(kept),
            "vocabulary": self.vocabularies.of(index.header, 0.0) is not None,
            "slow_ms": number(columns.slow_ms()),
            "counts": columns.counts(COUNTED),
            "notes": [note for note in (self.keeper.error, index.stopped, index.source.fault) if note is not None],
        }

    def strip(self, start: int = 1) -> bytes:
        """Return the strip from a decision on."""
        kept = self.kept
        return kept.index.columns.strip(kept.generation, start, complete=kept.index.complete)

    def changes(self, after: int) -> Json:
        """Return the numbers of the decisions behind `after`, and how the session stands."""
        self.keeper.poke()
        columns = self.kept.index.columns
        return {**columns.told(after + 1, MOST_TOLD), "names": columns.names(), "state": self.state()}

    def state(self) -> Json:
        """Return how the session stands."""
        kept = self.kept
        return {
            "live": self.live and self.live(),
            "verified": kept.check.told(),
            "decisions": kept.index.columns.count,
            "complete": kept.index.complete,
            "generation": kept.generation,
        }

    def rows(self, start: int, count: int, by: Filter) -> Json:
        """Return rows of the list of decisions that a filter lets through."""
        kept = self.kept
        columns = kept.index.columns
        everything = by == Filter()
        chosen = None if everything else columns.select(by)
        total = columns.count if chosen is None else len(chosen)
        places = range(max(0, start), min(total, max(0, start) + min(count, MOST_ROWS)))
        numbers = [at + 1 if chosen is None else int(chosen[at]) for at in places]
        return {
            "generation": kept.generation,
            "decisions": columns.count,
            "complete": kept.index.complete,
            "total": total,
            "from": places.start,
            "rows": [self._row(n) for n in numbers],
        }

    def least(self, after: int | None) -> Json:
        """Return the next least confident decision."""
        found = self.kept.index.columns.least(after)
        if found is None:
            return {"n": None, "margin": None, "rank": 0}
        n, margin, rank = found
        return {"n": n, "margin": number(round(margin, 6)), "rank": rank}

    def decision(self, n: int) -> Json:
        """Return one decision; raises NotThereError where there is none."""
        kept = self.kept
        self._there(kept, n)
        record = kept.index.record(n)
        found = told.decision(record, self.vocabularies.of(kept.index.header))
        checked = kept.check.told()
        if checked["state"] in ("damaged", "different") and n > checked["decisions"]:
            found["damage"] = checked["sentence"]
        return {**found, "generation": kept.generation, **self._board(kept, n, record.cartridge)}

    def ledger(self, n: int, step: int | None = None, token: int | None = None) -> Json:
        """Return a step of the ledger, by its place in the ledger or by a token's place in the ids."""
        kept = self.kept
        self._there(kept, n)
        record = kept.index.record(n)
        steps = told.steps(record)
        found = [each for each in steps if each["step"] == step or (step is None and each["at"] == token)]
        if found:
            return found[0]
        if step is None and token is not None and 0 <= token < len(record.ids):
            return told.forced_step(token)
        what = f"step {step}" if step is not None else f"token {token}"
        raise NotThereError(f"decision {n} has no {what}; its ledger has {len(steps)} steps")

    def prompt(self, n: int) -> Json:
        """Return what a decision read, as text."""
        kept = self.kept
        why, before = self.before(n)
        return reading(kept.index, n, self.vocabularies.of(kept.index.header), before or why or "")

    def before(self, n: int) -> tuple[str | None, Engines | None]:
        """Return the engines in the state in which decision `n` was made, or why they are not there."""
        kept = self.kept
        self._there(kept, n)
        self.keeper.catch_up(n - 1)
        why = self._why(kept)
        found = None if why is not None else kept.check.engines(n - 1)
        if found is None and why is None:
            why = f"the engines have come to decision {kept.check.decisions} so far"
        return why, found

    def _row(self, n: int) -> Json:
        try:
            return told.row(self.kept.index.record(n))
        except LogError as error:
            empty = dict.fromkeys(("request", "margin", "probability", "ms", "at_ms", "outcome"))
            return {"n": n, "cartridge": "", "said": brief(str(error)), "result": "", "flags": 0, **empty}

    @staticmethod
    def _there(kept: Kept, n: int) -> None:
        count = kept.index.columns.count
        if not 1 <= n <= count:
            more = "" if kept.index.complete else ", and more is being read"
            raise NotThereError(f"there is no decision {n}; there are {count}{more}")

    @staticmethod
    def _why(kept: Kept) -> str | None:
        """Return why no boards are shown; None where they are."""
        if kept.index.crowded:
            return "too many cartridges join and leave"
        return kept.check.why or None

    def _board(self, kept: Kept, n: int, name: str) -> Json:
        """Return the board after a decision, or how far the engines are."""
        check = kept.check
        if self._why(kept) is not None or (check.told()["state"] in ("damaged", "different") and n > check.decisions):
            return {"board": None, "board_state": "none", "board_at": check.decisions}
        try:
            found = check.engines(n)
            if found is None:
                return {"board": None, "board_state": "replaying", "board_at": check.decisions}
            board = drawn(found.cartridges[name], found.engines[name])
        except Exception as error:  # an author's engine or view
            board = {"lines": [[_plain_run(f"no picture: {error_line(error)}")]]}
        return {"board": board, "board_state": "shown", "board_at": n}


def _plain_run(text: str) -> Json:
    return {"text": text, "fg": None, "bg": None, "bold": False, "dim": False, "reverse": False}
