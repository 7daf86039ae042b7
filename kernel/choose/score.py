"""Scores whole opcodes behind one or several prompts: the sum of the log-probabilities of their ids."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernel.memory import attention, recurrent, sets
from kernel.memory.grow import grow
from kernel.memory.listed import Listed, joined
from kernel.memory.memory import Memory
from kernel.memory.passes import Cost, ReadRow, Work
from kernel.memory.rows import RowReader, Watch
from kernel.memory.tree import STEM, ScoreTree
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
        log_probabilities: float64, shape (prompts, n), a column each leaf of the tree; summed from the first branch on.
        values: behind each prompt, what these are the sums of.
        mass: probability that the whole vocabulary gives to the legal ids at the first branch of the first prompt.
        cost: passes and tokens.
        wider: the same over a larger legal set, where that was asked for.
        states: float32, shape (prompts, k): logits right behind each prompt, and behind what all leaves begin with, at
            the ids that the work wants to see.
    """

    tree: ScoreTree
    log_probabilities: NDArray[np.float64]
    values: list[Values]
    mass: float
    cost: Cost
    wider: Scores | None = None
    states: NDArray[np.float32] | None = None

    @property
    def leaves(self) -> NDArray[np.int32]:
        """Opcode indices, shape (n,), in the order of the columns."""
        return np.asarray(self.tree.leaves, np.int32)


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

    def score(self, work: Work, watch: Watch | None = None, wider: ScoreTree | None = None) -> Scores:
        """Score every leaf of the tree behind each prompt.

        Args:
            watch: sees the rows of the first prompt.
            wider: a tree of more legal opcodes, which is scored in the same passes; what it says of the leaves of the
                narrower one is what that would have said.
        """
        if wider is not None:
            return self._both(work, watch, wider)
        before, tree = self.memory.cost, work.tree
        values: list[Values] = [{} for _ in work.prompts]
        states = None if work.seen is None else np.zeros((len(work.prompts), len(work.seen)), np.float32)

        def read(stem: int, point: int, row: NDArray[np.float32]) -> None:
            ids = tree.ids_at[point]
            if states is not None and point == STEM:
                states[stem] = row[work.seen]
            if watch is None or stem:
                values[stem][point] = self.rows.log_probabilities(row, ids)
            else:
                values[stem][point] = self.rows.log_probabilities(row, ids, tree.ids_to(point), watch)

        if not tree.reads:  # a single legal opcode: there is nothing to choose
            return Scores(tree, np.zeros((len(work.prompts), 1)), values, 1.0, Cost())
        evaluate(self.memory, work, read)
        return replace(scores_of(tree, values, self.memory.cost - before), states=states)

    def _both(self, work: Work, watch: Watch | None, wider: ScoreTree) -> Scores:
        tree = work.tree

        def seen(path: tuple[int, ...], ids: NDArray[np.int32], row: NDArray[np.float32], normaliser: float) -> None:
            point = tree.at.get(path)
            if watch is not None and point is not None and len(tree.ids_at[point]) > 1:
                watch(path, tree.ids_at[point], row, normaliser)

        whole = self.score(replace(work, tree=wider), None if watch is None else seen)
        values = [tree.out_of(wider, each) for each in whole.values]
        return replace(scores_of(tree, values, whole.cost), wider=whole)


def scores_of(tree: ScoreTree, values: list[Values], cost: Cost) -> Scores:
    """Return what was read behind each prompt as the log-probabilities of the tree's leaves."""
    mass = float(np.exp(values[0][tree.reads[0].point]).sum()) if tree.reads else 1.0
    return Scores(tree, np.stack([tree.sums(each) for each in values]), values, mass, cost)


def evaluate(memory: Memory, work: Work, read: ReadRow) -> None:
    """Evaluate the tree behind each prompt, with as few passes and tokens as the memory allows.

    Args:
        read: gets (number of the prompt, point of the tree, row) once for each row that the tree wants.

    Raises:
        ContextError: it does not fit; nothing is evaluated, and the memory is as it was.
        BackendError: the runtime refused; the memory is empty.
    """
    tree = work.tree
    memory.check([joined(prompt, tree.prefix) for prompt in work.prompts], tree.longest - len(tree.prefix))
    with memory.guard():
        listed = any(isinstance(prompt, Listed) for prompt in work.prompts)
        planner = (sets if listed else attention) if memory.backend.shares_tokens else recurrent
        memory.follow(planner.plan(memory, work), read)
