"""A runtime without weights: rows come from a function of the ids before them. For tests and for learning.

It keeps its memory as llama.cpp does, cell by cell, so a prompt that was not evaluated is really missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BackendError
from kernel.text.vocabulary import Vocabulary

Row = Callable[[tuple[int, ...]], NDArray[np.float32]]


@dataclass
class _Held:
    """What one sequence holds.

    Attributes:
        ids: all of it in order; of lines without an order that of their ids.
        cells: one an id.
        numbers: a number for all ids up to each; equal ids, equal number.
        end: the position behind it; less than `len(ids)` behind lines that stand side by side.
        lines: those that were attached at `end` and have nothing behind them yet.
    """

    ids: list[int] = field(default_factory=list)
    cells: list[object] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    end: int = 0
    lines: list[tuple[list[int], list[object]]] = field(default_factory=list)

    @property
    def reach(self) -> int:
        """The position behind the longest of the attached lines."""
        return self.end + max((len(ids) for ids, _ in self.lines), default=0)

    def cut(self, end: int) -> _Held:
        """Return the first so many positions; one with lines is only taken whole, or in front of them."""
        if end == self.reach:
            return _Held(self.ids[:], self.cells[:], self.numbers[:], self.end, self.lines[:])
        return _Held(self.ids[:end], self.cells[:end], self.numbers[:end], end)


class ScriptedBackend:
    """Answers each pass with `row(ids so far)`.

    Args:
        vocabulary: real or made up.
        row: maps the ids that a token stands behind, itself included, to float32 of shape (n_vocab,).
        shares_tokens: False makes it behave like a recurrent memory: one sequence a token, no partial removal.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        row: Row,
        *,
        n_ctx: int = 2048,
        n_batch: int = 2048,
        n_seq: int = 64,
        shares_tokens: bool = True,
    ) -> None:
        self.name = "scripted"
        self.fingerprint = "scripted"
        self.vocabulary = vocabulary
        self.row = row
        self.n_ctx = n_ctx
        self.n_batch = n_batch
        self.n_seq = n_seq
        self.shares_tokens = shares_tokens
        self.decoded: list[list[int]] = []
        """The tokens of each pass, in order."""
        self.closed = False
        self._held: dict[int, _Held] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._rows: dict[int, NDArray[np.float32]] = {}

    @property
    def cells(self) -> int:
        """How many cells the memory holds now; a cell on several sequences counts once."""
        held = self._held.values()
        attached = [cell for each in held for _, cells in each.lines for cell in cells]
        return len({id(cell) for each in held for cell in each.cells} | set(map(id, attached)))

    def sequence(self, number: int) -> list[int]:
        """Return the ids that a sequence holds."""
        held = self._held.get(number, _Held())
        return [*held.ids, *(token for ids, _ in sorted(held.lines, key=_ids) for token in ids)]

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        outputs: Sequence[int],
    ) -> None:
        """See Backend. Refuses what llama.cpp refuses: gaps, sequences that part, too many of them, a full memory."""
        if not 0 < len(tokens) <= self.n_batch:
            raise BackendError(f"a batch of {len(tokens)} tokens; n_batch={self.n_batch}")
        if self.closed:
            raise BackendError(f"{self.name!r} is closed; open it anew")
        if self.cells + len(tokens) > self.n_ctx:
            raise BackendError(f"{self.cells} cells and {len(tokens)} tokens do not fit into n_ctx={self.n_ctx}")
        self._rows = {}
        held_before, wanted = {s: held.reach for s, held in self._held.items()}, set(outputs)
        for index, (token, position, on) in enumerate(zip(tokens, positions, sequences, strict=True)):
            if not on or (len(on) > 1 and not self.shares_tokens):
                raise BackendError(f"token {index} stands on sequences {list(on)}")
            if odd := [s for s in on if not 0 <= s < self.n_seq]:
                raise BackendError(f"sequence {odd[0]} is outside 0..{self.n_seq - 1}")
            several = [self._behind_lines(s) for s in on]
            if len({held.numbers[-1] if held.numbers else -1 for held in several}) != 1:
                raise BackendError(f"token {index} stands on sequences {list(on)} that differ before it")
            if len({held_before.get(s, 0) for s in on}) != 1:
                raise BackendError(f"token {index} stands on sequences {list(on)}, of which one held more than another")
            cell = object()
            for s, held in zip(on, several, strict=True):
                if held.end != position:
                    raise BackendError(f"token {index} at position {position} of sequence {s} of length {held.end}")
                self._append(held, int(token), cell)
                held.end += 1
            if index in wanted:
                self._rows[index] = self.row(tuple(several[0].ids))
        self.decoded.append(list(tokens))

    def _behind_lines(self, sequence: int) -> _Held:
        """Return what a sequence holds, its lines in the order of their ids, since something comes behind them."""
        held = self._held.setdefault(sequence, _Held())
        begin = held.end
        for ids, cells in sorted(held.lines, key=_ids):
            for token, cell in zip(ids, cells, strict=True):
                self._append(held, token, cell)
            held.end = max(held.end, begin + len(ids))
        held.lines = []
        return held

    def _append(self, held: _Held, token: int, cell: object) -> None:
        held.ids.append(token)
        held.cells.append(cell)
        held.numbers.append(
            self._numbers.setdefault((held.numbers[-1] if held.numbers else -1, token), len(self._numbers))
        )

    def logits(self, index: int) -> NDArray[np.float32]:
        """See Backend."""
        return self._rows[index]

    def remove(self, sequence: int, start: int) -> bool:
        """See Backend."""
        held = self._held.get(sequence, _Held())
        if not self.shares_tokens and 0 < start < held.reach:
            return False
        self._held[sequence] = held.cut(min(start, held.reach))
        return True

    def copy(self, source: int, target: int, end: int, begin: int = 0) -> None:
        """See Backend. Lines stand behind equal beginnings, and nothing stands behind lines yet that others join."""
        held, at = self._held.get(source, _Held()), self._held.setdefault(target, _Held())
        whole = self.shares_tokens or end == held.reach
        if begin:
            fits = at.end == begin == len(at.ids) and at.ids == held.ids[:begin] and not held.lines
        else:
            fits = not at.ids and not at.lines
        if end > held.reach or not fits or not whole:
            raise BackendError(f"copy of positions {begin} to {end} of sequence {source} ({held.reach}) to {target}")
        if begin:
            at.lines.append((held.ids[begin:end], held.cells[begin:end]))
        else:
            self._held[target] = held.cut(end)

    def clear(self) -> None:
        """See Backend."""
        self._held = {}

    def close(self) -> None:
        """Take nothing more."""
        self.closed = True


def _ids(line: tuple[list[int], list[object]]) -> list[int]:
    return line[0]
