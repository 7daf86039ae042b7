"""Path-compressed prefix tree over token ids, in integer arrays.

    sequences 0: 5 6 7    1: 5 6 8 9    2: 4        ranks: 2, 0, 1

    node 0 -- 4 ------> leaf 2                      edge 0, rank 0
           `- 5 6 ---> node 1 -- 7 ----> leaf 0     edge 1, ranks 1..3; edge 2, rank 1
                              `- 8 9 --> leaf 1     edge 3, rank 2

A node is a place where the sequences part; an edge is a run of ids that leads to the next node or to the end of one
sequence (a leaf). Every node below the root has at least two edges; the root may have one, a prefix that all share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError
from kernel.trie.ordering import Ordering, check

Ints = NDArray[np.int32]
NAMED = 5
"""How many leaves or pairs an error message names; `.pairs` of the error holds all."""


class Trie:
    """The tree; build it with `build`, `of` or `store.load`, and read the arrays freely (they are read-only).

    Leaf i is the i-th sequence of the input; its rank is its place in lexicographic order. The leaves below a node or
    an edge have consecutive ranks.

    n_leaves, n_nodes, n_edges: the sizes.
    ids, starts: the sequences themselves; leaf i is ids[starts[i]:starts[i + 1]].
    order[n_leaves]: rank -> leaf.
    node_start[n_nodes + 1]: the edges of node j are node_start[j] .. node_start[j + 1], sorted by first id.
    node_depth[n_nodes]: how many ids lead to the node.
    node_hi[n_nodes]: one past the last rank below the node.
    edge_ids[n_edges]: the first id.
    edge_child[n_edges]: the node at the end, or -1 for a leaf.
    edge_lo[n_edges]: the first rank below the edge.
    longest: ids in the longest sequence.
    """

    ARRAYS = (
        "ids",
        "starts",
        "order",
        "node_start",
        "node_depth",
        "node_hi",
        "edge_ids",
        "edge_child",
        "edge_lo",
    )

    def __init__(self, arrays: dict[str, Ints]) -> None:
        """Wrap arrays that `build` made; trusts them."""
        for name in self.ARRAYS:
            array = arrays[name].view()
            array.flags.writeable = False
            setattr(self, name, array)
        self.n_leaves = len(self.order)
        self.n_nodes = len(self.node_depth)
        self.n_edges = len(self.edge_ids)
        self.longest = int((self.starts[1:] - self.starts[:-1]).max())
        # plain Python integers, an order of magnitude faster to read one by one than numpy scalars
        self._starts = self.starts.data
        self._order = self.order.data
        self._node_start = self.node_start.data
        self._node_depth = self.node_depth.data
        self._node_hi = self.node_hi.data
        self._edge_ids = self.edge_ids.data
        self._edge_child = self.edge_child.data
        self._edge_lo = self.edge_lo.data

    ids: Ints
    starts: Ints
    order: Ints
    node_start: Ints
    node_depth: Ints
    node_hi: Ints
    edge_ids: Ints
    edge_child: Ints
    edge_lo: Ints

    @classmethod
    def build(cls, ids: Ints, offsets: NDArray[np.int64], ordering: Ordering | None = None) -> Trie:
        """Build from sequences `ids[offsets[i]:offsets[i + 1]]`; `ids` is kept, not copied.

        Args:
            ids: int32, flat, >= 0.
            offsets: n + 1 integers that grow from 0 to len(ids).
            ordering: `Ordering.of(ids, offsets)` if the caller has it already.
        Raises:
            BuildError: a sequence is empty, equal to another one, or the beginning of another one; `.pairs` holds
                (leaf, leaf) of all of them ((leaf, leaf) twice the same for an empty one).
        """
        if ordering is None:
            ordering = Ordering.of(ids, offsets)
        else:
            check(ids, offsets)
        _refuse(ordering)
        tree = _branch(ordering.shared)
        starts, order = ordering.starts, ordering.order
        n_edges = np.diff(tree["node_start"])
        first = starts[order[tree["edge_lo"]]]
        first += np.repeat(tree["node_depth"], n_edges)
        return cls({**tree, "ids": np.ascontiguousarray(ids), "starts": starts, "order": order, "edge_ids": ids[first]})

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> Trie:
        """Build from a few sequences of ids.

        >>> Trie.of([[5, 6, 7], [5, 6, 8, 9], [4]]).children(0).tolist()
        [4, 5]
        """
        ids = np.array([i for sequence in sequences for i in sequence], np.int32)
        return cls.build(ids, np.cumsum([0, *map(len, sequences)], dtype=np.int64))

    @cached_property
    def rank_of(self) -> Ints:
        """Leaf -> rank, the inverse of `order`; made at the first use."""
        ranks = np.empty(self.n_leaves, np.int32)
        ranks[self.order] = np.arange(self.n_leaves, dtype=np.int32)
        ranks.flags.writeable = False
        return ranks

    def edges(self, node: int) -> range:
        """Return the edges of a node, by first id."""
        return range(self._node_start[node], self._node_start[node + 1])

    def children(self, node: int) -> Ints:
        """Return the legal next ids at a node, ascending; a view of `edge_ids`."""
        start = self._node_start
        return self.edge_ids[start[node] : start[node + 1]]

    def find(self, node: int, token: int) -> int:
        """Return the edge of a node that begins with an id, or -1."""
        end = self._node_start[node + 1]
        edge = bisect_left(self._edge_ids, token, self._node_start[node], end)
        return edge if edge < end and self._edge_ids[edge] == token else -1

    def child(self, edge: int) -> int:
        """Return the node at the end of an edge, or -1 for a leaf."""
        return self._edge_child[edge]

    def tail(self, edge: int) -> Ints:
        """Return all ids of an edge, the first one included; a view of `ids`."""
        leaf = self._order[self._edge_lo[edge]]
        start = self._starts[leaf]
        child = self._edge_child[edge]
        end = self._starts[leaf + 1] if child < 0 else start + self._node_depth[child]
        return self.ids[start + self._node_depth[self.parent(edge)] : end]

    def parent(self, edge: int) -> int:
        """Return the node that an edge leaves; O(log n_nodes)."""
        return bisect_left(self._node_start, edge + 1) - 1

    def bounds(self, edge: int) -> tuple[int, int]:
        """Return the ranks lo .. hi of the leaves below an edge."""
        lo, child = self._edge_lo[edge], self._edge_child[edge]
        return lo, lo + 1 if child < 0 else self._node_hi[child]

    def leaf(self, edge: int) -> int:
        """Return the leaf at the end of a leaf edge; raises ValueError for an edge that goes on."""
        if self._edge_child[edge] >= 0:
            raise ValueError(f"edge {edge} leads to node {self._edge_child[edge]}, not to a leaf")
        return self._order[self._edge_lo[edge]]

    def sequence(self, leaf: int) -> Ints:
        """Return the ids of a leaf; a view of `ids`."""
        return self.ids[self._starts[leaf] : self._starts[leaf + 1]]

    def __repr__(self) -> str:
        return f"<Trie: {self.n_leaves} leaves, {self.n_nodes} nodes, {self.n_edges} edges>"


def _refuse(ordering: Ordering) -> None:
    """Raise BuildError for sequences that cannot all be leaves."""
    empty = ordering.empty()
    if empty:
        raise BuildError(f"empty sequence: {_named(empty)}", [(i, i) for i in empty])
    pairs = ordering.duplicates()
    if pairs:
        raise BuildError(f"equal sequences: {_named(pairs)}", pairs)
    pairs = ordering.prefixes()
    if pairs:
        raise BuildError(
            f"the first begins the second: {_named(pairs)}; end the first with an id of its own", pairs=pairs
        )


def _named(items: Sequence[object]) -> str:
    more = len(items) - NAMED
    return ", ".join(f"leaf {item}" if isinstance(item, int) else f"leaves {item}" for item in items[:NAMED]) + (
        f" and {more} more" if more > 0 else ""
    )


def _branch(shared: Ints) -> dict[str, Ints]:
    """Return the nodes and edges of the tree whose ranks r - 1 and r share `shared[r]` ids, level by level.

    All nodes of one level are cut at once: a run of ranks parts where neighbours share least.
    """
    n = len(shared)
    starts: list[Ints] = []
    depths: list[Ints] = []
    his: list[Ints] = []
    los: list[Ints] = []
    children: list[Ints] = []
    nodes = 1
    if n == 1 or shared[1:].min() > 0:  # one prefix for all: the root has one edge
        starts.append(np.ones(1, np.int32))
        depths.append(np.zeros(1, np.int32))
        his.append(np.full(1, n, np.int32))
        los.append(np.zeros(1, np.int32))
        children.append(np.full(1, -1 if n == 1 else 1, np.int32))
        nodes = 1 if n == 1 else 2
    ranks = np.arange(n if n > 1 else 0, dtype=np.int32)  # every rank below the nodes of this level
    common = shared[: len(ranks)].copy()
    heads = np.zeros(min(len(ranks), 1), np.intp)  # where in `ranks` each node begins
    while len(ranks):
        common[heads] = np.iinfo(np.int32).max
        size = np.diff(heads, append=len(ranks)).astype(np.int32)
        depth = np.minimum.reduceat(common, heads)
        cut = common == np.repeat(depth, size)
        cut[heads] = True
        at = np.flatnonzero(cut)
        below = np.diff(at, append=len(ranks)).astype(np.int32)
        inner = below > 1
        child = np.full(len(at), -1, np.int32)
        new = int(np.count_nonzero(inner))
        child[inner] = np.arange(nodes, nodes + new, dtype=np.int32)
        nodes += new
        starts.append(np.add.reduceat(cut, heads, dtype=np.int32))
        depths.append(depth)
        his.append(ranks[heads] + size)
        los.append(ranks[at])
        children.append(child)
        stay = np.repeat(inner, below)
        ranks, common = ranks[stay], common[stay]
        heads = np.cumsum(below[inner], dtype=np.intp) - below[inner]
    return {
        "node_start": np.cumsum(np.concatenate([np.zeros(1, np.int32), *starts]), dtype=np.int32),
        "node_depth": np.concatenate(depths),
        "node_hi": np.concatenate(his),
        "edge_lo": np.concatenate(los),
        "edge_child": np.concatenate(children),
    }
