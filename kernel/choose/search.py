"""The most probable opcode of a set too large to score whole: best first, with a proof. Knows no rule but `exact`.

A log-probability only falls along a path, so what was summed up to a node bounds every opcode below it. When the best
finished opcode is not below any bound that is still open, it is the best of all: that is the proof, and it holds
whatever the number of opcodes.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.choose.greedy import longest_legal
from kernel.errors import ContextError
from kernel.memory.memory import MAIN, Growth, Memory
from kernel.memory.rows import RowReader, Watch
from kernel.trie.opcodes import OpcodeSet
from kernel.trie.subset import Subset

WIDTH = 16
"""Open edges evaluated in one pass. A pass costs as much as some eight tokens, so a few wasted ones are cheap."""


@dataclass(frozen=True)
class Found:
    """What a search knows when it stops.

    Attributes:
        best: opcode index of the winner; ties go to the first in the order of ids.
        known: log-probability of each opcode that was evaluated to its end.
        open_share: how much all that was not evaluated can have at most, as a multiple of what the winner has.
        runner_up: upper bound of the score of every other opcode.
        mass: probability of the legal ids at the first branch.
    """

    best: int
    known: dict[int, float]
    open_share: float
    runner_up: float
    mass: float


@dataclass(order=True)
class _Open:
    """An edge whose first id has been scored; `value` is the sum so far.

    `key` sorts by what is at most below, then in the order of ids. `leaf` is the one legal opcode below, or -1 for
    several: where illegal ones part from it is nothing to choose, and nothing to score behind its body.
    """

    key: tuple[float, int]
    node: int = field(compare=False)
    edge: int = field(compare=False)
    leaf: int = field(compare=False)
    value: float = field(compare=False)
    done: bool = field(compare=False, default=False)


@dataclass
class _Place:
    """Where the memory holds the path to a node: a sequence, or none when it was given away."""

    path: tuple[int, ...]  # ids behind the forced prefix
    sequence: int | None
    children: int


class BestFirst:
    """One search. Use it once.

    Args:
        bonus: float64, shape (n_leaves,), or None: added to an opcode's log-probability (minus the null's, say).
        watch: sees the rows at which paths part.
    """

    def __init__(
        self,
        memory: Memory,
        rows: RowReader,
        opcodes: OpcodeSet,
        subset: Subset,
        bonus: NDArray[np.float64] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.memory = memory
        self.rows = rows
        self.opcodes = opcodes
        self.trie = opcodes.trie
        self.subset = subset
        self.watch = watch
        self._ranked = None if bonus is None else bonus[self.trie.order]
        self._heap: list[_Open] = []
        self._known: dict[int, float] = {}
        self._places: dict[int, _Place] = {}
        self._free = list(range(1, memory.backend.n_seq))

    def run(self, stem: list[int]) -> Found:
        """Search behind a prompt of more than one legal opcode."""
        prefix, root = self.subset.forced()
        self._depth = depth = len(prefix)
        self._base = [*stem, *prefix]
        self.memory.check([self._base], longest_legal(self.subset) - depth)
        self._places[root] = _Place((), MAIN, 0)
        self._depths = {root: depth}
        self.mass = 0.0

        def first(_: int, __: int, row: NDArray[np.float32]) -> None:
            edges = self.subset.legal_edges(root)
            values = self.rows.log_probabilities(row, self.trie.edge_ids[edges], tuple(prefix), self.watch)
            self.mass = float(np.exp(values).sum())
            self._push(root, edges, values)

        self.memory.open(self._base, first)
        try:
            while not self._heap[0].done:
                self._pass()
        finally:
            for place in self._places.values():
                if place.sequence not in (None, MAIN):
                    self.memory.drop(place.sequence)
        winner = heapq.heappop(self._heap)
        # what is below an open edge has at most the edge's probability together, times its largest bonus
        rest = sum(math.exp(winner.key[0] - item.key[0]) for item in self._heap if not item.done)
        return Found(
            winner.leaf,
            self._known,
            rest,
            -self._heap[0].key[0] if self._heap else float("-inf"),
            self.mass,
        )

    def _key(self, edge: int, leaf: int, value: float) -> tuple[float, int]:
        low, high = self.trie.bounds(edge)
        if leaf >= 0:
            low = int(self.trie.rank_of[leaf])
            high = low + 1
        return -(value + (0.0 if self._ranked is None else float(self._ranked[low:high].max()))), low

    def _push(self, node: int, edges: NDArray[np.intp], values: NDArray[np.float64]) -> None:
        """Take the edges of a node whose first ids are scored; an opcode without another scored id is finished."""
        place, depth = self._places[node], self._depths[node]
        for edge, value in zip(edges.tolist(), values.tolist(), strict=True):
            leaf = self.subset.only_leaf(edge) if self.subset.count(edge) == 1 else -1
            if leaf >= 0 and int(self.opcodes.scored[leaf]) <= depth + 1:
                self._finish(node, edge, leaf, value)
            else:
                heapq.heappush(self._heap, _Open(self._key(edge, leaf, value), node, edge, leaf, value))
                place.children += 1
        if not place.children:
            self._give_back(place)

    def _pass(self) -> None:
        """Evaluate the most promising open edges together; what is behind a finished opcode cannot win."""
        backend = self.memory.backend
        batch: list[tuple[_Open, list[int], int, int]] = []  # edge, its ids, depth, child node
        growths: list[Growth] = []
        used = 0
        while self._heap and not self._heap[0].done and len(batch) < WIDTH:
            item = self._heap[0]
            depth = self._depths[item.node]
            if item.leaf < 0:
                child = int(self.trie.edge_child[item.edge])
                evaluate = tail = self.trie.tail(item.edge).tolist()
            else:
                child = -1
                tail = self.trie.sequence(item.leaf)[depth : int(self.opcodes.scored[item.leaf])].tolist()
                evaluate = tail[:-1]
            place = self._places[item.node]
            needed = {open_.node for open_, *_ in batch} | {item.node}
            if not self._free and not self._make_room(needed) and not batch:
                self._give_back(place)  # the only one there is: what it holds is evaluated again
            if not self._free:
                break
            target = self._free.pop()
            while not batch and self._held() + len(place.path) + len(evaluate) > backend.n_ctx:
                if not self._make_room(needed):
                    break
            if place.sequence is not None:
                source, length, ids = place.sequence, len(self._base) + len(place.path), evaluate
            else:
                source, length, ids = MAIN, len(self._base), [*place.path, *evaluate]
            used += len(ids)
            if batch and (used > backend.n_batch or used + self._held() > backend.n_ctx):
                self._free.append(target)
                break
            heapq.heappop(self._heap)
            growths.append(Growth(source, length, target, tuple(ids), len(ids) - len(evaluate)))
            batch.append((item, tail, depth, child))
        if not growths:
            raise ContextError(f"n_seq={backend.n_seq} is too small to search this set; 2 or more")
        self._evaluate(batch, growths)

    def _evaluate(self, batch: list[tuple[_Open, list[int], int, int]], growths: list[Growth]) -> None:
        sums = [item.value for item, *_ in batch]
        branches: list[tuple[NDArray[np.intp], NDArray[np.float64]] | None] = [None] * len(batch)
        prefix = self._base[-self._depth :] if self._depth else []

        def read(number: int, offset: int, row: NDArray[np.float32]) -> None:
            item, tail, _, child = batch[number]
            position = offset - growths[number].first + 1
            if position < len(tail):
                sums[number] += float(self.rows.log_probabilities(row, np.asarray(tail[position : position + 1]))[0])
            else:
                edges = self.subset.legal_edges(child)
                path = (*prefix, *self._places[item.node].path, *tail)
                values = self.rows.log_probabilities(row, self.trie.edge_ids[edges], path, self.watch)
                branches[number] = (edges, values)

        self.memory.expand(growths, read)
        for number, (item, tail, depth, child) in enumerate(batch):
            target = growths[number].target
            branch = branches[number]
            if branch is None:
                self.memory.drop(target)
                self._free.append(target)
                self._finish(item.node, item.edge, item.leaf, sums[number])
            else:
                self._places[child] = _Place((*self._places[item.node].path, *tail), target, 0)
                self._depths[child] = depth + len(tail)
                self._push(child, branch[0], branch[1] + sums[number])
            self._leave(item.node)

    def _finish(self, node: int, edge: int, leaf: int, value: float) -> None:
        self._known[leaf] = value
        heapq.heappush(self._heap, _Open(self._key(edge, leaf, value), node, edge, leaf, value, True))

    def _leave(self, node: int) -> None:
        """Give a node's sequence back when none of its edges is open any more."""
        place = self._places[node]
        place.children -= 1
        if place.children == 0:
            self._give_back(place)

    def _give_back(self, place: _Place) -> None:
        if place.sequence not in (None, MAIN):
            self.memory.drop(place.sequence)
            self._free.append(place.sequence)
            place.sequence = None

    def _make_room(self, needed: set[int]) -> bool:
        """Give back the sequence of the place longest in memory and not needed; False when there is none."""
        for node, place in self._places.items():
            if place.sequence not in (None, MAIN) and node not in needed:
                self._give_back(place)
                return True
        return False

    def _held(self) -> int:
        """Return an upper bound of the cells in use."""
        return len(self._base) + sum(len(p.path) for p in self._places.values() if p.sequence not in (None, MAIN))
