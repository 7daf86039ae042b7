"""What a step, a build and a load cost with many sequences, in counts that no busy machine changes.

Counted are elements that numpy reads, lines of Python that run, and bytes that are allocated. A cost that grows with
the number of sequences shows in at least one of them.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from kernel.trie.opcodes import Compiled
from kernel.trie.ordering import Ordering
from kernel.trie.store import load, save
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

MILLION = 1_000_000
KEYS = {"tokenizer": "t", "opcodes": "o"}


class Counted(np.ndarray[Any, Any]):
    """An array that adds up how many elements the operations on it read; what is made of it counts as well."""

    read = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        Counted.read += sum(x.size for x in inputs if isinstance(x, np.ndarray))
        if out is not None:
            kwargs["out"] = tuple(map(plain, out))
        made = getattr(ufunc, method)(*map(plain, inputs), **kwargs)
        return made.view(Counted) if isinstance(made, np.ndarray) else made

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        Counted.read += sum(x.size for x in args if isinstance(x, np.ndarray))
        made = func(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
        return made.view(Counted) if isinstance(made, np.ndarray) else made

    def __getitem__(self, key: Any) -> Any:
        Counted.read += key.size if isinstance(key, np.ndarray) else 0
        return super().__getitem__(key)


def counted(name: str, size: Callable[..., int]) -> Callable[..., Any]:
    """Return a method of arrays that counts `size` elements, of the array and the first argument."""

    def method(self: Counted, *args: Any, **kwargs: Any) -> Any:
        Counted.read += size(self, *args[:1])
        return getattr(np.ndarray, name)(self, *args, **kwargs)

    return method


Counted.take = counted("take", lambda _, at: np.size(at))  # type: ignore[method-assign]
Counted.searchsorted = counted("searchsorted", lambda array, values: np.size(values) * len(array).bit_length())  # type: ignore[assignment]
for _name in ("__iter__", "argmax", "argsort", "astype", "copy", "cumsum", "nonzero", "repeat", "tobytes", "tolist"):
    setattr(Counted, _name, counted(_name, lambda array, *_: array.size))


def plain(value: Any) -> Any:
    """Return an array without the counting."""
    return value.view(np.ndarray) if isinstance(value, Counted) else value


@dataclass(frozen=True)
class Work:
    """What ran: elements read, lines of Python, and the most bytes that were held at once."""

    elements: int
    lines: int
    bytes: int


@contextmanager
def counting() -> Iterator[list[Work]]:
    """Put what the body does into the list."""
    found: list[Work] = []
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        lines += event == "line" and frame.f_code.co_filename != __file__
        return trace

    before, Counted.read = sys.gettrace(), 0
    sys.settrace(trace)
    tracemalloc.start()
    try:
        yield found
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sys.settrace(before)
        found.append(Work(Counted.read, lines, peak))


def sequences(digits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all numbers of so many digits in random order, their ids and offsets: 5 shared ids, the digits, 2 ids."""
    count = 10**digits
    numbers = np.random.default_rng(0).permutation(count)
    ids = np.empty((count, 7 + digits), np.int32)
    ids[:, :5] = [900, 901, 902, 903, 904]
    for place in range(digits):
        ids[:, 5 + place] = numbers // 10 ** (digits - 1 - place) % 10 + 100 * (place + 1)
    ids[:, -2:] = [950, 951]
    return numbers, ids.reshape(-1), np.arange(0, ids.size + 1, 7 + digits)


def most(trie: Trie, subset: Subset) -> Work:
    """Return the most that one step costs on the way to a legal leaf; each edge on the way is checked."""
    arrays = [getattr(trie, name) for name in Trie.ARRAYS]
    for name, array in zip(Trie.ARRAYS, arrays, strict=True):
        setattr(trie, name, array.view(Counted))
    for name in ("_starts", "_ends", "_before"):
        setattr(subset, name, getattr(subset, name).view(Counted))
    leaf = int(subset.leaves()[5])
    path = plain(trie.sequence(leaf)).tolist()
    steps, node, at = [], 0, 0
    while node >= 0:
        with counting() as found:
            edges = subset.legal_edges(node)
        steps += found
        edge = trie.find(node, path[at])
        assert edge in plain(edges)
        at += len(trie.tail(edge))
        node = trie.child(edge)
    assert trie.leaf(edge) == leaf
    for name, array in zip(Trie.ARRAYS, arrays, strict=True):
        setattr(trie, name, array)
    return Work(max(s.elements for s in steps), max(s.lines for s in steps), max(s.bytes for s in steps))


def subsets(trie: Trie) -> dict[str, Subset]:
    """Ten legal leaves, all but ten, a random half, and all."""
    count = trie.n_leaves
    ten = np.arange(10) * (count // 10) + count // 100
    half = np.flatnonzero(np.random.default_rng(1).random(count) < 0.5)
    rest = np.delete(np.arange(count), ten)
    return {name: Subset.of(trie, some) for name, some in (("ten", ten), ("rest", rest), ("half", half))} | {
        "all": Subset.all(trie)
    }


@pytest.mark.parametrize("digits", [3, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_step_costs_the_same_for_any_number_of_leaves_and_of_legal_ones(digits: int) -> None:
    """At a node of ten edges: ten searches among the runs, a few reads of ten elements, few lines and bytes."""
    _, ids, offsets = sequences(digits)
    trie = Trie.build(ids, offsets)
    for name, subset in subsets(trie).items():
        work = most(trie, subset)
        depth = len(subset._ends).bit_length()
        assert work.elements <= 10 * depth + 100, (name, work)
        assert work.lines <= 60, (name, work)
        assert work.bytes <= 8000, (name, work)


def test_step_that_looks_at_every_run_or_leaf_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are checked themselves, with four ways to be slow; a thousand leaves are enough to see each."""
    _, ids, offsets = sequences(3)
    right = Subset.legal_edges

    def reads(subset: Subset, node: int) -> Any:
        assert (subset._starts <= subset.trie.n_leaves).all()
        return right(subset, node)

    def copies(subset: Subset, node: int) -> Any:
        assert len(subset.trie._edge_lo.tolist()) == subset.trie.n_edges
        return right(subset, node)

    def allocates(subset: Subset, node: int) -> Any:
        assert not np.zeros(subset.trie.n_leaves, np.int32).any()
        return right(subset, node)

    def loops(subset: Subset, node: int) -> Any:
        assert all(subset.count(edge) >= 0 for edge in range(subset.trie.n_edges))
        return right(subset, node)

    trie = Trie.build(ids, offsets)
    usual = most(trie, subsets(trie)["half"])
    for slow, field in ((reads, "elements"), (copies, "bytes"), (allocates, "bytes"), (loops, "lines")):
        monkeypatch.setattr(Subset, "legal_edges", slow)
        assert getattr(most(trie, subsets(trie)["half"]), field) > 1.5 * getattr(usual, field), slow.__name__


def test_build_runs_few_lines_and_holds_few_bytes_for_each_sequence() -> None:
    """Ten times the sequences take ten times the bytes at most, and as many lines but for a few blocks more."""
    found = []
    for digits in (4, 5):
        _, ids, offsets = sequences(digits)
        with counting() as work:
            Trie.build(ids, offsets)
        found += work
    few, many = found
    assert many.bytes <= 11 * few.bytes
    assert many.bytes <= 90 * 10**5
    assert many.lines <= 2 * few.lines
    assert many.lines < 4000


def test_loading_maps_the_file_and_copies_nothing(tmp_path: Path) -> None:
    """The lengths of the sequences are all that is held, four bytes each, and 70 bytes a sequence are in the file."""
    _, ids, offsets = sequences(5)
    path = tmp_path / "many.trie"
    save(path, Compiled(Trie.build(ids, offsets), np.ones(10**5, np.int32)), **KEYS)
    load(path, **KEYS)
    with counting() as work:
        trie = load(path, **KEYS).trie
    assert path.stat().st_size > 70 * 10**5
    assert work[0].bytes < 5 * 10**5
    assert work[0].lines < 500
    assert trie.children(trie.child(0)).tolist() == list(range(100, 110))


@pytest.fixture(scope="module")
def million() -> Trie:
    """Thirteen ids each, in random order."""
    numbers, ids, offsets = sequences(6)
    trie = Trie.build(ids, offsets)
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
