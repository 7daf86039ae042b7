"""Legal subsets against a brute-force loop over the legal sequences."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import NoLegalOpcodeError
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

TWO_LEVELS = [[a, b, 7] for a in range(6) for b in range(30)]


@st.composite
def tries_and_leaves(draw: st.DrawFn) -> tuple[list[list[int]], set[int]]:
    """A random prefix-free set (every sequence ends in its own id) and some of its leaves."""
    bodies = draw(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=60, unique_by=tuple))
    sequences = [[*body, 9] for body in bodies]
    return sequences, draw(st.sets(st.integers(0, len(sequences) - 1)))


def assert_steps(trie: Trie, subset: Subset, legal: set[int]) -> None:
    """Compare every node's legal edges with a loop over the legal sequences."""
    for node in range(trie.n_nodes):
        expected = []
        for edge in trie.edges(node):
            lo, hi = trie.bounds(edge)
            count = sum(1 for leaf in trie.order[lo:hi].tolist() if leaf in legal)
            assert subset.count(edge) == count
            if count == 1:
                assert subset.only_leaf(edge) in legal
                assert subset.only_leaf(edge) in trie.order[lo:hi]
            if count:
                expected.append(edge)
        assert subset.legal_edges(node).tolist() == expected
    assert set(subset.leaves().tolist()) == legal
    assert subset.leaves().tolist() == [leaf for leaf in trie.order.tolist() if leaf in legal]
    assert len(subset) == len(legal)


@given(tries_and_leaves(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_legal_edges_equal_a_loop_over_the_legal_sequences(
    case: tuple[list[list[int]], set[int]], random: Random
) -> None:
    """`of` and `all` on random trees; equal sets have equal keys in whatever order and how often leaves are named."""
    sequences, legal = case
    trie = Trie.of(sequences)
    rest = set(range(len(sequences))) - legal
    everything = Subset.all(trie)
    assert_steps(trie, everything, legal | rest)
    if not legal:
        with pytest.raises(NoLegalOpcodeError, match=f"0 of {len(sequences)} opcodes are legal; .* at least one"):
            Subset.of(trie, legal)
        return
    some = Subset.of(trie, legal)
    assert_steps(trie, some, legal)
    shuffled = [*legal, *random.choices(sorted(legal), k=3)]
    random.shuffle(shuffled)
    again = Subset.of(trie, np.array(shuffled))
    assert_steps(trie, again, legal)
    assert some.key == again.key
    assert (some.key == everything.key) == (not rest)


@pytest.mark.parametrize("kept", [1, 2, 29, 31, 90, 149, 151, 179])
def test_every_size_of_subset_has_the_edges_of_the_loop(kept: int) -> None:
    """Nodes of 6 and of 30 edges with few and many legal leaves, in runs that end in, at and behind an edge."""
    trie = Trie.of(TWO_LEVELS)
    legal = set(np.random.default_rng(kept).permutation(len(TWO_LEVELS))[:kept].tolist())
    assert_steps(trie, Subset.of(trie, legal), legal)


def test_node_without_legal_leaves_has_no_edges() -> None:
    """Only opcodes that begin with 0 are legal; the node below 1 is empty, the root has one edge."""
    trie = Trie.of(TWO_LEVELS)
    subset = Subset.of(trie, range(30))
    assert trie.edge_ids[subset.legal_edges(0)].tolist() == [0]
    assert subset.legal_edges(trie.child(1)).tolist() == []


def test_a_whole_branch_that_is_illegal_takes_its_edge_only() -> None:
    """Leaves 30..59 begin with 1; without them the root keeps five edges."""
    trie = Trie.of(TWO_LEVELS)
    subset = Subset.of(trie, [*range(30), *range(60, 180)])
    assert trie.edge_ids[subset.legal_edges(0)].tolist() == [0, 2, 3, 4, 5]
    assert subset.count(1) == 0
    assert subset.count(0) == 30


@pytest.mark.parametrize("leaves", [[0, 180], [-1], np.array([5, 999])])
def test_unknown_leaf_is_refused_by_number(leaves: list[int]) -> None:
    """A leaf that the trie does not have is a caller's mistake, not an empty set."""
    trie = Trie.of(TWO_LEVELS)
    with pytest.raises(NoLegalOpcodeError, match=r"leaf (180|-1|999) is outside 0\.\.179"):
        Subset.of(trie, leaves)


def test_repeated_leaves_count_once() -> None:
    """A phase may list an opcode twice."""
    assert len(Subset.of(Trie.of(TWO_LEVELS), [3, 3, 3])) == 1
