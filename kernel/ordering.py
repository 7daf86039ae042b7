"""Lexicographic order of many id sequences and the ids that neighbours share. Knows no text and no tree.

Sequence i is `ids[offsets[i]:offsets[i + 1]]`. A sequence that begins another one sorts before it. The sort packs
as many ids as fit into one 64-bit key, sorts once, and goes on only with the sequences that are still equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError

MAX_IDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Ordering:
    """The sorted order of n sequences.

    `order[r]` is the sequence of rank r; `shared[r]` is how many leading ids the sequences of ranks r - 1 and r have
    in common (0 for rank 0); `lengths[i]` is the length of sequence i. Equal sequences keep no promised order.
    """

    order: NDArray[np.int32]
    shared: NDArray[np.int32]
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> Ordering:
        """Sort the sequences; raises BuildError when the arrays do not describe sequences of ids >= 0."""
        check(ids, offsets)
        lengths = np.diff(offsets).astype(np.int32)
        order, shared = _sort(ids, offsets, lengths)
        return cls(order, shared, lengths)

    def duplicates(self) -> list[tuple[int, int]]:
        """Return (i, j), i < j, for each sequence j that was there before as i; by j."""
        ranked = self.lengths[self.order]
        same = np.zeros(len(ranked), np.bool_)
        same[1:] = (self.shared[1:] == ranked[1:]) & (ranked[1:] == ranked[:-1])
        if not same.any():
            return []
        heads = np.flatnonzero(~same)
        firsts = np.repeat(np.minimum.reduceat(self.order, heads), np.diff(heads, append=len(same)))
        later = firsts != self.order
        return sorted(zip(firsts[later].tolist(), self.order[later].tolist(), strict=True), key=lambda pair: pair[1])

    def prefixes(self) -> list[tuple[int, int]]:
        """Return (i, j) for each sequence i that is a proper prefix of another one, j being one such; by i."""
        begins, longer = self._begins()
        found = np.flatnonzero(begins)
        return sorted(zip(self.order[found].tolist(), self.order[longer[found]].tolist(), strict=True))

    def begins_another(self) -> NDArray[np.bool_]:
        """Return for each sequence whether it is a proper prefix of another one."""
        marks = np.zeros(len(self.order), np.bool_)
        marks[self.order[self._begins()[0]]] = True
        return marks

    def _begins(self) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return per rank: whether the sequence begins a later one, and the rank of that one (undefined if not)."""
        n = len(self.order)
        ranked = self.lengths[self.order]
        inside = np.zeros(n, np.bool_)  # this rank is a prefix of, or equal to, the next
        inside[:-1] = self.shared[1:] == ranked[:-1]
        equal = np.zeros(n, np.bool_)
        equal[:-1] = inside[:-1] & (ranked[1:] == ranked[:-1])
        last = np.flatnonzero(~equal)  # the last of each run of equal sequences speaks for the run
        after = np.repeat(last + 1, np.diff(last, prepend=-1))
        return inside[after - 1] & (after < n), after


def proper_prefixes(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each sequence whether it is a proper prefix of another one.

    >>> proper_prefixes(np.array([1, 2, 1, 2, 3, 4], np.int32), np.array([0, 2, 5, 6]))
    array([ True, False, False])
    """
    return Ordering.of(ids, offsets).begins_another()


def duplicates(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return (i, j), i < j, for each sequence j that was there before as i.

    >>> duplicates(np.array([7, 8, 7], np.int32), np.array([0, 1, 2, 3]))
    [(0, 2)]
    """
    return Ordering.of(ids, offsets).duplicates()


def check(ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
    """Raise BuildError unless the two arrays describe at least one sequence of ids >= 0."""
    if ids.dtype != np.int32 or ids.ndim != 1:
        raise BuildError(f"ids: {ids.dtype} of shape {ids.shape}; needs a flat int32 array")
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise BuildError(f"offsets: {offsets.dtype} of shape {offsets.shape}; needs a flat array of integers")
    if len(offsets) < 2:
        raise BuildError("there is no sequence; at least one opcode is needed")
    if len(ids) > MAX_IDS:
        raise BuildError(f"{len(ids)} ids are more than {MAX_IDS}")
    if offsets[0] != 0 or offsets[-1] != len(ids) or bool((offsets[1:] < offsets[:-1]).any()):
        raise BuildError(f"offsets: must grow from 0 to {len(ids)}, the number of ids")
    if len(ids) and ids.min() < 0:
        raise BuildError(f"ids: {int(ids.min())} at {int(ids.argmin())}; ids start at 0")


def _sort(
    ids: NDArray[np.int32], offsets: NDArray[np.int64], lengths: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (order, shared) of Ordering."""
    n = len(lengths)
    order = np.arange(n, dtype=np.int32)
    shared = np.zeros(n, np.int32)
    if not len(ids):
        return order, shared
    depth = _common(ids, offsets, lengths)
    bits = (int(ids.max()) + 1).bit_length()  # 0 stands for "ended", so every id moves up by one
    open_ = np.arange(n, dtype=np.int32)  # ranks whose sequence still equals a neighbour
    group = np.zeros(n, np.uint64)  # which run of equal sequences each of them is in
    groups = 1
    while len(open_):
        width = min((64 - (groups - 1).bit_length()) // bits, int(lengths.max()) - depth + 1)
        sequences = order[open_]
        start = offsets[sequences] + depth
        left = lengths[sequences] - np.int32(depth)
        key = group
        for j in range(width):
            key = key << np.uint64(bits)
            key |= np.where(left > j, ids.take(start + j, mode="clip") + np.int32(1), np.int32(0)).view(np.uint32)
        by = np.argsort(key)
        key, left = key[by], left[by]
        order[open_] = sequences[by]
        differ = key[1:] ^ key[:-1]
        equal = np.zeros(len(differ), np.int32)
        for j in range(1, width + 1):
            equal += differ < np.uint64(1 << (bits * (width - j)))
        np.minimum(equal, left[1:], out=equal)
        if groups == 1:
            shared[open_[1:]] = equal + np.int32(depth)
        else:
            inside = (differ >> np.uint64(bits * width)) == 0 if bits * width < 64 else np.ones(len(differ), np.bool_)
            shared[open_[1:][inside]] = equal[inside] + np.int32(depth)
        same = np.zeros(len(key) + 1, np.bool_)
        same[1:-1] = differ == 0
        goes_on = (same[1:] | same[:-1]) & (left >= width)
        heads = ~same[:-1][goes_on]
        open_ = open_[goes_on]
        group = np.cumsum(heads, dtype=np.uint64)
        groups = int(group[-1]) if len(group) else 0
        group -= np.uint64(1)
        depth += width
    return order, shared


def _common(ids: NDArray[np.int32], offsets: NDArray[np.int64], lengths: NDArray[np.int32]) -> int:
    """Return how many leading ids all sequences share."""
    shortest = int(lengths.min())
    for depth in range(shortest):
        if bool((ids[offsets[:-1] + depth] != ids[depth]).any()):
            return depth
    return shortest
