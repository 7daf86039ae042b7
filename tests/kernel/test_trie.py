"""The tree against a brute-force loop over all sequences, and cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import BuildError
from kernel.ordering import Ordering, duplicates, proper_prefixes
from kernel.trie import Trie

# A vocabulary of 18 pieces, drawn as a tree:
#
#   c ── call            n ── north          s ── saying
#   o ── open ── opener  p ── pick ── pickaxe    s ── say ── saying
#   d ── drop            " " ── " north"
PIECES = [*" acdeginoprstuwxy", "go", "north", "pick", "axe", "say", "ing", "aying", "left", " north", "a ", "b", "end"]
ID = {piece: i for i, piece in enumerate(PIECES)}


def flat(sequences: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([i for s in sequences for i in s], np.int32)
    return ids, np.cumsum([0, *map(len, sequences)], dtype=np.int64)


def spell(*pieces: str) -> list[int]:
    return [ID[piece] for piece in pieces]


def prefix_free(sequences: list[list[int]]) -> list[list[int]]:
    """Drop the empty, the equal and those that begin another one."""
    kept: list[list[int]] = []
    for s in sequences:
        if s and not any(o[: len(s)] == s or s[: len(o)] == o for o in kept):
            kept.append(s)
    return kept


def brute_next(sequences: list[list[int]], path: list[int]) -> list[int]:
    return sorted({s[len(path)] for s in sequences if s[: len(path)] == path and len(s) > len(path)})


def check_against_brute_force(trie: Trie, sequences: list[list[int]]) -> None:
    """Walk every path of the tree and compare each set of next ids with a loop over all sequences."""
    found: dict[int, list[int]] = {}
    stack: list[tuple[int, list[int]]] = [(0, [])]
    nodes = 0
    while stack:
        node, path = stack.pop()
        nodes += 1
        assert trie.children(node).tolist() == brute_next(sequences, path)
        assert trie.node_depth[node] == len(path)
        assert node == 0 or len(trie.children(node)) >= 2
        for edge in trie.edges(node):
            tail = trie.tail(edge).tolist()
            assert tail[0] == trie.edge_ids[edge]
            assert trie.find(node, tail[0]) == edge
            assert trie.parent(edge) == node
            for cut in range(1, len(tail)):
                assert brute_next(sequences, path + tail[:cut]) == [tail[cut]]
            lo, hi = trie.bounds(edge)
            assert hi == trie.edge_hi[edge]
            below = sorted(i for i, s in enumerate(sequences) if s[: len(path) + len(tail)] == path + tail)
            assert sorted(trie.order[lo:hi].tolist()) == below
            if trie.child(edge) < 0:
                found[trie.leaf(edge)] = path + tail
            else:
                stack.append((trie.child(edge), path + tail))
        assert trie.find(node, 10**6) == -1
    assert nodes == trie.n_nodes
    assert [found[i] for i in range(len(sequences))] == sequences
    assert [trie.sequence(i).tolist() for i in range(len(sequences))] == sequences
    assert [sequences[i] for i in trie.order.tolist()] == sorted(sequences)
    assert trie.longest == max(map(len, sequences))


few_ids = st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=40)
many_ids = st.lists(st.lists(st.integers(0, 2**31 - 2), max_size=4), min_size=1, max_size=20)


@given(few_ids | many_ids)
@settings(max_examples=300, deadline=None)
def test_every_path_equals_a_loop_over_all_sequences(sequences: list[list[int]]) -> None:
    """Children, edges, leaves and ranks of random trees, each compared with the definition."""
    sequences = prefix_free(sequences)
    if sequences:
        check_against_brute_force(Trie.of(sequences), sequences)


@given(few_ids | many_ids)
@settings(max_examples=300, deadline=None)
def test_order_prefixes_and_duplicates_equal_the_definition(sequences: list[list[int]]) -> None:
    """The sorted order is Python's; a proper prefix begins a longer one; a duplicate has an equal before it."""
    ids, offsets = flat(sequences)
    ordering = Ordering.of(ids, offsets)
    ranked = [sequences[i] for i in ordering.order.tolist()]
    assert ranked == sorted(sequences)
    assert sorted(ordering.order.tolist()) == list(range(len(sequences)))
    for rank in range(1, len(ranked)):
        a, b, shared = ranked[rank - 1], ranked[rank], int(ordering.shared[rank])
        assert a[:shared] == b[:shared]
        assert a[shared : shared + 1] != b[shared : shared + 1] or len(a) == len(b) == shared
    begins = [any(o[: len(s)] == s and len(o) > len(s) for o in sequences) for s in sequences]
    assert proper_prefixes(ids, offsets).tolist() == begins
    assert [i for i, _ in ordering.prefixes()] == [i for i, b in enumerate(begins) if b]
    assert all(
        sequences[j][: len(sequences[i])] == sequences[i] and len(sequences[j]) > len(sequences[i])
        for i, j in ordering.prefixes()
    )
    assert duplicates(ids, offsets) == [
        (sequences.index(s), j) for j, s in enumerate(sequences) if sequences.index(s) < j
    ]
