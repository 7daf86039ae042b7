"""What null prompts say of opcodes, read here once for a browser: there it would take minutes.

The form is that of `kernel.trie.arrays`; nulls.js of the page takes it. The header names vocabulary, opcodes and
weights.

    prompts, prompt_ends   the ids of the null prompts one behind the other, and where each ends
    values                 for each prompt as many numbers as the trie has ids: the log-probability of each id behind
                           the prompt and the ids in front of it, NaN where it does not count
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel.choose.score import TREE_LIMIT, Scorer
from kernel.errors import UsageError
from kernel.memory.listed import Ids
from kernel.memory.passes import Work
from kernel.memory.tree import ScoreTree
from kernel.trie.arrays import Kind, packed
from kernel.trie.opcodes import OpcodeSet

KIND = Kind(b"\x93CKTABN\n", 1, "file of null prompts for the tab", "made", "make it again")
EDGE = 1 << 20
"""Bytes at both ends of a model file that name its weights."""


def nulls_asset(scorer: Scorer, opcodes: OpcodeSet, nulls: Sequence[Ids], model: Path) -> bytes:
    """Score every opcode behind each null prompt, and return what was said for a browser that has this model file.

    Raises:
        UsageError: the opcodes are too many to be scored whole.
    """
    tree = scorer.tree(opcodes, opcodes.everything)
    if tree is None:
        raise UsageError(f"{len(opcodes)} opcodes need more than {TREE_LIMIT} tokens; null prompts are kept of fewer")
    read = [scorer.score(Work((null,), tree)).values[0] for null in dict.fromkeys(nulls)]
    arrays = {
        "prompts": np.asarray([token for null in dict.fromkeys(nulls) for token in null], np.int32),
        "prompt_ends": np.cumsum([len(null) for null in dict.fromkeys(nulls)], dtype=np.int64).astype(np.int32),
        "values": np.concatenate([_by_place(opcodes, tree, values) for values in read]),
    }
    keys = {"tokenizer": opcodes.vocabulary.fingerprint, "opcodes": opcodes.fingerprint, "weights": weights_of(model)}
    return packed(arrays, keys, KIND)


def weights_of(model: Path) -> str:
    """Name the weights of a model file by what a browser can compute too: a hash of its size and both its ends."""
    size = model.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with model.open("rb") as file:
        digest.update(file.read(EDGE))
        file.seek(max(0, size - EDGE))
        digest.update(file.read(EDGE))
    return f"sha256:{digest.hexdigest()}"


def _by_place(opcodes: OpcodeSet, tree: ScoreTree, values: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return what was read, by place in the ids of the trie."""
    trie = opcodes.trie
    out = np.full(len(trie.ids), np.nan)
    for leaf in range(trie.n_leaves):
        ids, start = tuple(trie.sequence(leaf).tolist()), int(trie.starts[leaf])
        for at in range(len(tree.prefix), len(ids)):
            point = tree.at.get(ids[:at])
            if point is None:  # behind what is scored
                break
            place = int(np.searchsorted(tree.ids_at[point], ids[at]))
            if place < len(tree.ids_at[point]) and tree.ids_at[point][place] == ids[at]:
                out[start + at] = values[point][place]
    return out
