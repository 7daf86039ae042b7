"""Whole-opcode log-probabilities behind one or several prompts, in as few passes as possible. Knows no rule."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.memory.memory import Cost, Memory
from kernel.memory.rows import RowReader, Watch
from kernel.memory.tree import ScoreTree, grow
from kernel.recent import keep, recall
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset

TREE_LIMIT = 1024
"""Evaluated tokens up to which all legal opcodes are scored; a larger set is searched best first (search.py)."""

TREES_KEPT = 64

Values = dict[int, NDArray[np.float64]]
"""What was read: for each point of a tree, the log-probabilities of the ids that stand in its `Read`."""


@dataclass(frozen=True)
class Scores:
    """Log-probabilities of each legal opcode behind each prompt.

    Attributes:
        leaves: opcode indices, shape (n,), in the order of the columns.
        log_probabilities: float64, shape (prompts, n); summed from the first branch on.
        values: behind each prompt, what these are the sums of.
        mass: probability that the whole vocabulary gives to the legal ids at the first branch of the first prompt.
        cost: passes and tokens.
        wider: the same over a larger legal set, where that was asked for.
    """

    leaves: NDArray[np.int32]
    log_probabilities: NDArray[np.float64]
    values: list[Values]
    mass: float
    cost: Cost
    wider: Scores | None = None


class Scorer:
    """Scores opcode sets on one memory; remembers the layout of the trees it has grown."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.rows = RowReader(len(memory.backend.vocabulary))
        self._trees: OrderedDict[tuple[int, bytes], tuple[OpcodeSet, ScoreTree | None]] = OrderedDict()

    def tree(self, opcodes: OpcodeSet, subset: Subset) -> ScoreTree | None:
        """Return the token tree of a legal set, or None when it is too large to score whole."""
        key = (id(opcodes), subset.key)
        known = recall(self._trees, key)
        if known is None:
            # The set is kept beside its tree so that its id is not given to another one.
            known = (opcodes, grow(opcodes.trie, subset, opcodes.scored, TREE_LIMIT))
            keep(self._trees, key, known, TREES_KEPT)
        return known[1]

    def score(
        self,
        stems: Sequence[Sequence[int]],
        tree: ScoreTree,
        watch: Watch | None = None,
        keep: int = 1,
        wider: ScoreTree | None = None,
    ) -> Scores:
        """Score every leaf of the tree behind each stem; `watch` sees the rows of the first.

        The first `keep` stems stay in memory, for the next call to find what they begin with. A wider tree, of more
        legal opcodes, is scored in the same passes; what is scored of the narrower one is the same.
        """
        if wider is not None:
            return self._both(stems, tree, watch, keep, wider)
        before = self.memory.cost
        values: list[Values] = [{} for _ in stems]

        def read(stem: int, point: int, row: NDArray[np.float32]) -> None:
            ids = tree.ids_at[point]
            if watch is None or stem:
                values[stem][point] = self.rows.log_probabilities(row, ids)
            else:
                values[stem][point] = self.rows.log_probabilities(row, ids, tree.ids_to(point), watch)

        leaves = np.asarray(tree.leaves, np.int32)
        if not tree.reads:
            return Scores(leaves, np.zeros((len(stems), 1)), values, 1.0, Cost())
        self.memory.run(stems, tree, read, keep)
        mass = float(np.exp(values[0][tree.reads[0].point]).sum())
        sums = np.stack([tree.sums(v) for v in values])
        return Scores(leaves, sums, values, mass, self.memory.cost - before)

    def _both(
        self, stems: Sequence[Sequence[int]], tree: ScoreTree, watch: Watch | None, keep: int, wider: ScoreTree
    ) -> Scores:
        def seen(path: tuple[int, ...], ids: NDArray[np.int32], row: NDArray[np.float32], normaliser: float) -> None:
            point = tree.at.get(path)
            if watch is not None and point is not None and len(tree.ids_at[point]) > 1:
                watch(path, tree.ids_at[point], row, normaliser)

        whole = self.score(stems, wider, None if watch is None else seen, keep)
        values = [tree.out_of(wider, each) for each in whole.values]
        mass = float(np.exp(values[0][tree.reads[0].point]).sum())
        sums = np.stack([tree.sums(each) for each in values])
        return Scores(np.asarray(tree.leaves, np.int32), sums, values, mass, whole.cost, whole)
