"""The most probable opcode of a chain of stages, best first, with a proof. Knows no rule but `exact`.

The product of the arguments is never laid out: a log-probability only falls along a path, so the first finished opcode
that no open path can beat is the best of all. Open arguments have no best text to be proven; they are written instead.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.errors import ContextError, UsageError
from kernel.memory.memory import MAIN, Growth, Memory
from kernel.memory.rows import RowReader
from kernel.write.stages import Place, Stages

WIDTH = 16
"""Open paths evaluated in one pass."""
PASSES = 512
"""Passes after which a search gives up: the model then finds thousands of opcodes nearly as good as each other."""


@dataclass(frozen=True)
class Best:
    """What a search knows when it stops.

    Attributes:
        ids: of the winner, closing mark included; ties go to the path that was open first.
        log_probability: of its scored ids.
        open_log_probability: upper bound of every opcode but the winner.
        evaluated: opcodes that were evaluated to their end.
    """

    ids: tuple[int, ...]
    log_probability: float
    open_log_probability: float
    evaluated: int


@dataclass(order=True)
class _Path:
    """Ids behind the prompt. `held` of them are on `sequence`; `done` is a whole opcode, evaluated."""

    key: tuple[float, int]
    ids: tuple[int, ...] = field(compare=False)
    place: Place = field(compare=False)
    held: int = field(compare=False)
    node: _Node = field(compare=False)
    done: bool = field(compare=False, default=False)


@dataclass
class _Node:
    """A path in memory, shared by the paths that continue it; `sequence` is None when it was given away."""

    ids: tuple[int, ...]
    sequence: int | None
    children: int = 0


class StagedSearch:
    """One search; use it once.

    Args:
        closer: text at the end of every opcode that tells nothing about which it is; it is not scored.
    Raises:
        UsageError: an opcode has an open argument.
    """

    def __init__(self, memory: Memory, rows: RowReader, stages: Stages, closer: str = "") -> None:
        if stages.grammars:
            raise UsageError("an opcode with an open argument has no whole-opcode score; let it be written")
        self.memory = memory
        self.rows = rows
        self.stages = stages
        self.closer = len(closer.encode())
        self._order = itertools.count()
        self._heap: list[_Path] = []
        self._free = list(range(1, memory.backend.n_seq))
        self._nodes: list[_Node] = []
        self._finished = 0

    def run(self, prompt: list[int]) -> Best:
        """Search behind a prompt.

        Raises:
            ContextError: the prompt or too many open paths do not fit.
        """
        ids, place = self._forced((), self.stages.start)
        if self.stages.is_end(place):
            return Best(ids, 0.0, float("-inf"), 1)
        self.base = [*prompt, *ids]
        self.head = ids
        self.memory.check([self.base], 1)
        root = _Node((), MAIN)

        def first(_: int, __: int, row: NDArray[np.float32]) -> None:
            self._branch(root, (), place, 0.0, row)

        self.memory.open(self.base, first)
        try:
            for _ in range(PASSES):
                if self._heap[0].done:
                    break
                self._pass()
            else:
                raise ContextError(f"no opcode stands out after {PASSES} passes; let it be written greedily")
        finally:
            for node in self._nodes:
                if node.sequence is not None:
                    self.memory.drop(node.sequence)
        winner = heapq.heappop(self._heap)
        rest = -self._heap[0].key[0] if self._heap else float("-inf")
        return Best((*self.head, *winner.ids), -winner.key[0], rest, self._finished)

    def _forced(self, ids: tuple[int, ...], place: Place) -> tuple[tuple[int, ...], Place]:
        """Follow what has no alternative."""
        out = list(ids)
        while not self.stages.is_end(place):
            legal = self.stages.legal(place)
            if len(legal) != 1:
                break
            out.append(int(legal[0]))
            place = self.stages.advance(place, out[-1])
        return tuple(out), place

    def _branch(self, node: _Node, ids: tuple[int, ...], place: Place, value: float, row: NDArray[np.float32]) -> None:
        """Open a path for each legal id after a node."""
        legal = self.stages.legal(place)
        for token, more in zip(legal.tolist(), self.rows.log_probabilities(row, legal).tolist(), strict=True):
            longer, after = self._forced((*ids, token), self.stages.advance(place, token))
            path = _Path((-(value + more), next(self._order)), longer, after, len(ids), node)
            # only the first id behind the node has been scored; nothing may be left to score behind it
            path.done = self.stages.is_end(after) and self._scored(path) <= len(ids) + 1
            self._finished += path.done
            heapq.heappush(self._heap, path)
            node.children += not path.done

    def _scored(self, path: _Path) -> int:
        """Return how many ids of a finished path hold a byte before the closing mark."""
        left, count = self.closer, len(path.ids)
        pieces = self.stages.vocabulary.pieces
        while count > 1 and left >= len(pieces[path.ids[count - 1]]):
            count -= 1
            left -= len(pieces[path.ids[count]])
        return count

    def _pass(self) -> None:
        """Evaluate the most probable open paths together."""
        backend = self.memory.backend
        chosen: list[_Path] = []
        growths: list[Growth] = []
        aside: list[_Path] = []
        used = 0
        while self._heap and len(chosen) < WIDTH:
            path = heapq.heappop(self._heap)
            if path.done:
                aside.append(path)
                continue
            target = self._take({id(p.node) for p in chosen} | {id(path.node)})
            end = self._scored(path) - 1 if self.stages.is_end(path.place) else len(path.ids)
            begin = path.held if path.node.sequence is not None else 0
            ids = path.ids[begin:end]
            cells = len(self.base) + sum(len(n.ids) for n in self._nodes if n.sequence is not None)
            used += len(ids)
            if target is None or (chosen and (used > backend.n_batch or used + cells > backend.n_ctx)):
                heapq.heappush(self._heap, path)
                if target is not None:
                    self._free.append(target)
                break
            source = MAIN if path.node.sequence is None else path.node.sequence
            growths.append(Growth(source, len(self.base) + begin, target, ids, path.held - begin))
            chosen.append(path)
        for path in aside:
            heapq.heappush(self._heap, path)
        if not chosen:
            raise ContextError(f"n_seq={backend.n_seq} and n_ctx={backend.n_ctx} are too small for this search")
        values = [-path.key[0] for path in chosen]
        last: list[NDArray[np.float32] | None] = [None] * len(chosen)

        def read(number: int, offset: int, row: NDArray[np.float32]) -> None:
            path, growth = chosen[number], growths[number]
            position = self._position(path, growth, offset)
            scored = self._scored(path) if self.stages.is_end(path.place) else len(path.ids)
            if position < scored:
                token = np.asarray(path.ids[position : position + 1], np.int32)
                values[number] += float(self.rows.log_probabilities(row, token)[0])
            else:
                last[number] = row.copy()

        self.memory.expand(growths, read)
        for path, growth, value, row in zip(chosen, growths, values, last, strict=True):
            if row is None:  # evaluated to its end
                self.memory.drop(growth.target)
                self._free.append(growth.target)
                path.key, path.done = (-value, path.key[1]), True
                self._finished += 1
                heapq.heappush(self._heap, path)
            else:
                node = _Node(path.ids, growth.target)
                self._nodes.append(node)
                self._branch(node, path.ids, path.place, value, row)
            path.node.children -= 1
            if path.node.children == 0:
                self._give_back(path.node)

    @staticmethod
    def _position(path: _Path, growth: Growth, offset: int) -> int:
        """Return the place in the path of the id that the row after an offset speaks of."""
        begin = path.held - growth.first
        return begin + offset + 1

    def _give_back(self, node: _Node) -> None:
        if node.sequence not in (None, MAIN):
            self.memory.drop(node.sequence)
            self._free.append(node.sequence)
            node.sequence = None

    def _take(self, needed: set[int]) -> int | None:
        """Return a free sequence, if need be that of a node that is not needed now."""
        if not self._free:
            for node in self._nodes:
                if node.sequence is not None and id(node) not in needed:
                    self._give_back(node)
                    break
        return self._free.pop() if self._free else None
