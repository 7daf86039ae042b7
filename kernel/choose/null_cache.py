"""Cache of null-prompt scores, in memory and on disk, keyed by the opcode set and the prompt's token ids.

What a null prompt said over every opcode answers for any legal set, because what a smaller tree reads stands in the
larger one. So a legal set that changes from step to step needs no null prompt twice.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernel.choose.score import Values
from kernel.errors import StoreError
from kernel.memory.listed import Listed, Prompted
from kernel.memory.passes import Ids
from kernel.memory.tree import ScoreTree
from kernel.recent import keep, recall
from kernel.trie.arrays import Kind, keep_last, read_arrays, write_arrays
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset

Floats = NDArray[np.float64]

NULLS_KEPT = 1024

MANY = 24
"""So many null prompts take seconds, so they are scored over every opcode and kept on disk."""

FILES_KEPT = 32

KIND = Kind(b"\x93CKNULL\n", 2, "file of null prompts", "made", "they are read anew")


class _Whole(NamedTuple):
    opcodes: OpcodeSet  # kept, so that its id is not given to another one
    tree: ScoreTree
    values: Values


class NullCache:
    """Log-probabilities behind null prompts by opcode set, legal set and prompt; keeps the last NULLS_KEPT.

    Args:
        folder: where many at once are kept on disk; None is nowhere.
        model: fingerprint of the weights and of what runs them.
        note: is told why a file could not be used or written; the result is right all the same.
    """

    def __init__(
        self, folder: Path | None = None, model: str = "", note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._folder, self._model, self._note = folder, model, note
        self._known: OrderedDict[tuple[int, bytes, Prompted], tuple[OpcodeSet, Floats]] = OrderedDict()
        self._whole: OrderedDict[tuple[int, Prompted], _Whole] = OrderedDict()

    def recall(
        self, opcodes: OpcodeSet, subset: Subset, null: Prompted | Sequence[int], tree: ScoreTree | None = None
    ) -> Floats | None:
        """Return what `remember` was given for this legal set, or can be read off what it was given for all opcodes.

        Args:
            tree: of the legal set, where it is scored whole.
        Returns:
            float64, shape (n_legal,), in the order in which it was remembered, or in that of the tree's leaves.
        """
        key = id(opcodes), subset.key, _key(null)
        found = recall(self._known, key)
        if found is not None:
            return found[1]
        whole = recall(self._whole, (key[0], key[2]))
        if whole is None or tree is None:
            return None
        sums = tree.sums(tree.out_of(whole.tree, whole.values))
        keep(self._known, key, (opcodes, sums), NULLS_KEPT)
        return sums

    def remember(self, opcodes: OpcodeSet, subset: Subset, null: Prompted | Sequence[int], sums: Floats) -> None:
        """Keep the log-probability of each legal opcode."""
        keep(self._known, (id(opcodes), subset.key, _key(null)), (opcodes, sums), NULLS_KEPT)

    def remember_whole(
        self, opcodes: OpcodeSet, null: Prompted | Sequence[int], tree: ScoreTree, values: Values
    ) -> None:
        """Keep what was read at each point of the tree of all opcodes; it then answers for any legal set."""
        self.remember(opcodes, opcodes.everything, null, tree.sums(values))
        keep(self._whole, (id(opcodes), _key(null)), _Whole(opcodes, tree, values), NULLS_KEPT)

    def load(self, opcodes: OpcodeSet, tree: ScoreTree, nulls: Sequence[Ids]) -> bool:
        """Remember what a file says of these null prompts, scored over every opcode; return whether there is one.

        Args:
            tree: of all opcodes.
        """
        if self._folder is None or len(nulls) < MANY:
            return False
        path, keys = self._file(opcodes, nulls)
        counts = [len(each.ids) for each in tree.reads]
        try:
            flat = read_arrays(path, keys, KIND)["values"]
            rows = flat.astype(np.float64).reshape(len(nulls), sum(counts))
        except FileNotFoundError:
            return False
        except (StoreError, KeyError, ValueError) as error:
            self._note(str(error))
            return False
        for null, row in zip(nulls, rows, strict=True):
            parts = np.split(row, np.cumsum(counts)[:-1])
            values = {each.point: part for each, part in zip(tree.reads, parts, strict=True)}
            self.remember_whole(opcodes, null, tree, values)
        return True

    def save(self, opcodes: OpcodeSet, nulls: Sequence[Ids]) -> None:
        """Write what these null prompts said of every opcode; the folder keeps the last FILES_KEPT files."""
        if self._folder is None or len(nulls) < MANY:
            return
        whole = [found for null in nulls if (found := self._whole.get((id(opcodes), null))) is not None]
        if len(whole) < len(nulls):
            return
        path, keys = self._file(opcodes, nulls)
        values = np.concatenate([said.values[each.point] for said in whole for each in said.tree.reads])
        try:
            write_arrays(path, {"values": values}, keys, KIND)
            keep_last(self._folder, "*.nulls", FILES_KEPT)
        except (StoreError, OSError) as error:
            self._note(str(error))

    def _file(self, opcodes: OpcodeSet, nulls: Sequence[Ids]) -> tuple[Path, dict[str, str]]:
        assert self._folder is not None
        digest = hashlib.blake2b(digest_size=16)
        for null in nulls:
            digest.update(len(null).to_bytes(4) + np.asarray(null, np.int32).tobytes())
        keys = {
            "model": self._model,
            "tokenizer": opcodes.vocabulary.fingerprint,
            "opcodes": opcodes.fingerprint,
            "nulls": f"b2:{digest.hexdigest()}",
        }
        name = hashlib.blake2b("\n".join(keys.values()).encode(), digest_size=16).hexdigest()
        return self._folder / f"{name}.nulls", keys


def _key(null: Prompted | Sequence[int]) -> Prompted:
    return null if isinstance(null, Listed) else tuple(null)
