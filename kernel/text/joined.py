"""Tokenizes many byte strings in few calls of the tokenizer; each string has the ids that it has alone.

A call costs more than the tokens it makes, so strings are given to the tokenizer in a row:

    strings     amber   -   otter   7   x
    one call    amber-otter7            next to each other, where the cut between them is safe (`cuts`)
                             7"x        with a separator byte between them, where that makes two safe cuts
                x                       in a new call, where neither will do, and every CALL bytes

The ids of each string are found by the bytes that they stand for; the ids of separators are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from kernel.text.cuts import safe_cuts
from kernel.text.vocabulary import Vocabulary

Ids = NDArray[np.int32]

CALL = 1 << 12
"""Bytes of joined strings in one call; the tokenizer is slower on much longer texts."""
NO_GLUE = 128
"""In the glue table: nothing will do. Below it: the separator byte. TOUCH: nothing is needed."""
TOUCH = 129


@dataclass(frozen=True)
class Tables:
    """What cutting and joining need of a vocabulary; made once for each.

    safe: bool, shape (65536,), of `safe_cuts`, flat.
    glue: uint8, shape (65536,): what to put between a string that ends with byte a and one that begins with byte b,
        at 256 a + b.
    piece_bytes: int64, shape (n_vocab,): the length of each piece.
    """

    safe: NDArray[np.bool_]
    glue: NDArray[np.uint8]
    piece_bytes: NDArray[np.int64]

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Tables | None:
        """Return the tables of a vocabulary; None when its texts cannot be cut."""
        if vocabulary not in _TABLES:
            safe = safe_cuts(vocabulary)
            lengths = np.fromiter(map(len, vocabulary.pieces), np.int64, len(vocabulary))
            _TABLES[vocabulary] = cls(safe.reshape(-1), _glue(safe), lengths) if safe.any() else None
        return _TABLES[vocabulary]


_TABLES: WeakKeyDictionary[Vocabulary, Tables | None] = WeakKeyDictionary()


def _glue(safe: NDArray[np.bool_]) -> NDArray[np.uint8]:
    table = np.full((256, 256), NO_GLUE, np.uint8)
    for separator in range(127, -1, -1):
        table[np.outer(safe[:, separator], safe[separator])] = separator
    table[safe] = TOUCH
    return table.reshape(-1)


def tokenize_joined(
    vocabulary: Vocabulary, tables: Tables, strings: Sequence[bytes], pool: Executor | None = None
) -> tuple[Ids, Ids]:
    """Return the ids of some strings, flat, and how many each has.

    A string has the ids that the tokenizer gives it alone; 0 ids when those do not join to its bytes or are no text.

    Args:
        strings: none of them empty.
        pool: where the calls run; the tokenizer works without the interpreter's lock.
    """
    if not strings:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    size = np.fromiter(map(len, strings), np.int64, len(strings))
    data = b"".join(strings)
    flat = np.frombuffer(data, np.uint8)
    start = np.cumsum(size) - size
    glue = tables.glue[flat[start[1:] - 1].astype(np.intp) << 8 | flat[start[1:]]]
    inserted = glue < NO_GLUE
    if inserted.any():
        data = np.insert(flat, start[1:][inserted], glue[inserted]).tobytes()
        start[1:] += np.cumsum(inserted)
    new = start // CALL
    begins = np.ones(len(strings) + 1, np.bool_)
    begins[1:-1] = (glue == NO_GLUE) | (new[1:] != new[:-1])
    edges = np.flatnonzero(begins).tolist()

    def call(at: int) -> tuple[Ids, Ids]:
        first, last = edges[at], edges[at + 1]
        base = int(start[first])
        whole = data[base : int(start[last - 1] + size[last - 1])]
        found = _split(vocabulary, tables, whole, start[first:last] - base, size[first:last])
        if found is None and last - first > 1:
            alone = [_alone(vocabulary, string) for string in strings[first:last]]
            counts = np.fromiter(map(len, alone), np.int32, len(alone))
            return np.fromiter((i for ids in alone for i in ids), np.int32, int(counts.sum())), counts
        return found or (np.empty(0, np.int32), np.zeros(1, np.int32))

    run: Callable[..., object] = pool.map if pool is not None and len(edges) > 2 else map
    answers = list(run(call, range(len(edges) - 1)))  # type: ignore[call-overload]
    return np.concatenate([ids for ids, _ in answers]), np.concatenate([counts for _, counts in answers])


def _split(
    vocabulary: Vocabulary, tables: Tables, whole: bytes, start: NDArray[np.int64], size: NDArray[np.int64]
) -> tuple[Ids, Ids] | None:
    """Tokenize joined strings; return their ids and counts, or None unless ids begin and end where strings do."""
    ids = vocabulary._tokenize(whole, False, False)
    if not vocabulary._exact(ids, whole):
        return None
    flat = np.array(ids, np.int32)
    end_byte = np.cumsum(tables.piece_bytes[flat])
    first = np.searchsorted(end_byte, start, side="right")
    last = np.searchsorted(end_byte, start + size)
    if (end_byte[last] != start + size).any() or (end_byte[first[1:] - 1] != start[1:]).any():
        return None
    counts = last + 1 - first
    if counts.sum() < len(flat):  # leave out the separators
        edge = np.zeros(len(flat) + 1, np.int8)
        edge[first] += 1
        edge[last + 1] -= 1
        flat = flat[np.cumsum(edge[:-1]).astype(np.bool_)]
    return flat, counts.astype(np.int32)


def _alone(vocabulary: Vocabulary, string: bytes) -> list[int]:
    ids = vocabulary._tokenize(string, False, False)
    return ids if vocabulary._exact(ids, string) else []
