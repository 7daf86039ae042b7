"""Tokenizes many texts in few calls; each text has the ids that it has alone.

    texts       amber-7    amber-12   otter-7
    parts       amber|-|7  amber|-|1|2  otter|-|7     cut where `cuts` proves it safe
    tokenized   amber - 7 1 2 otter                   each different part once, many in one call (`joined`)
    ids         put together again, text by text

Where the parts are mostly new, as in random names, texts are joined without being cut.

Proven: a text that is cut at safe places only has the ids of its parts, one after the other (`cuts` says why). These
texts need no check. Checked, for every call: its ids stand for exactly the bytes that went in, and ids begin and end
where each part does. Parts that fail are tokenized in calls of their own. A text that holds a part which fails even
then is tokenized as `Vocabulary.literal` does it, with its checks and its errors. A vocabulary without safe cuts has
each of its texts tokenized in this way.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.text.joined import Ids, Tables, tokenize_joined
from kernel.text.vocabulary import Vocabulary
from kernel.textfile import utf8

Progress = Callable[[int, int], None]
"""(texts done, texts in all); called between blocks, at most ten times a second, never in the first second."""

BLOCK = 1 << 13
"""Texts cut at once: small enough for the cache, and for a few megabytes of scratch memory."""
SHORT = 7
"""Parts of up to this many bytes fit into one 64-bit key together with their length."""
KEPT = 1 << 17
"""Different parts remembered; beyond it the memory starts anew, so that a million different words do not pile up."""
MOSTLY = 0.5
"""When more than this share of a block's bytes is in new parts, the blocks after it are joined instead of cut."""
FEW = 64
"""So many texts are tokenized one by one: that costs less than cutting them."""


def tokenize_bulk(
    vocabulary: Vocabulary, texts: Sequence[str], *, progress: Progress | None = None
) -> tuple[Ids, NDArray[np.int64]]:
    """Tokenize the texts of opcodes, each as `vocabulary.literal` does.

    Returns:
        ids, int32, and offsets, int64, shape (len(texts) + 1,): text i is ids[offsets[i]:offsets[i + 1]].
    Raises:
        BuildError: as `vocabulary.literal`, for a text that cannot be an opcode.
    """
    tables = Tables.of(vocabulary) if len(texts) > FEW else None
    if tables is None:
        return _blocks(texts, lambda some: _one_by_one(vocabulary, some), progress)
    with ThreadPoolExecutor(_workers()) as pool:
        return _blocks(texts, PartTokenizer(vocabulary, tables, pool).block, progress)


def _blocks(
    texts: Sequence[str], block: Callable[[Sequence[str]], tuple[Ids, Ids]], progress: Progress | None
) -> tuple[Ids, NDArray[np.int64]]:
    """Put the blocks' ids and counts together."""
    ids = array("i")  # grows in place, so that the ids are never there twice
    offsets = np.zeros(len(texts) + 1, np.int64)
    last = time.monotonic() + 0.9
    for start in range(0, len(texts), BLOCK):
        some = texts[start : start + BLOCK]
        new, counts = block(some)
        ids.frombytes(new.view(np.uint8).data)
        offsets[start + 1 : start + len(some) + 1] = counts
        now = time.monotonic()
        if progress is not None and now - last >= 0.1:
            progress(start + len(some), len(texts))
            last = now
    np.cumsum(offsets, out=offsets)
    return np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32), offsets


def _one_by_one(vocabulary: Vocabulary, texts: Sequence[str]) -> tuple[Ids, Ids]:
    """Return the ids of some texts, flat, and how many each has; one call a text, the calls spread over threads."""
    share = max(FEW, -(-len(texts) // _workers()))
    if len(texts) <= share:
        sequences = [vocabulary.literal(text) for text in texts]
    else:
        slices = [texts[at : at + share] for at in range(0, len(texts), share)]
        with ThreadPoolExecutor(len(slices)) as pool:
            answers = pool.map(lambda some: [vocabulary.literal(text) for text in some], slices)
            sequences = [ids for answer in answers for ids in answer]
    counts = np.fromiter(map(len, sequences), np.int32, len(sequences))
    return np.fromiter((i for ids in sequences for i in ids), np.int32, int(counts.sum())), counts


def _workers() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class _Known:
    """Parts met so far, numbered in order: their ids, flat, and where those of each end."""

    short: dict[int, int] = field(default_factory=dict)
    long: dict[bytes, int] = field(default_factory=dict)
    ids: array[int] = field(default_factory=lambda: array("i"))
    ends: array[int] = field(default_factory=lambda: array("q", [0]))


class PartTokenizer:
    """Cuts texts at safe places and tokenizes each different part once."""

    def __init__(self, vocabulary: Vocabulary, tables: Tables, pool: Executor | None = None) -> None:
        self._vocabulary = vocabulary
        self._tables = tables
        self._pool = pool
        self._known = _Known()
        self._joins = False

    def block(self, texts: Sequence[str]) -> tuple[Ids, Ids]:
        """Return the ids of some texts, flat, and how many each has."""
        if len(self._known.ends) > KEPT:
            self._known = _Known()
        encoded = [utf8(text) for text in texts]
        sizes = np.fromiter(map(len, encoded), np.intp, len(encoded))
        if not sizes.all():
            self._vocabulary.literal("")  # refuses it
        if self._joins:
            ids, counts = tokenize_joined(self._vocabulary, self._tables, encoded, self._pool)
            return self._mend(texts, np.flatnonzero(counts == 0), ids, counts)
        data = b"".join(encoded)
        flat = np.frombuffer(data, np.uint8)
        cut = np.zeros(len(flat) + 1, np.bool_)
        pair = flat[:-1].astype(np.intp)
        pair <<= 8
        pair |= flat[1:]
        np.take(self._tables.safe, pair, out=cut[1:-1])
        cut[np.cumsum(sizes) - sizes] = True
        starts = np.flatnonzero(cut[:-1])
        numbers = self._number(data, starts, np.diff(starts, append=len(flat)))

        ends = np.frombuffer(self._known.ends, np.int64)
        length = np.diff(ends)  # how many ids each known part has; 0 marks one that needs its whole text
        part_counts = length[numbers]
        upto = np.cumsum(part_counts)
        at = np.arange(upto[-1])
        at += np.repeat(ends[:-1][numbers] - (upto - part_counts), part_counts)
        ids = np.frombuffer(self._known.ids, np.int32)[at] if len(at) else np.empty(0, np.int32)
        first = np.searchsorted(starts, np.cumsum(sizes) - sizes)
        counts = np.diff(upto[first] - part_counts[first], append=upto[-1]).astype(np.int32)
        whole = np.searchsorted(first, np.flatnonzero(part_counts == 0), side="right") - 1
        return self._mend(texts, whole, ids, counts)

    def _mend(self, texts: Sequence[str], whole: NDArray[np.intp], ids: Ids, counts: Ids) -> tuple[Ids, Ids]:
        """Replace the ids of the texts `whole` by those that each has alone."""
        if not len(whole):
            return ids, counts
        sequences = np.split(ids, np.cumsum(counts)[:-1])
        for i in set(whole.tolist()):
            sequences[i] = np.array(self._vocabulary.literal(texts[i]), np.int32)
        return np.concatenate(sequences), np.fromiter(map(len, sequences), np.int32, len(sequences))

    def _number(self, data: bytes, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the number of each part data[start:start + size], after tokenizing those that are new."""
        known = self._known
        numbers = np.empty(len(starts), np.intp)
        new: list[bytes] = []
        count = len(known.ends) - 1
        is_short = sizes <= SHORT
        different, back = _distinct(_keys(data, starts[is_short], sizes[is_short]))
        found = np.empty(len(different), np.intp)
        for i, key in enumerate(different.tolist()):
            number = known.short.get(key)
            if number is None:
                number = known.short[key] = count + len(new)
                new.append(key.to_bytes(8, "little")[: key >> (8 * SHORT)])
            found[i] = number
        numbers[is_short] = found[back]
        long_numbers = []
        is_long = ~is_short
        for start, end in zip(starts[is_long].tolist(), (starts + sizes)[is_long].tolist(), strict=True):
            part = data[start:end]
            number = known.long.get(part)
            if number is None:
                number = known.long[part] = count + len(new)
                new.append(part)
            long_numbers.append(number)
        numbers[is_long] = long_numbers
        ids, counts = tokenize_joined(self._vocabulary, self._tables, new, self._pool)
        known.ends.frombytes((np.cumsum(counts, dtype=np.int64) + len(known.ids)).view(np.uint8).data)
        known.ids.frombytes(ids.view(np.uint8).data)
        self._joins = sum(map(len, new)) > MOSTLY * len(data)
        return numbers


def _keys(data: bytes, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.uint64]:
    r"""Return an integer for each part data[start:start + size] of at most SHORT bytes; equal integers, equal parts.

    The data is seen as integers of eight bytes that overlap, one from each byte on (a stride of 1). The integer at the
    start of a part holds the part and what follows it. What follows is set to zero, and the size becomes the last byte,
    so that "a" and "a\0" differ. Little-endian, so the first byte is the lowest:

        data             a  b  -  7  a  b          parts: "ab" at 0, "-7" at 2, "ab" at 4
        integer at 0     a  b  -  7  a  b  \0 \0
        key of "ab"      a  b  \0 \0 \0 \0 \0 2     and the same at 4

    >>> keys = _keys(b"ab-7ab", np.array([0, 2, 4]), np.array([2, 2, 2]))
    >>> [key.to_bytes(8, "little") for key in keys.tolist()][:2]
    [b'ab\x00\x00\x00\x00\x00\x02', b'-7\x00\x00\x00\x00\x00\x02']
    >>> bool(keys[0] == keys[2])
    True
    """
    size = sizes.astype(np.uint64)
    keys = np.ndarray(len(data), "<u8", data + bytes(8), strides=(1,))[starts]
    keys &= (np.uint64(1) << (size << np.uint64(3))) - np.uint64(1)
    keys |= size << np.uint64(8 * SHORT)
    return keys


def _distinct(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the different keys, ascending, and for each key where it stands among them.

    As `numpy.unique`, which imports a hundredth of a second's worth of modules when it is first called.
    """
    order = np.argsort(keys)
    ranked = keys[order]
    new = np.ones(len(keys), np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=new[1:])
    back = np.empty(len(keys), np.intp)
    back[order] = np.cumsum(new) - 1
    return ranked[new], back
