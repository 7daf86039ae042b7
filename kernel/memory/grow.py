"""Lays out the token tree of a legal set: which ids are evaluated, and where which ids are read. Knows no model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernel.errors import NoLegalOpcodeError
from kernel.memory.tree import STEM, Read, ScoreTree
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie


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
