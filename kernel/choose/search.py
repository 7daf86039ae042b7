"""Finds the most probable opcode of a set too large to score whole: best first, with a proof.

A log-probability only falls along a path, so what was summed up to a node bounds every opcode below it. When the best
finished opcode is not below any bound that is still open, it is the best of all: that is the proof, and it holds
whatever the number of opcodes. What a pass can hold at most is the business of `places`.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.choose.greedy import longest_legal
from kernel.choose.places import Places
from kernel.choose.question import Question
from kernel.choose.rule import Floats
from kernel.memory.listed import joined
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import Ids
from kernel.memory.rows import RowReader
from kernel.memory.sets import open_prompt

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


@dataclass(frozen=True, slots=True)
class _Step:
    """One edge in a pass: its ids from the first, scored one on, and the node behind it (-1 behind an opcode)."""

    open: _Open
    tail: Ids
    child: int


class BestFirst:
    """One search. Use it once.

    Args:
        bonus: float64, shape (n_opcodes,), or None: added to an opcode's log-probability (minus the null's, say).
    """

    def __init__(self, memory: Memory, rows: RowReader, question: Question, bonus: Floats | None = None) -> None:
        self.memory, self.rows = memory, rows
        self.opcodes, self.legal, self.watch = question.opcodes, question.legal, question.watch
        self.trie = question.opcodes.trie
        prefix, self._root = self.legal.forced()
        self._prefix: Ids = tuple(prefix)
        self._base = joined(question.prompt.main, prefix)
        self._ranked = None if bonus is None else bonus[self.trie.order]
        self._heap: list[_Open] = []
        self._known: dict[int, float] = {}
        self._places = Places(memory, self._base, self._root)
        self.mass = 0.0

    def run(self) -> Found:
        """Search among more than one legal opcode.

        Raises:
            ContextError, LogitsError, BackendError.
        """
        self.memory.check([self._base], longest_legal(self.legal) - len(self._prefix))

        def first(_: int, __: int, row: NDArray[np.float32]) -> None:
            edges = self.legal.legal_edges(self._root)
            values = self.rows.log_probabilities(row, self.trie.edge_ids[edges], self._prefix, self.watch)
            self.mass = float(np.exp(values).sum())
            self._push(self._root, edges, values)

        open_prompt(self.memory, self._base, first)
        self._places.open()
        try:
            while not self._heap[0].done:
                self._pass()
        finally:
            self._places.close()
        winner = heapq.heappop(self._heap)
        # what is below an open edge has at most the edge's probability together, times its largest bonus
        rest = sum(math.exp(winner.key[0] - item.key[0]) for item in self._heap if not item.done)
        second = -self._heap[0].key[0] if self._heap else float("-inf")
        return Found(winner.leaf, self._known, rest, second, self.mass)

    def _depth(self, node: int) -> int:
        """Return how many ids lead to a node."""
        return len(self._prefix) + len(self._places.path(node))

    def _push(self, node: int, edges: NDArray[np.intp], values: Floats) -> None:
        """Take the edges of a node whose first ids are scored; an opcode without another scored id is finished."""
        depth, opened = self._depth(node), 0
        for edge, value in zip(edges.tolist(), values.tolist(), strict=True):
            leaf = self.legal.only_leaf(edge) if self.legal.count(edge) == 1 else -1
            done = leaf >= 0 and int(self.opcodes.scored[leaf]) <= depth + 1
            self._put(_Open(self._key(edge, leaf, value), node, edge, leaf, value, done))
            opened += not done
        self._places.opened(node, opened)

    def _put(self, item: _Open) -> None:
        if item.done:
            self._known[item.leaf] = item.value
        heapq.heappush(self._heap, item)

    def _key(self, edge: int, leaf: int, value: float) -> tuple[float, int]:
        """Return what sorts an edge: the negative bound of what is below it, then the place of its first opcode."""
        low, high = self.trie.bounds(edge)
        if leaf >= 0:
            low = int(self.trie.rank_of[leaf])
            high = low + 1
        return -(value + (0.0 if self._ranked is None else float(self._ranked[low:high].max()))), low

    def _pass(self) -> None:
        """Evaluate the most promising open edges together; what is behind a finished opcode cannot win."""
        steps: list[_Step] = []
        batch: list[tuple[int, Growth]] = []
        while self._heap and not self._heap[0].done and len(batch) < WIDTH:
            step = self._step(self._heap[0])
            evaluated = step.tail if step.child >= 0 else step.tail[:-1]  # an opcode's last id is only read
            growth = self._places.grow(step.open.node, evaluated, batch)
            if growth is None:
                break
            heapq.heappop(self._heap)
            steps.append(step)
            batch.append((step.open.node, growth))
        self._evaluate(steps, [growth for _, growth in batch])

    def _step(self, item: _Open) -> _Step:
        if item.leaf < 0:
            return _Step(item, tuple(self.trie.tail(item.edge).tolist()), int(self.trie.edge_child[item.edge]))
        scored = int(self.opcodes.scored[item.leaf])
        return _Step(item, tuple(self.trie.sequence(item.leaf)[self._depth(item.node) : scored].tolist()), -1)

    def _evaluate(self, steps: list[_Step], growths: list[Growth]) -> None:
        """Run the pass; push the edges behind each step, or finish its opcode."""
        sums = [step.open.value for step in steps]
        branches: list[tuple[NDArray[np.intp], Floats] | None] = [None] * len(steps)

        def read(number: int, offset: int, row: NDArray[np.float32]) -> None:
            step = steps[number]
            position = offset - growths[number].first + 1
            if position < len(step.tail):
                sums[number] += float(
                    self.rows.log_probabilities(row, np.asarray(step.tail[position : position + 1]))[0]
                )
            else:
                edges = self.legal.legal_edges(step.child)
                path = (*self._prefix, *self._places.path(step.open.node), *step.tail)
                values = self.rows.log_probabilities(row, self.trie.edge_ids[edges], path, self.watch)
                branches[number] = (edges, values)

        self.memory.expand(growths, read)
        for step, growth, branch, total in zip(steps, growths, branches, sums, strict=True):
            item = step.open
            if branch is None:
                self._places.free(growth.target)
                key = self._key(item.edge, item.leaf, total)
                self._put(_Open(key, item.node, item.edge, item.leaf, total, True))
            else:
                self._places.add(step.child, (*self._places.path(item.node), *step.tail), growth.target)
                self._push(step.child, branch[0], branch[1] + total)
            self._places.closed(item.node)
