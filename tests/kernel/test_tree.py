"""Layouts worked out by hand, and random ones against the definition of a score."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel.errors import NoLegalOpcodeError
from kernel.memory.grow import grow
from kernel.memory.tree import STEM, ScoreTree
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

# Leaves 0..3 over the ids 1..9:
#
#   1 ──┬── 2 ──┬── 3          leaf 0
#       │       └── 4 ── 5     leaf 1
#       └── 6                  leaf 2
#   9                          leaf 3
SEQUENCES = [[1, 2, 3], [1, 2, 4, 5], [1, 6], [9]]
ALL = np.array([3, 4, 2, 1], np.int32)


def laid_out(legal: list[int], scored: NDArray[np.int32] = ALL) -> ScoreTree:
    trie = Trie.of(SEQUENCES)
    tree = grow(trie, Subset.of(trie, legal), scored, 100)
    assert tree is not None
    return tree


def reads(tree: ScoreTree) -> list[tuple[int, list[int], tuple[int, ...]]]:
    return [(read.point, read.ids.tolist(), read.slots) for read in tree.reads]


def test_whole_tree_by_hand() -> None:
    """Evaluated are 1, 2 and 4: every id that another one stands behind. 3, 5, 6 and 9 are only read."""
    tree = laid_out([0, 1, 2, 3])
    assert tree.prefix == ()
    assert tree.tokens == (1, 2, 4)
    assert tree.parents == (STEM, 0, 1)
    assert tree.depths == [0, 1, 2]
    assert tree.leaves == (3, 2, 0, 1)
    assert reads(tree) == [
        (STEM, [1, 9], (0, ~0)),
        (0, [2, 6], (1, ~1)),
        (1, [3, 4], (~2, 2)),
        (2, [5], (~3,)),
    ]
    assert tree.tips == (2,)
    assert tree.paths() == [[0, 1, 2]]
    assert tree.longest == 4
    assert [p for p in (STEM, 0, 1, 2) if tree.wants(p)] == [STEM, 0, 1, 2]


def test_what_all_legal_opcodes_begin_with_is_forced() -> None:
    """Without leaf 3 all begin with 1: it stands in the prefix, is evaluated, and is not scored."""
    tree = laid_out([0, 1, 2])
    assert tree.prefix == (1,)
    assert tree.tokens == (2, 4)
    assert tree.parents == (STEM, 0)
    assert reads(tree) == [(STEM, [2, 6], (0, ~0)), (0, [3, 4], (~1, 1)), (1, [5], (~2,))]
    assert tree.leaves == (2, 0, 1)


def test_a_run_inside_an_edge_is_read_id_by_id() -> None:
    """Leaves 1 and 3: nothing parts 1 2 4 5 any more, so each of its ids is read behind the one before."""
    tree = laid_out([1, 3])
    assert tree.prefix == ()
    assert tree.tokens == (1, 2, 4)
    assert reads(tree) == [(STEM, [1, 9], (0, ~1)), (0, [2], (1,)), (1, [4], (2,)), (2, [5], (~0,))]
    assert tree.leaves == (1, 3)
    assert tree.longest == 4


def test_ids_behind_the_scored_ones_are_not_evaluated() -> None:
    """Of 1 2 4 5 three ids count, of 1 2 3 two, of 1 6 one: the branches are still read, for they tell them apart."""
    tree = laid_out([0, 1, 2], np.array([2, 3, 1, 1], np.int32))
    assert tree.prefix == (1,)
    assert tree.tokens == (2,)
    assert reads(tree) == [(STEM, [2, 6], (0, ~0)), (0, [3, 4], (~1, ~2))]


def test_where_only_an_illegal_opcode_parts_nothing_is_read() -> None:
    """Bodies `1` and `9`, closers behind: that of leaf 0 parts only from illegal leaves, so it is left out."""
    tree = laid_out([0, 3], np.array([1, 1, 1, 1], np.int32))
    assert tree.tokens == ()
    assert reads(tree) == [(STEM, [1, 9], (~0, ~1))]
    assert tree.leaves == (0, 3)


def test_sums_by_hand() -> None:
    """C is read at once; A and B add up along their branch; 1 is common to all and adds nothing."""
    tree = laid_out([0, 1, 2])
    values = {STEM: np.array([-1.0, -2.0]), 0: np.array([-0.5, -3.0]), 1: np.array([-0.25])}
    assert dict(zip(tree.leaves, tree.sums(values).tolist(), strict=True)) == {2: -2.0, 0: -1.5, 1: -4.25}


def test_an_impossible_branch_is_impossible_to_the_end() -> None:
    """Minus infinity stays, and is no NaN."""
    tree = laid_out([0, 1, 2])
    values = {STEM: np.array([-np.inf, -2.0]), 0: np.array([-0.5, -np.inf]), 1: np.array([-0.25])}
    assert tree.sums(values).tolist() == [-2.0, -np.inf, -np.inf]


def test_a_single_legal_opcode_needs_nothing() -> None:
    """It is forced to its end: no token to evaluate, no row to read."""
    tree = laid_out([1])
    assert tree.prefix == (1, 2, 4, 5)
    assert (tree.tokens, tree.reads, tree.tips, tree.leaves, tree.longest) == ((), (), (), (1,), 4)
    assert not tree.wants(STEM)
    assert tree.paths() == []


def test_a_tree_above_the_limit_is_not_laid_out() -> None:
    """Three evaluated ids fit a limit of three and not of two."""
    trie = Trie.of(SEQUENCES)
    everything = Subset.all(trie)
    assert grow(trie, everything, ALL, 3) is not None
    assert grow(trie, everything, ALL, 2) is None


def test_nothing_legal_is_refused() -> None:
    """No subset can be empty in the first place."""
    with pytest.raises(NoLegalOpcodeError, match="0 of 4 opcodes are legal"):
        laid_out([])


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[list[int]], list[int], list[int]]:
    """Sequences none of which begins another one, how many ids of each are scored, and which are legal."""
    sequences: list[list[int]] = []
    for s in draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=14)):
        if not any(o[: len(s)] == s or s[: len(o)] == o for o in sequences):
            sequences.append(s)
    scored = [draw(st.integers(1, len(s))) for s in sequences]
    legal = draw(st.lists(st.sampled_from(range(len(sequences))), min_size=1, unique=True))
    return sequences, scored, legal


@settings(max_examples=80, deadline=None)
@given(made=sets(), seed=st.integers(0, 5))
def test_any_tree_gives_the_scores_of_the_definition(
    tools: SimpleNamespace, made: tuple[list[list[int]], list[int], list[int]], seed: int
) -> None:
    """Read every row of a model that is a function of the ids before: the sums are those of each opcode on its own."""
    sequences, scored, legal = made
    trie = Trie.of(sequences)
    tree = grow(trie, Subset.of(trie, legal), np.array(scored, np.int32), 1000)
    assert tree is not None
    row = tools.hashed_row(5, seed)
    values = {}
    for read in tree.reads:
        path = [tree.tokens[p] for p in (tree.path(read.point) if read.point != STEM else [])]
        values[read.point] = tools.log_softmax(row((7, *tree.prefix, *path)))[read.ids]
    order = sorted(legal)
    expected = tools.plain_scores(row, [7], [sequences[i] for i in order], [scored[i] for i in order])
    assert sorted(tree.leaves) == order
    got = dict(zip(tree.leaves, tree.sums(values).tolist(), strict=True))
    assert [got[i] for i in order] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=80, deadline=None)
@given(made=sets())
def test_any_tree_evaluates_each_needed_beginning_once(made: tuple[list[list[int]], list[int], list[int]]) -> None:
    """Needed is every beginning that a scored id stands behind, longer than what all share; parents come first."""
    sequences, scored, legal = made
    trie = Trie.of(sequences)
    tree = grow(trie, Subset.of(trie, legal), np.array(scored, np.int32), 1000)
    assert tree is not None
    if len(legal) == 1:
        assert tree.tokens == ()
        return
    chosen = [sequences[i] for i in legal]
    shared = next(n for n in range(10) if len({tuple(s[: n + 1]) for s in chosen}) > 1)
    assert tree.prefix == tuple(chosen[0][:shared])
    needed = set()
    for i in legal:
        apart = next(n for n in range(1, 10) if sum(o[:n] == sequences[i][:n] for o in chosen) == 1)
        needed |= {tuple(sequences[i][shared:n]) for n in range(shared + 1, max(apart, scored[i]))}
    got = [tuple(tree.tokens[p] for p in tree.path(point)) for point in range(len(tree.tokens))]
    assert sorted(got) == sorted(needed)
    assert all(parent < point for point, parent in enumerate(tree.parents))
    assert tree.depths == [len(path) - 1 for path in got]
    assert set(tree.tips) == set(range(len(tree.tokens))) - set(tree.parents)
    points = [read.point for read in tree.reads]
    assert points == sorted(set(points))
