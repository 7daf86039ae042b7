"""A million sequences: the promises about size and time, with room for a busy machine."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from kernel.trie.ordering import Ordering
from kernel.trie.store import load, save
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

MILLION = 1_000_000
ROOM = 8  # a shared, slow machine; the benchmark states the times themselves


@pytest.fixture(scope="module")
def million() -> Trie:
    """Five shared ids, six digits, and two ids at the end: 13 ids each, in random order."""
    numbers = np.random.default_rng(0).permutation(MILLION)
    ids = np.empty((MILLION, 13), np.int32)
    ids[:, :5] = [900, 901, 902, 903, 904]
    for place in range(6):
        ids[:, 5 + place] = numbers // 10 ** (5 - place) % 10 + 100 * (place + 1)
    ids[:, 11:] = [950, 951]
    offsets = np.arange(0, ids.size + 1, 13)
    start = time.perf_counter()
    trie = Trie.build(ids.reshape(-1), offsets)
    assert time.perf_counter() - start < 1.0 * ROOM
    assert trie.order[0] == int(np.flatnonzero(numbers == 0)[0])
    return trie


@pytest.mark.slow
def test_million_leaves_are_a_full_decimal_tree(million: Trie) -> None:
    """1 forced edge, then 1 + 10 + ... + 100,000 nodes of ten edges; 17 bytes an edge beside the ids."""
    assert million.n_nodes == 1 + 111_111
    assert million.n_edges == 1 + 1_111_110
    kept = sum(getattr(million, name).nbytes for name in Trie.ARRAYS) - million.ids.nbytes
    assert kept < 25 * MILLION


@pytest.mark.slow
def test_million_sequences_are_sorted_as_numbers(million: Trie) -> None:
    """The order is that of the six digits."""
    ranked = million.ids.reshape(MILLION, 13)[million.order][:: MILLION // 1000, 5:11] % 100
    values = ranked @ 10 ** np.arange(5, -1, -1)
    assert values.tolist() == list(range(0, MILLION, MILLION // 1000))


@pytest.mark.slow
def test_step_costs_the_same_for_ten_legal_leaves_and_for_all_but_ten(million: Trie) -> None:
    """Neither walks the leaves: a thousand steps take milliseconds, where one look at every leaf takes one each."""
    some = np.arange(10) * 99_991
    for subset in (Subset.of(million, some), Subset.without(million, some), Subset.all(million)):
        leaf = int(subset.leaves()[5])
        start = time.perf_counter()
        for _ in range(200):
            node, at = 0, 0
            path = million.sequence(leaf).tolist()
            while node >= 0:
                edges = subset.legal_edges(node)
                edge = million.find(node, path[at])
                assert edge in edges
                at += len(million.tail(edge))
                node = million.child(edge)
            assert million.leaf(edge) == leaf
        assert (time.perf_counter() - start) / 1400 < 25e-6 * ROOM


@pytest.mark.slow
def test_million_leaves_are_loaded_in_a_tenth_of_a_second(million: Trie, tmp_path: Path) -> None:
    """Mapped, checked and walked to the first choice."""
    path = tmp_path / "million.trie"
    save(path, million, tokenizer="t", schema="s")
    start = time.perf_counter()
    trie = load(path, tokenizer="t", schema="s").trie
    assert trie.children(trie.child(0)).tolist() == list(range(100, 110))
    assert time.perf_counter() - start < 0.1 * ROOM


@pytest.mark.slow
def test_duplicates_and_prefixes_are_found_in_a_million(million: Trie) -> None:
    """Two planted faults among many."""
    ids = million.ids.copy()
    offsets = million.starts.astype(np.int64)
    ids[13 * 5 : 13 * 6] = ids[13 * 77 : 13 * 78]
    shorter = np.delete(ids, np.arange(13 * 9 + 8, 13 * 10))
    offsets[10:] -= 5
    ordering = Ordering.of(shorter, offsets)
    assert ordering.duplicates() == [(5, 77)]
    assert [i for i, _ in ordering.prefixes()] == [9]
