"""The token tree of one decision: what must be evaluated so that every legal opcode can be scored. Knows no model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

STEM = -1
"""The point after the last token of the prompt (and of the forced prefix)."""


@dataclass(frozen=True, slots=True)
class Read:
    """What to read off the row of one point: the log-probabilities of `ids`.

    `slots[i]` says where the sum with `ids[i]` goes: a point (>= 0) or, as `~k`, the k-th leaf.
    """

    point: int
    ids: NDArray[np.int32]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class ScoreTree:
    """Tokens to evaluate behind a prompt, and what to read where.

    Attributes:
        prefix: forced ids that every legal opcode begins with; they stand before the first branch.
        tokens, parents: the evaluated ids, parents first; parent STEM is the end of the prefix.
        reads: one each point that has a choice or a scored token, in topological order.
        leaves: opcode index of each leaf slot.
        tips: points that no other point continues.
        longest: ids of the longest legal opcode, prefix included.
    """

    prefix: tuple[int, ...]
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    reads: tuple[Read, ...]
    leaves: tuple[int, ...]
    tips: tuple[int, ...]
    longest: int

    @cached_property
    def depths(self) -> list[int]:
        """Depth of each point behind the prefix; the first evaluated id has 0."""
        out: list[int] = []
        for parent in self.parents:
            out.append(0 if parent == STEM else out[parent] + 1)
        return out

    @cached_property
    def _wanted(self) -> frozenset[int]:
        return frozenset(read.point for read in self.reads)

    def wants(self, point: int) -> bool:
        """Whether the row of this point is read."""
        return point in self._wanted

    def paths(self) -> list[list[int]]:
        """Return, for each tip, its points from the stem on."""
        return [self.path(tip) for tip in self.tips]

    def path(self, point: int) -> list[int]:
        """Return the points from the stem to `point`, that one included."""
        out = []
        while point != STEM:
            out.append(point)
            point = self.parents[point]
        return out[::-1]

    def ids_to(self, point: int) -> tuple[int, ...]:
        """Return the ids of an opcode from its first one to `point`, that one included."""
        return (*self.prefix, *(self.tokens[p] for p in self.path(point)))

    @cached_property
    def at(self) -> dict[tuple[int, ...], int]:
        """The points that are read, by `ids_to` them."""
        return {self.ids_to(read.point): read.point for read in self.reads}

    @cached_property
    def ids_at(self) -> dict[int, NDArray[np.int32]]:
        """What is read at each point: the ids, in increasing order."""
        return {read.point: read.ids for read in self.reads}

    def out_of(self, whole: ScoreTree, values: dict[int, NDArray[np.float64]]) -> dict[int, NDArray[np.float64]]:
        """Return what this tree reads, out of what a tree of more legal opcodes has read: it is all there.

        Args:
            values: for each read point of the larger tree, float64 of the shape of its `ids`.
        """
        return {
            read.point: values[at][np.searchsorted(whole.ids_at[at], read.ids)]
            for read in self.reads
            for at in [whole.at[self.ids_to(read.point)]]
        }

    def sums(self, values: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Add up the log-probabilities that were read along each path.

        Args:
            values: for each read point, float64 of the shape of its `ids`.
        Returns:
            float64, shape (number of leaves,): the sum from the first branch on.
        """
        at_point = np.zeros(len(self.tokens) + 1)
        at_leaf = np.empty(len(self.leaves))
        for read in self.reads:
            base = at_point[read.point] if read.point != STEM else 0.0
            for slot, value in zip(read.slots, values[read.point].tolist(), strict=True):
                if slot >= 0:
                    at_point[slot] = base + value
                else:
                    at_leaf[~slot] = base + value
        return at_leaf
