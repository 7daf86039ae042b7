"""Plans the passes of a decision on attention models, where one token may stand on several sequences.

Two prompts `A B C` and `A B X`, and behind each the tree of `left`, `right` (evaluated up to its branch) and `go on`:

    sequence      0       1       2 (left ..)   3 (go on)   4 (left ..)   5 (go on)
    position 0    A       A       A             A           A             A           one token on six sequences
    position 1    B       B       B             B           B             B
    position 2    C       X       C             C           X             X           C on 0 2 3, X on 1 4 5
    position 3                    left          go          left          go          four tokens

All of it is one batch of 8 tokens. A *strand* is one path of the tree behind one prompt, on a sequence of its own.

The invariant: a token that stands on several sequences is evaluated once, on all of them, and until then all of these
sequences hold the same tokens. llama.cpp lets a token see what stands on its sequences, so sequences may share a token
only where they begin alike. It holds because a strand's sequence is copied from its prompt as far as that is cached,
and carried along token by token behind that; and because a prompt whose own sequence holds more than what it shares
with its source takes no part in its source's tokens (`Stem.own`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernel.memory.listed import flat_of
from kernel.memory.memory import Memory
from kernel.memory.passes import Batch, Copy, Drop, Plan, Room, Stem, Step, Token, Work, common_prefix, fed
from kernel.memory.tree import STEM, ScoreTree

Strand = tuple[int, list[int]]
"""The number of a stem, and the points of its tree from the first branch to a tip."""


def plan(memory: Memory, work: Work) -> Plan:
    """Settle what the memory keeps, then return the steps that evaluate the work in as few passes as possible.

    Everything goes into one pass if the batch holds it; else the kept prompts go alone and the others in groups.
    """
    stems, keep = settled(memory, work)
    steps = tuple(Passes(stems, work.tree, memory.room, keep).steps())
    return Plan(steps, stems[0].ids, tuple(stem.ids for stem in stems[1:keep]))


def settled(memory: Memory, work: Work) -> tuple[list[Stem], int]:
    """Cut the memory back to what the prompts begin with; return them as stems, and how many of them stay.

    Only this asks the memory, which may refuse to remove; what is planned afterwards needs no answer.
    """
    ids = [(*flat_of(prompt), *work.tree.prefix) for prompt in work.prompts]
    memory.give_way(*_needed(ids, work.tree))
    keep = _kept(ids, work, memory.room)
    memory.release(keep)
    stems = [Stem(0, ids[0], cached=memory.rewind(ids[0]))]
    for number in range(1, len(ids)):
        own = memory.kept[number - 1] if number <= len(memory.kept) else []
        stem = _connected(Stem(number, ids[number]), stems[:keep] if number >= keep else stems[:1])
        mine = min(common_prefix(own, stem.ids), len(stem.ids) - 1)
        if mine >= stem.shared and mine > stem.cached and memory.backend.remove(number, mine):
            stem = replace(stem, cached=mine, shared=mine, own=True)
        elif own:
            memory.drop(number)
        stems.append(stem)
    return stems, keep


def _needed(ids: Sequence[tuple[int, ...]], tree: ScoreTree) -> tuple[int, int]:
    """Return how many sequences and cells it takes to evaluate all of it in one pass."""
    own = [len(each) - common_prefix(each, ids[0]) for each in ids[1:]]
    return len(ids) * (1 + len(tree.tips)), len(ids[0]) + sum(own) + len(ids) * len(tree.tokens)


def _kept(ids: Sequence[tuple[int, ...]], work: Work, room: Room) -> int:
    """Return how many prompts stay in memory: those that should, or the first alone where that is too much."""
    others = [len(i) - max(common_prefix(i, kept) for kept in ids[: work.keep]) for i in ids[work.keep :]]
    needed = sum(map(len, ids[: work.keep])) + max(others, default=0) + len(work.tree.tokens)
    return 1 if needed > room.n_ctx else work.keep


def _connected(stem: Stem, sources: Sequence[Stem]) -> Stem:
    """Return the stem with the source that it shares most of its beginning with; its last id is always its own."""
    common = [common_prefix(source.ids, stem.ids) for source in sources]
    best = common.index(max(common))
    shared = min(common[best], len(stem.ids) - 1)
    return replace(stem, source=sources[best].number, shared=shared, cached=min(sources[best].cached, shared))


class Passes:
    """The passes of one decision; use it once.

    Args:
        keep: so many of the first stems stay on their sequences.
        base: the sequence of the first stem.
    """

    def __init__(self, stems: Sequence[Stem], tree: ScoreTree, room: Room, keep: int, base: int = 0) -> None:
        self.stems = list(stems)  # by number; replaced by what they have become when their pass is done
        self.tree, self.room, self.keep, self.base = tree, room, keep, base
        self.paths = tree.paths() or [[]]

    def steps(self) -> Iterator[Step]:
        """Yield all steps."""
        grown, n_ctx, n_batch = len(self.tree.tokens), self.room.n_ctx, self.room.n_batch
        held = sum(stem.cached for stem in self.stems[: self.keep])
        new = sum(stem.new for stem in self.stems)
        numbers = list(range(len(self.stems)))
        together = new + len(numbers) * grown <= min(n_batch, n_ctx - held)
        for group in [numbers] if together else self._groups():
            yield from self._group(group)

    def _groups(self) -> list[list[int]]:
        """Return which stems go into one pass each: the kept ones alone, of the others as many as fit."""
        groups = [[number] for number in range(self.keep)]
        kept = sum(len(stem.ids) for stem in self.stems[: self.keep])
        room = min(self.room.n_batch, self.room.n_ctx - kept)
        most = (self.room.n_seq - len(self.stems)) // len(self.paths)
        used = room
        for stem in self.stems[self.keep :]:
            needed = stem.new + len(self.tree.tokens)
            if used + needed > room or len(groups[-1]) >= most:
                groups.append([])
                used = 0
            groups[-1].append(stem.number)
            used += needed
        return groups

    def _group(self, group: list[int]) -> Iterator[Step]:
        """Yield the steps of some stems and their trees: one pass if the sequences suffice."""
        for number in group:
            stem = self.stems[number]
            if (source := stem.source) is not None:
                if source not in group and stem.cached < stem.shared:  # the source is in memory by now
                    yield Drop(self.base + number)
                    stem = self.stems[number] = replace(stem, cached=stem.shared, own=False)
                if stem.cached and not stem.own:
                    yield Copy(self.base + source, self.base + number, stem.cached)
        kept = sum(len(stem.ids) for stem in self.stems[: self.keep])
        cells = self.room.n_ctx - kept - sum(self.stems[n].new for n in group if n >= self.keep)
        if len(group) == 1:
            stem = self.stems[group[0]]
            ahead = range(stem.cached, len(stem.ids) - max(1, self.room.n_batch - len(self.tree.tokens)))
            yield from fed(self.base + stem.number, stem.ids, ahead, self.room)
            there = max(ahead.start, ahead.stop)
            self.stems[group[0]] = replace(stem, cached=there, shared=there)
        strands = [(number, path) for number in group for path in self.paths]
        while strands:
            taken = self._fitting(group, strands, cells)
            yield from self._pass(group, strands[:taken])
            strands = strands[taken:]
        for number in group:
            if number >= self.keep:
                yield Drop(self.base + number)

    def _fitting(self, group: list[int], strands: list[Strand], cells: int) -> int:
        """Return how many strands go into the next pass; at least one."""
        room = min(cells, self.room.n_batch - sum(self.stems[n].new for n in group))
        free = self.room.n_seq - len(self.stems)
        points: set[tuple[int, int]] = set()
        for taken, (number, path) in enumerate(strands):
            wider = points | {(number, point) for point in path}
            if path and ((taken and len(wider) > room) or taken == free):
                return taken
            points = wider
        return len(strands)

    def _pass(self, group: list[int], strands: list[Strand]) -> Iterator[Step]:
        """Yield one pass: what is new of the stems, and the strands on sequences of their own."""
        carriers = {number: [self.base + number] for number in group}
        placed: dict[tuple[int, int], list[int]] = {}  # (stem, point) -> its sequences, in order of evaluation
        first = self.base + len(self.stems)
        used = range(first, first + len(strands))
        for sequence, (number, path) in zip(used, strands, strict=True):
            if path:
                carriers[number].append(sequence)
                if self.stems[number].cached:
                    yield Copy(self.base + number, sequence, self.stems[number].cached)
            for point in path:
                placed.setdefault((number, point), []).append(sequence)
        tokens = [token for number in group for token in self._prompt(number, group, carriers)]
        for (number, point), sequences in placed.items():
            position = len(self.stems[number].ids) + self.tree.depths[point]
            output = (number, point) if self.tree.wants(point) else None
            tokens.append(Token(self.tree.tokens[point], position, tuple(sequences), output))
        yield Batch(tuple(tokens))
        for number in group:
            whole = len(self.stems[number].ids)
            self.stems[number] = replace(self.stems[number], cached=whole, shared=whole)
        yield from [Drop(sequence) for number in group for sequence in carriers[number][1:]]

    def _prompt(self, number: int, group: list[int], carriers: dict[int, list[int]]) -> Iterator[Token]:
        """Yield what is new of a stem; what others share with it stands on their sequences as well."""
        stem, last = self.stems[number], len(self.stems[number].ids) - 1
        for position in range(max(stem.cached, stem.shared), len(stem.ids)):
            output = (number, STEM) if position == last and self.tree.wants(STEM) else None
            sequences = tuple(self._carrying(number, position, group, carriers))
            yield Token(stem.ids[position], position, sequences, output)

    def _carrying(self, number: int, position: int, group: list[int], carriers: dict[int, list[int]]) -> list[int]:
        """Return the sequences of a stem, and of those that share its token at this position."""
        found = list(carriers[number])
        for other in group:
            stem = self.stems[other]
            if stem.source == number and stem.cached <= position < stem.shared:
                found += self._carrying(other, position, group, carriers)
        return found
