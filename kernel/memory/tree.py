"""The token tree of one decision: what must be evaluated so that every legal opcode can be scored. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import NoLegalOpcodeError
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

STEM = -1
"""The point after the last token of the prompt (and of the forced prefix)."""


@dataclass(frozen=True, slots=True)
class Read:
    """What to read off the row of one point: the log-probabilities of `ids`.

    `slots[i]` says where the sum with `ids[i]` goes: a point (>= 0) or, as `~k`, the k-th leaf.
    """

    point: int
    ids: NDArray[np.int32]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class ScoreTree:
    """Tokens to evaluate behind a prompt, and what to read where.

    Attributes:
        prefix: forced ids that every legal opcode begins with; they stand before the first branch.
        tokens, parents: the evaluated ids, parents first; parent STEM is the end of the prefix.
        reads: one each point that has a choice or a scored token, in topological order.
        leaves: opcode index of each leaf slot.
        tips: points that no other point continues.
        longest: ids of the longest legal opcode, prefix included.
    """

    prefix: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    reads: tuple[Read, ...]
    leaves: tuple[int, ...]
    tips: tuple[int, ...]
    longest: int

    @cached_property
    def depths(self) -> list[int]:
        """Depth of each point behind the prefix; the first evaluated id has 0."""
        out: list[int] = []
        for parent in self.parents:
            out.append(0 if parent == STEM else out[parent] + 1)
        return out

    @cached_property
    def _wanted(self) -> frozenset[int]:
        return frozenset(read.point for read in self.reads)

    def wants(self, point: int) -> bool:
        """Whether the row of this point is read."""
        return point in self._wanted

    def paths(self) -> list[list[int]]:
        """Return, for each tip, its points from the stem on."""
        return [self.path(tip) for tip in self.tips]

    def path(self, point: int) -> list[int]:
        """Return the points from the stem to `point`, that one included."""
        out = []
        while point != STEM:
            out.append(point)
            point = self.parents[point]
        return out[::-1]

    def ids_to(self, point: int) -> tuple[int, ...]:
        """Return the ids of an opcode from its first one to `point`, that one included."""
        return (*self.prefix, *(self.tokens[p] for p in self.path(point)))

    @cached_property
    def at(self) -> dict[tuple[int, ...], int]:
        """The points that are read, by `ids_to` them."""
        return {self.ids_to(read.point): read.point for read in self.reads}

    @cached_property
    def ids_at(self) -> dict[int, NDArray[np.int32]]:
        """What is read at each point: the ids, in increasing order."""
        return {read.point: read.ids for read in self.reads}

    def out_of(self, whole: ScoreTree, values: dict[int, NDArray[np.float64]]) -> dict[int, NDArray[np.float64]]:
        """Return what this tree reads, out of what a tree of more legal opcodes has read: it is all there.

        Args:
            values: for each read point of the larger tree, float64 of the shape of its `ids`.
        """
        return {
            read.point: values[at][np.searchsorted(whole.ids_at[at], read.ids)]
            for read in self.reads
            for at in [whole.at[self.ids_to(read.point)]]
        }

    def sums(self, values: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Add up the log-probabilities that were read along each path.

        Args:
            values: for each read point, float64 of the shape of its `ids`.
        Returns:
            float64, shape (number of leaves,): the sum from the first branch on.
        """
        at_point = np.zeros(len(self.tokens) + 1)
        at_leaf = np.empty(len(self.leaves))
        for read in self.reads:
            base = at_point[read.point] if read.point != STEM else 0.0
            for slot, value in zip(read.slots, values[read.point].tolist(), strict=True):
                if slot >= 0:
                    at_point[slot] = base + value
                else:
                    at_leaf[~slot] = base + value
        return at_leaf


def grow(trie: Trie, subset: Subset, scored: NDArray[np.int32], limit: int) -> ScoreTree | None:
    """Lay out the tree of the legal opcodes, or return None when it needs more than `limit` evaluated tokens.

    The last scored id of an opcode is only read, never evaluated. What every legal opcode begins with is
    evaluated but not scored: it cannot tell them apart. An opcode counts through its last scored id, or through the
    id that tells it from all other legal ones when that comes later.

    Args:
        scored: int32, shape (n_leaves,): how many leading ids of each opcode are scored.
    """
    if not len(subset):
        raise NoLegalOpcodeError("the legal set is empty; an engine with no legal instruction has ended")
    prefix, node = subset.forced()
    depth = len(prefix)
    edges = subset.legal_edges(node)
    if len(edges) == 1:  # a single legal opcode: nothing to evaluate, nothing to choose
        leaf = trie.leaf(int(edges[0]))
        sequence = tuple(trie.sequence(leaf).tolist())
        return ScoreTree(sequence, (), (), (), (leaf,), (), len(sequence))
    tokens: list[int] = []
    parents: list[int] = []
    reads: list[Read] = []
    leaves: list[int] = []
    inner: set[int] = set()
    stack = [(node, STEM, depth)]
    while stack:
        node, point, depth = stack.pop()
        edges = subset.legal_edges(node)
        slots: list[int] = []
        for edge in edges.tolist():
            child = int(trie.edge_child[edge])
            if child >= 0 and subset.count(edge) > 1:
                evaluate = tail = trie.tail(edge).tolist()
            else:  # one legal opcode below: where illegal ones part from it is nothing to choose
                child, leaf = -1, subset.only_leaf(edge)
                tail = trie.sequence(leaf)[depth:].tolist()[: max(1, int(scored[leaf]) - depth)]
                evaluate = tail[:-1]
            at = point
            for position, token in enumerate(evaluate):
                tokens.append(token)
                parents.append(at)
                inner.add(at)
                here = len(tokens) - 1
                if position == 0:
                    slots.append(here)
                else:
                    reads.append(Read(at, np.asarray([token], np.int32), (here,)))
                at = here
            if child >= 0:
                stack.append((child, at, depth + len(tail)))
                continue
            leaves.append(leaf)
            if evaluate:
                reads.append(Read(at, np.asarray(tail[-1:], np.int32), (~(len(leaves) - 1),)))
            else:
                slots.append(~(len(leaves) - 1))
            if len(tokens) > limit:
                return None
        reads.append(Read(point, trie.edge_ids[edges].astype(np.int32), tuple(slots)))
    reads.sort(key=lambda read: read.point)
    tips = tuple(p for p in range(len(tokens)) if p not in inner)
    longest = max(len(trie.sequence(leaf)) for leaf in leaves)
    return ScoreTree(tuple(prefix), tuple(tokens), tuple(parents), tuple(reads), tuple(leaves), tips, longest)
