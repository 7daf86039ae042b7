"""Prompts and trees on a memory of states (recurrent, hybrid): copied whole, never cut back. Knows no opcode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.memory.passes import MAIN, Batch, ReadRow, Stem, common_prefix
from kernel.memory.tree import STEM, ScoreTree

if TYPE_CHECKING:
    from kernel.memory.memory import Memory


class Levels:
    """One decision: all prompts in one pass, then their trees in one pass a level of branching."""

    def __init__(self, memory: Memory, tree: ScoreTree, read: ReadRow) -> None:
        self.memory = memory
        self.backend = memory.backend
        self.tree = tree
        self.read = read

    def run(self, stems: list[Stem]) -> None:
        """Evaluate all stems in one pass and their trees level by level; one stem after the other in a small memory."""
        main = stems[0]
        main.cached = self.memory.rewind(main.ids)
        for stem in stems[1:]:  # the last id of each is left, because the row after it is read
            stem.shared = min(common_prefix(main.ids, stem.ids), len(stem.ids) - 1, len(main.ids) - 1)
        others = sorted(stems[1:], key=lambda s: s.shared)
        paths = self.tree.paths()
        deepest = max(map(len, paths), default=0)
        own = [len(s.ids) - (s.shared if main.cached <= s.shared else 0) for s in others]
        together = len(main.ids) + sum(own) + deepest <= self.backend.n_ctx
        for group in [[*others, main]] if together else [[stem] for stem in (*others, main)]:
            for stem in group:
                if stem is not main:
                    self._fork(main, stem, deepest)
            batch = Batch()
            for stem in group:
                for position in range(stem.cached, len(stem.ids)):
                    index = batch.add(stem.ids[position], position, [stem.number])
                if self.tree.wants(STEM):
                    batch.outputs.append((index, stem.number, STEM))
            self.memory.decode(batch, self.read)
            held = sum(len(s.ids) - s.cached for s in group if s is not main)
            if group[-1] is main:
                main.cached = len(main.ids)
            free = range(len(stems), self.backend.n_seq)
            strands = [(stem, path) for stem in group for path in paths]
            while strands:
                strands = self._levels(strands, free, self.backend.n_ctx - main.cached - held)
            for stem in group:
                if stem is not main:
                    self.memory.drop(stem.number)
        self.memory.held = main.ids

    def _fork(self, main: Stem, stem: Stem, deepest: int) -> None:
        """Let a stem begin with what it shares with the main one, if the main state has not gone past it."""
        if main.cached > stem.shared and main.cached + len(stem.ids) + deepest > self.backend.n_ctx:
            self.backend.clear()  # both whole do not fit, and the main one comes later
            main.cached = 0
        if main.cached <= stem.shared and stem.shared:
            main.cached = self.memory.feed(MAIN, main.ids, main.cached, stem.shared)
            self.backend.copy(MAIN, stem.number, stem.shared)
            stem.cached = stem.shared

    def _levels(self, strands: list[tuple[Stem, list[int]]], free: range, cells: int) -> list[tuple[Stem, list[int]]]:
        """Evaluate as many strands as sequences and cells allow, one pass a level of branching; return those left over.

        Each run of a tree is evaluated on one sequence; where it branches, the state is copied.
        """
        points: set[tuple[int, int]] = set()
        members: dict[int, tuple[Stem, list[tuple[int, list[int]]]]] = {}
        taken = 0
        for sequence, (stem, path) in zip(free, strands, strict=False):
            new = {(stem.number, point) for point in path} - points
            if taken and len(points) + len(new) > cells:
                break
            points |= new
            members.setdefault(stem.number, (stem, []))[1].append((sequence, path))
            taken += 1
        frontier = [(number, stem, 0, some) for number, (stem, some) in members.items()]
        while frontier:  # (sequence that ends here, its stem, depth, strands that go on)
            batch = Batch()
            following: list[tuple[int, Stem, int, list[tuple[int, list[int]]]]] = []
            for source, stem, depth, going in frontier:
                by_point: dict[int, list[tuple[int, list[int]]]] = {}
                for sequence, path in going:
                    if len(path) > depth:
                        by_point.setdefault(path[depth], []).append((sequence, path))
                for group in by_point.values():
                    sequence, path = group[0]
                    if sequence != source:
                        self.backend.copy(source, sequence, len(stem.ids) + depth)
                    end = depth
                    while end < len(path) and all(len(p) > end and p[end] == path[end] for _, p in group):
                        index = batch.add(self.tree.tokens[path[end]], len(stem.ids) + end, [sequence])
                        if self.tree.wants(path[end]):
                            batch.outputs.append((index, stem.number, path[end]))
                        end += 1
                    following.append((sequence, stem, end, group))
            self.memory.decode(batch, self.read)
            frontier = [f for f in following if any(len(p) > f[2] for _, p in f[3])]
        for sequence in free[:taken]:
            self.memory.drop(sequence)
        return strands[taken:]
