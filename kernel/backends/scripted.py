"""A runtime without weights: rows come from a function of the ids before them. For tests and for learning.

It keeps its memory as llama.cpp does, cell by cell, so a prompt that was not evaluated is really missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BackendError
from kernel.text.vocabulary import Vocabulary

Row = Callable[[tuple[int, ...]], NDArray[np.float32]]


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
        self._sequences: dict[int, list[int]] = {}
        self._cells: dict[int, list[object]] = {}
        self._beginnings: dict[int, list[int]] = {}  # a number for all ids up to each position; equal ids, equal number
        self._numbers: dict[tuple[int, int], int] = {}
        self._rows: dict[int, NDArray[np.float32]] = {}

    @property
    def cells(self) -> int:
        """How many cells the memory holds now; a cell on several sequences counts once."""
        return len({id(cell) for cells in self._cells.values() for cell in cells})

    def sequence(self, number: int) -> list[int]:
        """Return the ids that a sequence holds."""
        return list(self._sequences.get(number, []))

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
        held_before, wanted = {s: len(held) for s, held in self._sequences.items()}, set(outputs)
        for index, (token, position, on) in enumerate(zip(tokens, positions, sequences, strict=True)):
            if not on or (len(on) > 1 and not self.shares_tokens):
                raise BackendError(f"token {index} stands on sequences {list(on)}")
            cell = object()
            before = {begun[-1] if (begun := self._beginnings.get(s)) else -1 for s in on}
            if len(before) != 1:
                raise BackendError(f"token {index} stands on sequences {list(on)} that differ before it")
            if len({held_before.get(s, 0) for s in on}) != 1:
                raise BackendError(f"token {index} stands on sequences {list(on)}, of which one held more than another")
            number = self._numbers.setdefault((*before, int(token)), len(self._numbers))  # type: ignore[arg-type]
            for s in on:
                if not 0 <= s < self.n_seq:
                    raise BackendError(f"sequence {s} is outside 0..{self.n_seq - 1}")
                held = self._sequences.setdefault(s, [])
                if len(held) != position:
                    raise BackendError(f"token {index} at position {position} of sequence {s} of length {len(held)}")
                held.append(int(token))
                self._cells.setdefault(s, []).append(cell)
                self._beginnings.setdefault(s, []).append(number)
            if index in wanted:
                self._rows[index] = self.row(tuple(self._sequences[on[0]]))
        self.decoded.append(list(tokens))

    def logits(self, index: int) -> NDArray[np.float32]:
        """See Backend."""
        return self._rows[index]

    def remove(self, sequence: int, start: int) -> bool:
        """See Backend."""
        held = self._sequences.get(sequence, [])
        if not self.shares_tokens and 0 < start < len(held):
            return False
        self._sequences[sequence] = held[:start]
        self._cells[sequence] = self._cells.get(sequence, [])[:start]
        self._beginnings[sequence] = self._beginnings.get(sequence, [])[:start]
        return True

    def copy(self, source: int, target: int, end: int) -> None:
        """See Backend."""
        held = self._sequences.get(source, [])
        if self._sequences.get(target) or end > len(held) or (not self.shares_tokens and end != len(held)):
            raise BackendError(f"copy of {end} positions of sequence {source} ({len(held)}) to {target}")
        self._sequences[target] = held[:end]
        self._cells[target] = self._cells.get(source, [])[:end]
        self._beginnings[target] = self._beginnings.get(source, [])[:end]

    def clear(self) -> None:
        """See Backend."""
        self._sequences = {}
        self._cells = {}
        self._beginnings = {}

    def close(self) -> None:
        """Take nothing more."""
        self.closed = True
