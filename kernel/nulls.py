"""What null prompts said of opcodes, so that one that comes again costs nothing. Knows no model and no rule.

A null prompt that was scored over a whole set answers for every part of it: what a smaller tree reads stands in the
larger one. So a legal set that changes from step to step needs no null prompt twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernel.compile import OpcodeSet
from kernel.score import Values
from kernel.subset import Subset
from kernel.tree import ScoreTree

Floats = NDArray[np.float64]
Ids = tuple[int, ...]

NULLS_KEPT = 1024

K = TypeVar("K")
V = TypeVar("V")


class _Whole(NamedTuple):
    opcodes: OpcodeSet  # kept, so that its id is not given to another one
    tree: ScoreTree
    values: Values


class Nulls:
    """Log-probabilities behind null prompts by opcode set, legal set and prompt; keeps the last NULLS_KEPT."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, bytes, Ids], tuple[OpcodeSet, Floats]] = OrderedDict()
        self._whole: OrderedDict[tuple[int, Ids], _Whole] = OrderedDict()

    def recall(
        self, opcodes: OpcodeSet, subset: Subset, null: Sequence[int], tree: ScoreTree | None = None
    ) -> Floats | None:
        """Return what `remember` was given for this legal set, or can be read off what it was given for all opcodes.

        Args:
            tree: of the legal set, where it is scored whole.
        Returns:
            float64, shape (n_legal,), in the order in which it was remembered, or in that of the tree's leaves.
        """
        key = id(opcodes), subset.key, tuple(null)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found[1]
        whole = self._whole.get((key[0], key[2]))
        if whole is None or tree is None:
            return None
        sums = tree.sums(_of_part(tree, whole))
        _keep(self._known, key, (opcodes, sums))
        return sums

    def remember(
        self,
        opcodes: OpcodeSet,
        subset: Subset,
        null: Sequence[int],
        sums: Floats,
        tree: ScoreTree | None = None,
        values: Values | None = None,
    ) -> None:
        """Keep the log-probability of each legal opcode.

        Args:
            tree, values: what was read where, if the set was scored whole: kept where every opcode is legal.
        """
        key = id(opcodes), subset.key, tuple(null)
        _keep(self._known, key, (opcodes, sums))
        if tree is not None and values is not None and len(subset) == len(opcodes):
            _keep(self._whole, (key[0], key[2]), _Whole(opcodes, tree, values))


def _of_part(part: ScoreTree, whole: _Whole) -> Values:
    """Return the values that the smaller tree reads: each of its points stands in the larger tree as well."""
    return {
        read.point: whole.values[at][np.searchsorted(whole.tree.ids_at[at], read.ids)]
        for read in part.reads
        for at in [whole.tree.at[part.ids_to(read.point)]]
    }


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > NULLS_KEPT:
        kept.popitem(last=False)
