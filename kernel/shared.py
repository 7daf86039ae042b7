"""Prompts and trees on a memory where a token stands on several sequences (attention). Knows no opcode, no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.passes import MAIN, Batch, ReadRow, Stem, common_prefix
from kernel.tree import STEM, ScoreTree

if TYPE_CHECKING:
    from kernel.context import Context


class Shared:
    """One decision: everything in one pass, as far as sequences, batch and memory suffice."""

    def __init__(self, context: Context, tree: ScoreTree, read: ReadRow) -> None:
        self.context = context
        self.backend = context.backend
        self.tree = tree
        self.read = read

    def run(self, stems: list[Stem]) -> None:
        """Evaluate all stems and trees together if the batch holds them, else one stem after the other."""
        main = stems[0]
        main.cached = self.context.rewind(main.ids)
        for stem in stems[1:]:
            stem.shared = min(common_prefix(main.ids, stem.ids), len(stem.ids) - 1)
            stem.cached = min(main.cached, stem.shared)
        new = sum(stem.new for stem in stems)
        together = new + len(stems) * len(self.tree.tokens) <= min(
            self.backend.n_batch, self.backend.n_ctx - main.cached
        )
        for group in [stems] if together else [[stem] for stem in stems]:
            self._run_group(group, main, len(stems))
        self.context.held = main.ids

    def _run_group(self, group: list[Stem], main: Stem, first_free: int) -> None:
        """Evaluate some stems and their trees, in one pass if the sequences suffice; then drop all but the main one."""
        for stem in group:
            if stem is not main:
                if main not in group:  # the main stem is in memory by now
                    stem.cached = stem.shared
                if stem.cached:
                    self.backend.copy(MAIN, stem.number, stem.cached)
        cells = self.backend.n_ctx - len(main.ids) - sum(s.new for s in group if s is not main)
        for stem in group:
            if len(group) == 1:
                room = max(1, self.backend.n_batch - len(self.tree.tokens))
                stem.cached = self.context.feed(stem.number, stem.ids, stem.cached, len(stem.ids) - room)
                stem.shared = stem.cached
        strands = [(stem, path) for stem in group for path in self.tree.paths() or [[]]]
        while strands:
            strands = self._pass(group, strands, cells, range(first_free, self.backend.n_seq))
        for stem in group:
            if stem is not main:
                self.context.drop(stem.number)

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
            self._add_stem(batch, stem, group, carriers, self.tree.wants(STEM))
        for (number, point), sequences in placed.items():
            base = len(group[number - group[0].number].ids)
            index = batch.add(self.tree.tokens[point], base + self.tree.depths[point], sequences)
            if self.tree.wants(point):
                batch.outputs.append((index, number, point))
        self.context.decode(batch, self.read)
        for stem in group:
            stem.cached = stem.shared = len(stem.ids)
        for sequences in carriers.values():
            for sequence in sequences[1:]:
                self.context.drop(sequence)
        return strands[taken:]

    def _add_stem(
        self, batch: Batch, stem: Stem, group: list[Stem], carriers: dict[int, list[int]], wanted: bool
    ) -> None:
        """Add a stem's new tokens; what other stems share with the first one stands on their sequences as well."""
        for position in range(max(stem.cached, stem.shared), len(stem.ids)):
            sequences = carriers[stem.number]
            if stem.number == MAIN:
                for other in group[1:]:
                    if position < other.shared:
                        sequences = sequences + carriers[other.number]
            index = batch.add(stem.ids[position], position, sequences)
            if wanted and position == len(stem.ids) - 1:
                batch.outputs.append((index, stem.number, STEM))
