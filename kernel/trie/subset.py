"""Which leaves of a trie are legal for one step. Knows no text, no model, no game.

A subset keeps the sorted ranks of its leaves, or of the leaves that it leaves out, whichever is asked for; a step
looks up the bounds of one node in them, so ten legal leaves out of a million and all but ten cost the same.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kernel.errors import NoLegalOpcodeError
from kernel.trie.trie import Trie

Ints = NDArray[np.int32]


class Subset:
    """The legal leaves of one step; make it with `all`, `of` or `without`.

    >>> trie = Trie.of([[5, 6, 7], [5, 6, 8, 9], [4]])
    >>> legal = Subset.of(trie, [1, 2])
    >>> trie.edge_ids[legal.legal_edges(0)].tolist(), legal.leaves().tolist(), len(legal)
    ([4, 5], [2, 1], 2)
    """

    __slots__ = ("_excluded", "_listed", "_ranks", "key", "trie")

    def __init__(self, trie: Trie, ranks: Ints, excluded: bool) -> None:
        """Take sorted distinct ranks: those that are legal, or (excluded) those that are not; trusts them."""
        self.trie = trie
        self._ranks = ranks
        self._listed = ranks.data
        self._excluded = excluded
        if not len(self):
            raise NoLegalOpcodeError(f"0 of {trie.n_leaves} opcodes are legal; a step needs at least one")
        self.key = hashlib.blake2b(ranks.tobytes(), digest_size=16, key=b"-" if excluded else b"+").digest()
        """Equal for equal subsets of one trie, for caches."""

    @classmethod
    def all(cls, trie: Trie) -> Subset:
        """Make every leaf legal."""
        return cls(trie, np.empty(0, np.int32), True)

    @classmethod
    def of(cls, trie: Trie, leaves: Iterable[int] | NDArray[np.integer]) -> Subset:
        """Make these leaves legal; raises NoLegalOpcodeError when there are none or one is unknown to the trie."""
        ranks = _ranks(trie, leaves)
        if 2 * len(ranks) > trie.n_leaves:  # one form for equal sets, and the shorter one
            return cls(trie, _others(trie, ranks), True)
        return cls(trie, ranks, False)

    @classmethod
    def without(cls, trie: Trie, leaves: Iterable[int] | NDArray[np.integer]) -> Subset:
        """Make all leaves but these legal; raises NoLegalOpcodeError as `of` does."""
        ranks = _ranks(trie, leaves)
        if 2 * len(ranks) >= trie.n_leaves:
            return cls(trie, _others(trie, ranks), False)
        return cls(trie, ranks, True)

    def __len__(self) -> int:
        """How many leaves are legal."""
        return self.trie.n_leaves - len(self._ranks) if self._excluded else len(self._ranks)

    def leaves(self) -> Ints:
        """Return the legal leaves in rank order."""
        ranks = _others(self.trie, self._ranks) if self._excluded else self._ranks
        return self.trie.order[ranks]

    def forced(self) -> tuple[list[int], int]:
        """Return the ids that every legal leaf begins with, up to the first branch, and the node of that branch.

        Where one leaf is legal, the node is that of its last edge, which is not followed.
        """
        prefix: list[int] = []
        node = 0
        edges = self.legal_edges(node)
        while len(edges) == 1 and self.trie.edge_child[edges[0]] >= 0:
            prefix += self.trie.tail(int(edges[0])).tolist()
            node = int(self.trie.edge_child[edges[0]])
            edges = self.legal_edges(node)
        return prefix, node

    def only_leaf(self, edge: int) -> int:
        """Return the legal leaf below an edge that has one."""
        while (child := self.trie.child(edge)) >= 0:
            edge = int(self.legal_edges(child)[0])
        return self.trie.leaf(edge)

    def count(self, edge: int) -> int:
        """Return how many legal leaves are below an edge."""
        lo, hi = self.trie.bounds(edge)
        listed = bisect_left(self._listed, hi) - bisect_left(self._listed, lo)
        return hi - lo - listed if self._excluded else listed

    def legal_edges(self, node: int) -> NDArray[np.intp]:
        """Return the edges of a node with a legal leaf below, by first id.

        O(k + log m) for k edges and m listed ranks, and O(min(k log m, j log k)) for the j listed ranks below the node.
        """
        trie = self.trie
        edges = trie.edges(node)
        start, stop = edges.start, edges.stop
        first = bisect_left(self._listed, trie._edge_lo[start])
        last = bisect_left(self._listed, trie._node_hi[node], first)
        if first == last:
            return np.arange(start, stop if self._excluded else start)
        los = trie.edge_lo[start:stop]
        if last - first < stop - start:
            hit = np.searchsorted(los, self._ranks[first:last], side="right")
            return self._from_hits(hit + (start - 1), node)
        below = np.searchsorted(self._ranks[first:last], los)
        listed = np.empty(len(los), np.intp)
        listed[:-1] = below[1:]
        listed[-1] = last - first
        listed -= below
        if not self._excluded:
            return np.flatnonzero(listed) + start
        size = np.empty(len(los), np.intp)
        size[:-1] = los[1:]
        size[-1] = trie._node_hi[node]
        size -= los
        return np.flatnonzero(size > listed) + start

    def legal_ids(self, node: int) -> Ints:
        """Return the legal next ids at a node, ascending; a view of the trie's when all leaves are legal."""
        if self._excluded and not self._listed:
            return self.trie.children(node)
        return self.trie.edge_ids[self.legal_edges(node)]

    def _from_hits(self, hit: NDArray[np.intp], node: int) -> NDArray[np.intp]:
        """Return the legal edges; `hit` names the edge of each listed rank, ascending."""
        start, stop = self.trie._node_start[node], self.trie._node_start[node + 1]
        new = np.empty(len(hit), np.bool_)
        new[0] = True
        np.not_equal(hit[1:], hit[:-1], out=new[1:])
        if not self._excluded:
            return hit[new]
        at = np.flatnonzero(new)
        named = hit[at]
        after = np.minimum(named + 1, stop - 1)
        his = np.where(named + 1 < stop, self.trie.edge_lo[after], self.trie._node_hi[node])
        full = named[np.diff(at, append=len(hit)) == his - self.trie.edge_lo[named]]
        keep = np.ones(stop - start, np.bool_)
        keep[full - start] = False
        return np.flatnonzero(keep) + start


def _ranks(trie: Trie, leaves: Iterable[int] | NDArray[np.integer]) -> Ints:
    """Return the sorted distinct ranks of leaves."""
    wanted = leaves if isinstance(leaves, np.ndarray) else np.array(list(leaves), np.int64)
    if len(wanted) and (wanted.min() < 0 or wanted.max() >= trie.n_leaves):
        unknown = wanted[(wanted < 0) | (wanted >= trie.n_leaves)]
        raise NoLegalOpcodeError(f"leaf {int(unknown[0])} is outside 0..{trie.n_leaves - 1}")
    ranks = np.sort(trie.rank_of[wanted])
    new = np.ones(len(ranks), np.bool_)
    np.not_equal(ranks[1:], ranks[:-1], out=new[1:])
    return ranks[new]


def _others(trie: Trie, ranks: Ints) -> Ints:
    keep = np.ones(trie.n_leaves, np.bool_)
    keep[ranks] = False
    return np.flatnonzero(keep).astype(np.int32)
