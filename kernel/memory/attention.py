"""Prompts and trees on a memory where a token stands on several sequences (attention). Knows no opcode, no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.memory.passes import Batch, ReadRow, Stem, common_prefix
from kernel.memory.tree import STEM, ScoreTree

if TYPE_CHECKING:
    from kernel.memory.memory import Memory


class Shared:
    """One decision: everything in one pass, as far as sequences, batch and memory suffice."""

    def __init__(self, memory: Memory, tree: ScoreTree, read: ReadRow) -> None:
        self.memory = memory
        self.backend = memory.backend
        self.tree = tree
        self.read = read

    def run(self, stems: list[Stem], keep: int) -> None:
        """Evaluate all stems and trees together if the batch holds them, else one after the other, or some at a time.

        The first `keep` stems stay in memory for the next decision, if it has room for all of them.
        """
        memory, main, grown = self.memory, stems[0], len(self.tree.tokens)
        others = [len(s.ids) - max(common_prefix(s.ids, k.ids) for k in stems[:keep]) for s in stems[keep:]]
        if sum(len(stem.ids) for stem in stems[:keep]) + max(others, default=0) + grown > self.backend.n_ctx:
            keep = 1
        memory.release(keep)
        main.cached = memory.rewind(main.ids)
        for stem in stems[1:]:
            self._connect(stem, stems[:keep] if stem.number >= keep else [main])
        held = main.cached + sum(stem.cached for stem in stems[1:keep])
        new = sum(stem.new for stem in stems)
        together = new + len(stems) * grown <= min(self.backend.n_batch, self.backend.n_ctx - held)
        for group in [stems] if together else self._groups(stems, keep):
            self._run_group(group, stems, keep)
        memory.held = main.ids
        memory.kept = [stem.ids for stem in stems[1:keep]]

    def _groups(self, stems: list[Stem], keep: int) -> list[list[Stem]]:
        """Return what goes into one pass each: the kept stems alone, of the others as many as fit."""
        groups = [[stem] for stem in stems[:keep]]
        kept = sum(len(stem.ids) for stem in stems[:keep])
        room = min(self.backend.n_batch, self.backend.n_ctx - kept)
        strands = (self.backend.n_seq - len(stems)) // max(1, len(self.tree.paths()))
        used = room
        for stem in stems[keep:]:
            needed = stem.new + len(self.tree.tokens)
            if used + needed > room or len(groups[-1]) >= strands:
                groups.append([])
                used = 0
            groups[-1].append(stem)
            used += needed
        return groups

    def _connect(self, stem: Stem, sources: list[Stem]) -> None:
        """Find out what a stem need not evaluate: what its sequence holds from before, what another stem has."""
        shared, stem.source = max(
            ((common_prefix(source.ids, stem.ids), source) for source in sources), key=lambda found: found[0]
        )
        stem.shared = min(shared, len(stem.ids) - 1)  # the row after the last id is read
        stem.cached = min(stem.source.cached, stem.shared)
        kept = self.memory.kept[stem.number - 1] if stem.number <= len(self.memory.kept) else []
        mine = min(common_prefix(kept, stem.ids), len(stem.ids) - 1)
        # Sequences on which a token stands together must hold equally much before it: so all of its own, or none.
        if mine >= stem.shared and mine > stem.cached and self.backend.remove(stem.number, mine):
            stem.cached, stem.shared, stem.own = mine, mine, True
        elif kept:
            self.memory.drop(stem.number)

    def _run_group(self, group: list[Stem], stems: list[Stem], keep: int) -> None:
        """Evaluate some stems and their trees, in one pass if the sequences suffice; drop those that are not kept."""
        for stem in group:
            if stem.source is not None:
                if stem.source not in group and stem.cached < stem.shared:  # the source is in memory by now
                    self.memory.drop(stem.number)
                    stem.cached, stem.own = stem.shared, False
                if stem.cached and not stem.own:
                    self.backend.copy(stem.source.number, stem.number, stem.cached)
        kept = sum(len(stem.ids) for stem in stems[:keep])
        cells = self.backend.n_ctx - kept - sum(s.new for s in group if s.number >= keep)
        for stem in group:
            if len(group) == 1:
                room = max(1, self.backend.n_batch - len(self.tree.tokens))
                stem.cached = self.memory.feed(stem.number, stem.ids, stem.cached, len(stem.ids) - room)
                stem.shared = stem.cached
        strands = [(stem, path) for stem in group for path in self.tree.paths() or [[]]]
        while strands:
            strands = self._pass(group, strands, cells, range(len(stems), self.backend.n_seq))
        for stem in group:
            if stem.number >= keep:
                self.memory.drop(stem.number)

    def _pass(
        self,
        group: list[Stem],
        strands: list[tuple[Stem, list[int]]],
        cells: int,
        free: range,
    ) -> list[tuple[Stem, list[int]]]:
        """Put what is new of the stems and as many strands as fit into one pass; return the strands left over."""
        room = min(cells, self.backend.n_batch - sum(stem.new for stem in group))
        carriers = {stem.number: [stem.number] for stem in group}
        placed: dict[tuple[int, int], list[int]] = {}  # (stem, point) -> its sequences, in order of evaluation
        taken = 0
        for stem, path in strands:
            new = [p for p in path if (stem.number, p) not in placed]
            if path and ((taken and len(placed) + len(new) > room) or taken == len(free)):
                break
            if path:
                sequence = free[taken]
                carriers[stem.number].append(sequence)
                if stem.cached:
                    self.backend.copy(stem.number, sequence, stem.cached)
                for point in path:
                    placed.setdefault((stem.number, point), []).append(sequence)
            taken += 1
        batch = Batch()
        for stem in group:
            self._add_stem(batch, stem, group, carriers)
        for (number, point), sequences in placed.items():
            base = len(group[number - group[0].number].ids)
            index = batch.add(self.tree.tokens[point], base + self.tree.depths[point], sequences)
            if self.tree.wants(point):
                batch.outputs.append((index, number, point))
        self.memory.decode(batch, self.read)
        for stem in group:
            stem.cached = stem.shared = len(stem.ids)
        for sequences in carriers.values():
            for sequence in sequences[1:]:
                self.memory.drop(sequence)
        return strands[taken:]

    def _add_stem(self, batch: Batch, stem: Stem, group: list[Stem], carriers: dict[int, list[int]]) -> None:
        """Add a stem's new tokens; what others share with it stands on their sequences as well."""

        def carrying(one: Stem, position: int) -> list[int]:
            found = list(carriers[one.number])
            for other in group:
                if other.source is one and other.cached <= position < other.shared:
                    found += carrying(other, position)
            return found

        for position in range(max(stem.cached, stem.shared), len(stem.ids)):
            index = batch.add(stem.ids[position], position, carrying(stem, position))
            if position == len(stem.ids) - 1 and self.tree.wants(STEM):
                batch.outputs.append((index, stem.number, STEM))
