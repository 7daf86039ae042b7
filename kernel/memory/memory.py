"""The session as token ids, and what the runtime's memory holds of it. Knows no opcode, no rule, no text.

Sequence 0 carries the prompt of the session and the next few its other orders: they survive from decision to decision.
Every other sequence lives for one decision. Nothing here re-tokenizes: equal ids are equal prefixes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel.backends.base import Backend
from kernel.errors import ContextError
from kernel.memory.attention import Shared
from kernel.memory.passes import MAIN, Batch, Cost, ReadRow, Stem, common_prefix
from kernel.memory.recurrent import Levels
from kernel.memory.tree import STEM, ScoreTree

__all__ = ["MAIN", "Cost", "Growth", "Memory", "ReadRow", "common_prefix"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Evaluate `ids` on `target`, which continues the first `length` positions of `source`.

    Rows are read from the id at `first` on.
    """

    source: int
    length: int
    target: int
    ids: tuple[int, ...]
    first: int = 0


class Memory:
    """Evaluates prompts and the trees behind them with as few passes and tokens as the memory allows.

    Whatever raises in the middle of a pass leaves the memory empty: the next call is right, only slower.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.held: list[int] = []
        self.kept: list[list[int]] = []  # ids on the sequences 1, 2, ...: other orders of the session's prompt
        self._cost = Cost()

    @property
    def cost(self) -> Cost:
        """All that was asked of the model so far; the difference of two is the cost of what lies between."""
        return Cost(self._cost.passes, self._cost.tokens, self._cost.refused_removals)

    def reset(self) -> None:
        """Forget the session."""
        self.backend.clear()
        self.held, self.kept = [], []

    def check(self, stems: Sequence[Sequence[int]], longest: int) -> None:
        """Raise ContextError unless each prompt and the longest legal opcode fit; nothing is evaluated."""
        main = stems[0]
        for stem in stems:
            if not stem:
                raise ContextError("a prompt is empty; a decision needs at least one token to stand on")
            own = len(stem) - common_prefix(main, stem)
            needed = len(main) + own + longest
            if needed > self.backend.n_ctx:
                raise ContextError(
                    f"{len(main)} prompt ids, {own} of a null prompt and up to {longest} of an opcode need {needed}, "
                    f"but n_ctx is {self.backend.n_ctx}; shorten the prompt or raise n_ctx"
                )
        if len(stems) >= self.backend.n_seq:
            raise ContextError(
                f"{len(stems)} prompts at once; n_seq={self.backend.n_seq} holds {self.backend.n_seq - 1}"
            )

    def run(self, stems: Sequence[Sequence[int]], tree: ScoreTree, read: ReadRow, keep: int = 1) -> None:
        """Evaluate the tree behind each stem; the first stem is the session's prompt.

        The first `keep` stems stay in memory, where it can hold them: the next call finds what they begin with.

        Where a token may stand on several sequences, everything goes into one pass as far as sequences, batch and
        memory suffice; else stems go one after the other and trees level by level.
        """
        full = [Stem(n, [*stem, *tree.prefix]) for n, stem in enumerate(stems)]
        self.check([s.ids for s in full], tree.longest - len(tree.prefix))
        with self._guard():
            if self.backend.shares_tokens:
                Shared(self, tree, read).run(full, keep)
            else:
                Levels(self, tree, read).run(full)

    def open(self, ids: Sequence[int], read: ReadRow) -> None:
        """Make `ids` the session's prompt and read the row after it (as point STEM)."""
        with self._guard():
            self.release(1)
            batch = Batch()
            for position in range(self.rewind(ids), len(ids)):
                last = batch.add(ids[position], position, [MAIN])
            batch.outputs.append((last, 0, STEM))
            self.decode(batch, read)
            self.held = list(ids)

    def expand(self, growths: Sequence[Growth], read: ReadRow) -> None:
        """Continue several sequences in one pass; `read` gets (number of the growth, offset in its ids, row).

        A target is the source itself or empty.
        """
        with self._guard():
            batch = Batch()
            for number, growth in enumerate(growths):
                if growth.target != growth.source:
                    self.backend.copy(growth.source, growth.target, growth.length)
                for offset, token in enumerate(growth.ids):
                    index = batch.add(token, growth.length + offset, [growth.target])
                    if offset >= growth.first:
                        batch.outputs.append((index, number, offset))
            self.decode(batch, read)

    def drop(self, sequence: int) -> None:
        """Free a sequence other than the main one."""
        self.backend.remove(sequence, 0)

    def release(self, first: int) -> None:
        """Free the kept sequences from the number `first` on."""
        for number in range(first, len(self.kept) + 1):
            self.drop(number)
        del self.kept[first - 1 :]

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.reset()
            raise

    def rewind(self, ids: Sequence[int]) -> int:
        """Keep the longest common prefix of what is held and `ids` on the main sequence; return its length.

        The last id is always evaluated anew, because its row is needed.
        """
        keep = min(common_prefix(self.held, ids), len(ids) - 1)
        if keep < len(self.held) and not self.backend.remove(MAIN, keep):
            self._cost.refused_removals += 1
            self.backend.clear()
            self.kept = []
            keep = 0
        self.held = self.held[:keep]
        return keep

    def decode(self, batch: Batch, read: ReadRow) -> None:
        """Evaluate a batch; in several passes when it holds more than the runtime takes at once."""
        size = self.backend.n_batch
        for begin in range(0, len(batch.tokens), size):
            part = slice(begin, begin + size)
            outputs = [(i - begin, stem, point) for i, stem, point in batch.outputs if begin <= i < begin + size]
            self.backend.decode(
                batch.tokens[part], batch.positions[part], batch.sequences[part], [o[0] for o in outputs]
            )
            self._cost.passes += 1
            self._cost.tokens += len(batch.tokens[part])
            for index, stem, point in outputs:
                read(stem, point, self.backend.logits(index))

    def feed(self, sequence: int, ids: list[int], start: int, stop: int) -> int:
        """Evaluate ids[start:stop] on one sequence in full batches, reading nothing; return `stop` or `start`."""
        while start < stop:
            end = min(start + self.backend.n_batch, stop)
            batch = Batch()
            for position in range(start, end):
                batch.add(ids[position], position, [sequence])
            self.decode(batch, lambda *_: None)
            start = end
        return start
