"""Sorts many id sequences and counts the leading ids that neighbours share.

Sequence i is `ids[offsets[i]:offsets[i + 1]]`; one that begins another one sorts before it. The sort is a radix sort
from the left: as many ids as fit are packed into one 64-bit key for each sequence, the keys are sorted, and the next
round goes on with the sequences whose keys are still equal. Here with two ids in a key, written as hexadecimal digits;
an id is packed as id + 1, and 0 stands for the end of a sequence:

    sequence            round 1: ids 0 and 1        round 2: ids 2 and 3, of the open run only
    0: 5 6 7            67                          2: 50   done
    1: 5 6 8 9          67             sorted:      3: 67   00   sorted: 3, 0, 1
    2: 4                50             2, then      0: 67   80
    3: 5 6              67             0, 1, 3      1: 67   9a

    order   2  3  0  1          the sequences 4 | 5 6 | 5 6 7 | 5 6 8 9
    shared  0  0  2  2          leading ids in common with the sequence before: where two keys begin to differ

In the rounds after the first, the number of the run stands above the ids in the key, so all runs are sorted at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError

MAX_IDS = 2**31 - 1
BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Ordering:
    """The sorted order of n sequences.

    `order[r]` is the sequence of rank r; `shared[r]` is how many leading ids the sequences of ranks r - 1 and r have
    in common (0 for rank 0); `starts` are the offsets as 32-bit integers. Equal sequences keep no promised order.
    """

    order: NDArray[np.int32]
    shared: NDArray[np.int32]
    starts: NDArray[np.int32]

    @classmethod
    def of(cls, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> Ordering:
        """Sort the sequences; raises BuildError when the arrays do not describe sequences of ids >= 0.

        >>> ids = np.array([5, 6, 7, 5, 6, 8, 9, 4, 5, 6], np.int32)
        >>> ordering = Ordering.of(ids, np.array([0, 3, 7, 8, 10]))
        >>> ordering.order.tolist(), ordering.shared.tolist()
        ([2, 3, 0, 1], [0, 0, 2, 2])
        """
        check(ids, offsets)
        starts = offsets.astype(np.int32)
        order, shared = _sort(ids, starts)
        return cls(order, shared, starts)

    def empty(self) -> list[int]:
        """Return the sequences without ids."""
        return np.flatnonzero(self.starts[1:] == self.starts[:-1]).tolist()

    def duplicates(self) -> list[tuple[int, int]]:
        """Return (i, j), i < j, for each sequence j that was there before as i; by j.

        >>> Ordering.of(np.array([7, 8, 7], np.int32), np.array([0, 1, 2, 3])).duplicates()
        [(0, 2)]
        """
        _, equal = self._begins()
        if not len(equal):
            return []
        same = np.zeros(len(self.order), np.bool_)
        same[equal + 1] = True
        heads = np.flatnonzero(~same)
        firsts = np.repeat(np.minimum.reduceat(self.order, heads), np.diff(heads, append=len(same)))
        later = firsts != self.order
        return sorted(zip(firsts[later].tolist(), self.order[later].tolist(), strict=True), key=lambda pair: pair[1])

    def prefixes(self) -> list[tuple[int, int]]:
        """Return (i, j) for each sequence i that is a proper prefix of another one, j being one such; by i."""
        proper, equal = self._begins()
        if len(equal):  # the last of each run of equal sequences speaks for the run
            last = np.ones(len(self.order), np.bool_)
            last[equal] = False
            run = np.flatnonzero(last)
            speaker = np.repeat(run, np.diff(run, prepend=-1))
            begins = np.zeros(len(self.order), np.bool_)
            begins[proper] = True
            proper = np.flatnonzero(begins[speaker])
            longer = speaker[proper] + 1
        else:
            longer = proper + 1
        return sorted(zip(self.order[proper].tolist(), self.order[longer].tolist(), strict=True))

    def begins_another(self) -> NDArray[np.bool_]:
        """Return for each sequence whether it is a proper prefix of another one.

        >>> Ordering.of(np.array([1, 2, 1, 2, 3, 4], np.int32), np.array([0, 2, 5, 6])).begins_another()
        array([ True, False, False])
        """
        marks = np.zeros(len(self.order), np.bool_)
        marks[[i for i, _ in self.prefixes()]] = True
        return marks

    def _begins(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the ranks whose sequence properly begins that of the next rank, and those that equal it."""
        lengths = (self.starts[1:] - self.starts[:-1])[self.order]
        begins = np.flatnonzero(self.shared[1:] == lengths[:-1])
        equal = lengths[begins] == lengths[begins + 1]
        return begins[~equal], begins[equal]


def extended(
    ids: NDArray[np.int32], offsets: NDArray[np.int64], which: NDArray[np.bool_], tail: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the sequences with `tail` behind those marked in `which`, as new arrays.

    >>> extended(np.array([1, 2, 1], np.int32), np.array([0, 2, 3]), np.array([False, True]), [9, 8])
    (array([1, 2, 1, 9, 8], dtype=int32), array([0, 2, 5]))
    """
    ends = np.repeat(offsets[1:][which], len(tail))
    longer = np.insert(ids, ends, np.tile(np.asarray(tail, np.int32), int(which.sum())))
    grown = np.concatenate([[0], np.cumsum(which * len(tail))])
    return longer, offsets + grown


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


def _sort(ids: NDArray[np.int32], starts: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return (order, shared) of Ordering."""
    n = len(starts) - 1
    order = np.arange(n, dtype=np.int32)
    shared = np.zeros(n, np.int32)
    if not len(ids):
        return order, shared
    longest = int((starts[1:] - starts[:-1]).max())
    depth = _common(ids, starts)  # how many leading ids are compared already
    bits = (int(ids.max()) + 1).bit_length()
    open_ = order.copy()  # the ranks whose sequence still equals a neighbour
    key = np.zeros(n, np.uint64)  # the run of equal sequences that each of them is in
    runs = 1
    while len(open_):
        width = min((64 - (runs - 1).bit_length()) // bits, longest - depth + 1)
        sequences = order[open_]
        _pack(key, ids, starts, sequences, depth, width, bits)
        by = np.argsort(key)
        key = key[by]
        sequences = sequences[by]
        del by
        order[open_] = sequences
        left = starts[sequences + 1]
        left -= starts[sequences]
        left -= np.int32(depth)  # ids from `depth` on
        differ = key[1:] ^ key[:-1]
        equal = _equal_ids(differ, width, bits)
        np.minimum(equal, left[1:], out=equal)  # where both have ended, the packed zeros are equal as well
        equal += np.int32(depth)
        if runs == 1:
            shared[open_[1:]] = equal
        else:  # neighbours in two runs were told apart in an earlier round
            inside = (differ >> np.uint64(bits * width)) == 0
            shared[open_[1:][inside]] = equal[inside]
        same = np.zeros(len(key) + 1, np.bool_)
        np.equal(differ, 0, out=same[1:-1])
        goes_on = (same[1:] | same[:-1]) & (left >= width)
        heads = ~same[:-1][goes_on]
        open_ = open_[goes_on]
        key = np.cumsum(heads, dtype=np.uint64)
        runs = int(key[-1]) if len(key) else 0
        key -= np.uint64(1)
        depth += width
    return order, shared


def _pack(
    key: NDArray[np.uint64],
    ids: NDArray[np.int32],
    starts: NDArray[np.int32],
    sequences: NDArray[np.int32],
    depth: int,
    width: int,
    bits: int,
) -> None:
    """Shift the next `width` ids of each sequence into its key; block by block, to stay small and in the cache.

    The example of the header, first round:

    >>> ids, starts = np.array([5, 6, 7, 5, 6, 8, 9, 4, 5, 6], np.int32), np.array([0, 3, 7, 8, 10], np.int32)
    >>> key = np.zeros(4, np.uint64)
    >>> _pack(key, ids, starts, np.arange(4, dtype=np.int32), depth=0, width=2, bits=4)
    >>> [hex(k) for k in key.tolist()]
    ['0x67', '0x67', '0x50', '0x67']
    """
    for block in range(0, len(key), BLOCK):
        chosen = sequences[block : block + BLOCK]
        at = starts[chosen].astype(np.intp)
        at += depth
        left = starts[chosen + 1] - at
        part = key[block : block + BLOCK]
        for j in range(width):
            part <<= np.uint64(bits)
            following = ids.take(at, mode="clip")
            following += np.int32(1)
            following *= left > j
            part |= following.view(np.uint32)
            at += 1


def _equal_ids(differ: NDArray[np.uint64], width: int, bits: int) -> NDArray[np.int32]:
    """Return how many leading ids of two keys are equal, from the bits in which the keys differ.

    >>> _equal_ids(np.array([0x67 ^ 0x67, 0x67 ^ 0x68, 0x67 ^ 0x50], np.uint64), width=2, bits=4).tolist()
    [2, 1, 0]
    """
    equal = np.zeros(len(differ), np.int32)
    for j in range(1, width + 1):
        equal += differ < np.uint64(1 << (bits * (width - j)))
    return equal


def _common(ids: NDArray[np.int32], starts: NDArray[np.int32]) -> int:
    """Return how many leading ids all sequences share."""
    shortest = int((starts[1:] - starts[:-1]).min())
    for depth in range(shortest):
        for block in range(0, len(starts) - 1, BLOCK):
            if bool((ids[starts[block : min(block + BLOCK, len(starts) - 1)] + depth] != ids[depth]).any()):
                return depth
    return shortest
