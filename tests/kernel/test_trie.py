"""The tree against a brute-force loop over all sequences, and cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.errors import BuildError
from kernel.trie.ordering import Ordering, extended
from kernel.trie.trie import Trie

# A toy vocabulary, drawn as a tree of its pieces:
#
#   g ── go              s ── say            a ── axe
#   p ── pick            │                   └─── aying
#   i ── ing             end                 " " ── " north"
PIECES = ["s", "go", "pick", "axe", "say", "ing", "aying", " north", "end"]
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
            below = sorted(i for i, s in enumerate(sequences) if s[: len(path) + len(tail)] == path + tail)
            assert sorted(trie.order[lo:hi].tolist()) == below
            if trie.child(edge) < 0:
                found[trie.leaf(edge)] = path + tail
            else:
                stack.append((trie.child(edge), path + tail))
        assert trie.find(node, 2**31 - 1) == -1  # no sequence here has that id
    assert nodes == trie.n_nodes
    assert [found[i] for i in range(len(sequences))] == sequences
    assert [trie.sequence(i).tolist() for i in range(len(sequences))] == sequences
    assert [sequences[i] for i in trie.order.tolist()] == sorted(sequences)
    assert trie.longest == max(map(len, sequences))


few_ids = st.lists(st.lists(st.integers(0, 3), max_size=9), min_size=1, max_size=40)
many_ids = st.lists(st.lists(st.integers(0, 2**31 - 2), max_size=4), min_size=1, max_size=20)


@given(few_ids | many_ids)
@settings(max_examples=100, deadline=None)
def test_every_path_equals_a_loop_over_all_sequences(sequences: list[list[int]]) -> None:
    """Children, edges, leaves and ranks of random trees, each compared with the definition."""
    sequences = prefix_free(sequences)
    if sequences:
        check_against_brute_force(Trie.of(sequences), sequences)


@given(few_ids | many_ids)
@settings(max_examples=100, deadline=None)
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
    assert ordering.begins_another().tolist() == begins
    assert [i for i, _ in ordering.prefixes()] == [i for i, b in enumerate(begins) if b]
    assert all(
        sequences[j][: len(sequences[i])] == sequences[i] and len(sequences[j]) > len(sequences[i])
        for i, j in ordering.prefixes()
    )
    assert ordering.duplicates() == [(sequences.index(s), j) for j, s in enumerate(sequences) if sequences.index(s) < j]


@given(few_ids, st.lists(st.integers(0, 9), max_size=3))
@settings(max_examples=100, deadline=None)
def test_tail_is_put_behind_the_marked_sequences_only(sequences: list[list[int]], tail: list[int]) -> None:
    """Compared with list concatenation."""
    ids, offsets = flat(sequences)
    which = np.array([len(s) % 2 == 0 for s in sequences])
    longer, ends = extended(ids, offsets, which, tail)
    expected = [s + tail if marked else s for s, marked in zip(sequences, which.tolist(), strict=True)]
    assert longer.tolist() == [i for s in expected for i in s]
    assert ends.tolist() == [0, *np.cumsum([len(s) for s in expected]).tolist()]


def test_textual_prefix_that_is_no_token_prefix_is_two_leaves() -> None:
    """`say` is one piece and `saying` is `s` + `aying`: neither begins the other, and `say` + `ing` is no path."""
    trie = Trie.of([spell("say"), spell("s", "aying")])
    assert trie.children(0).tolist() == sorted(spell("s", "say"))
    edge = trie.find(0, ID["say"])
    assert trie.child(edge) == -1
    assert trie.leaf(edge) == 0
    assert trie.tail(trie.find(0, ID["s"])).tolist() == spell("s", "aying")


def test_token_prefix_is_refused_with_both_leaves() -> None:
    """`go` begins `go north`, and `pick` begins `pickaxe`; the compiler must end the shorter ones itself."""
    with pytest.raises(BuildError, match=r"the first begins the second: leaves \(0, 2\), leaves \(3, 1\)") as caught:
        Trie.of([spell("go"), spell("pick", "axe"), spell("go", " north"), spell("pick")])
    assert caught.value.pairs == ((0, 2), (3, 1))


def test_ended_prefix_stays_reachable_beside_the_longer_one() -> None:
    """With an end id of its own the shorter opcode is a leaf, chosen against the longer one's next id."""
    trie = Trie.of([spell("go", "end"), spell("go", " north")])
    assert trie.children(0).tolist() == spell("go")
    assert trie.children(1).tolist() == sorted(spell("end", " north"))


def test_equal_sequences_are_refused_with_both_leaves() -> None:
    """The error names the first of the equal ones and each later one."""
    with pytest.raises(BuildError, match=r"equal sequences: leaves \(0, 2\), leaves \(0, 3\)") as caught:
        Trie.of([[1, 2], [1, 3], [1, 2], [1, 2]])
    assert caught.value.pairs == ((0, 2), (0, 3))


def test_empty_sequence_is_refused_by_leaf() -> None:
    """A literal without ids has no path."""
    with pytest.raises(BuildError, match="empty sequence: leaf 1"):
        Trie.of([[1], [], [2]])
    with pytest.raises(BuildError, match="there is no sequence"):
        Trie.of([])


def test_long_list_of_clashes_is_named_in_part_and_kept_in_whole() -> None:
    """Seven equal sequences make six pairs: five in the message, six in `.pairs`."""
    with pytest.raises(BuildError, match="and 1 more") as caught:
        Trie.of([[4]] * 7)
    assert len(caught.value.pairs) == 6


@pytest.mark.parametrize(
    ("ids", "offsets", "message"),
    [
        (np.array([1, -5], np.int32), [0, 2], "-5 at 1; ids start at 0"),
        (np.array([1, 2], np.int64), [0, 2], "needs a flat int32 array"),
        (np.array([1, 2], np.int32), [0, 1], "must grow from 0 to 2"),
        (np.array([1, 2], np.int32), [0, 2, 1, 2], "must grow from 0 to 2"),
        (np.array([1, 2], np.int32), [0.0, 2.0], "needs a flat array of integers"),
    ],
)
def test_arrays_that_are_no_sequences_are_refused(ids: np.ndarray, offsets: list[int], message: str) -> None:
    """What the arrays must be stands in the message."""
    with pytest.raises(BuildError, match=message):
        Trie.build(ids, np.array(offsets))


def test_one_sequence_is_one_forced_edge() -> None:
    """A single opcode leaves nothing to choose."""
    trie = Trie.of([[8, 9, 10]])
    assert (trie.n_nodes, trie.n_edges) == (1, 1)
    assert trie.tail(0).tolist() == [8, 9, 10]
    assert trie.leaf(0) == 0


def test_shared_prefix_is_one_edge_below_the_root() -> None:
    """Worked out by hand: 1 2, then 3 or 4, then below 4 again 5 or 6."""
    trie = Trie.of([[1, 2, 4, 6], [1, 2, 3], [1, 2, 4, 5]])
    assert trie.order.tolist() == [1, 2, 0]
    assert trie.node_start.tolist() == [0, 1, 3, 5]
    assert trie.node_depth.tolist() == [0, 2, 3]
    assert trie.edge_ids.tolist() == [1, 3, 4, 5, 6]
    assert trie.edge_child.tolist() == [1, -1, 2, -1, -1]
    assert trie.edge_lo.tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(ValueError, match="edge 2 leads to node 2"):
        trie.leaf(2)


def test_successors_depend_on_the_whole_path() -> None:
    """After `raise a` only `b` may follow, whatever follows `a` elsewhere."""
    trie = Trie.of([[1, 10, 11], [2, 10, 12], [1, 13, 12]])
    node = trie.child(trie.find(0, 1))
    edge = trie.find(node, 10)
    assert trie.tail(edge).tolist() == [10, 11]
    assert trie.leaf(edge) == 0


def test_caterpillar_of_nested_prefixes_is_as_deep_as_it_is_long() -> None:
    """0, 10, 110, 1110 ...: every node has two edges, one of them a leaf."""
    sequences = [[1] * k + [0] for k in range(200)]
    trie = Trie.of(sequences)
    assert trie.n_nodes == 199
    check_against_brute_force(Trie.of(sequences[:30]), sequences[:30])
    node = 0
    for k in range(199):
        assert trie.children(node).tolist() == [0, 1]
        assert trie.leaf(trie.find(node, 0)) == k
        node = trie.child(trie.find(node, 1))


def test_ten_thousand_literals_build_small_and_step_by_the_width_of_the_node() -> None:
    """All strings of four digits: 1 + 10 + 100 + 1000 nodes of ten edges, in a few arrays."""
    sequences = [[*map(int, f"{k:04d}")] for k in range(10_000)]
    trie = Trie.of(sequences)
    assert (trie.n_nodes, trie.n_edges) == (1111, 11_110)
    assert all(len(trie.children(node)) == 10 for node in range(trie.n_nodes))
    assert sum(getattr(trie, name).nbytes for name in Trie.ARRAYS) < 60 * len(sequences)


def test_arrays_are_read_only() -> None:
    """A trie is shared by sessions and may be mapped from a file."""
    trie = Trie.of([[1], [2]])
    with pytest.raises(ValueError, match="read-only"):
        trie.children(0)[0] = 3
