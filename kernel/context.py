"""The session as token ids, and what the runtime's memory holds of it. Knows no opcode, no rule, no text.

Sequence 0 carries the session's prompt and survives from decision to decision; every other sequence lives for one
decision. Nothing here re-tokenizes: equal ids are equal prefixes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernel.backends.base import Backend
from kernel.errors import ContextError
from kernel.tree import STEM, ScoreTree

MAIN = 0

ReadRow = Callable[[int, int, NDArray[np.float32]], None]
"""(stem, point, row): called once for each row that was asked for, before the next pass overwrites it."""


@dataclass
class Cost:
    """What a decision asked of the model."""

    passes: int = 0
    tokens: int = 0
    refused_removals: int = 0

    def __sub__(self, earlier: Cost) -> Cost:
        return Cost(
            self.passes - earlier.passes,
            self.tokens - earlier.tokens,
            self.refused_removals - earlier.refused_removals,
        )


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many leading ids are equal.

    >>> common_prefix([1, 2, 3], [1, 2, 4, 5])
    2
    """
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return count


@dataclass
class _Batch:
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    sequences: list[list[int]] = field(default_factory=list)
    outputs: list[tuple[int, int, int]] = field(default_factory=list)  # (index in the batch, stem, point)

    def add(self, token: int, position: int, sequences: list[int]) -> int:
        self.tokens.append(token)
        self.positions.append(position)
        self.sequences.append(sequences)
        return len(self.tokens) - 1


@dataclass
class _Stem:
    """One prompt on its own sequence. Ids before `cached` are in memory; ids before `shared` come with the first."""

    number: int
    ids: list[int]
    cached: int = 0
    shared: int = 0

    @property
    def new(self) -> int:
        return len(self.ids) - max(self.cached, self.shared)


@dataclass(frozen=True, slots=True)
class Growth:
    """Evaluate `ids` on `target`, which continues the first `length` positions of `source`.

    Rows are read from the id at `first` on.
    """

    source: int
    length: int
    target: int
    ids: tuple[int, ...]
    first: int = 0


class Context:
    """Evaluates prompts and the trees behind them with as few passes and tokens as the memory allows.

    Whatever raises in the middle of a pass leaves the memory empty: the next call is right, only slower.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.held: list[int] = []
        self._cost = Cost()

    @property
    def cost(self) -> Cost:
        """All that was asked of the model so far; the difference of two is the cost of what lies between."""
        return Cost(self._cost.passes, self._cost.tokens, self._cost.refused_removals)

    def reset(self) -> None:
        """Forget the session."""
        self.backend.clear()
        self.held = []

    def check(self, stems: Sequence[Sequence[int]], longest: int) -> None:
        """Raise ContextError unless each prompt and the longest legal opcode fit; nothing is evaluated."""
        main = stems[0]
        for stem in stems:
            if not stem:
                raise ContextError("a prompt is empty; a decision needs at least one token to stand on")
            own = len(stem) - common_prefix(main, stem)
            needed = len(main) + own + longest
            if needed > self.backend.n_ctx:
                raise ContextError(
                    f"{len(main)} prompt ids, {own} of a null prompt and up to {longest} of an opcode need {needed}, "
                    f"but n_ctx is {self.backend.n_ctx}; shorten the prompt or raise n_ctx"
                )
        if len(stems) >= self.backend.n_seq:
            raise ContextError(
                f"{len(stems)} prompts at once; n_seq={self.backend.n_seq} holds {self.backend.n_seq - 1}"
            )

    def run(self, stems: Sequence[Sequence[int]], tree: ScoreTree, read: ReadRow) -> None:
        """Evaluate the tree behind each stem; the first stem is the session's prompt.

        Where a token may stand on several sequences, everything goes into one pass as far as sequences, batch and
        memory suffice; else stems go one after the other and trees level by level.
        """
        full = [_Stem(n, [*stem, *tree.prefix]) for n, stem in enumerate(stems)]
        self.check([s.ids for s in full], tree.longest - len(tree.prefix))
        with self._guard():
            if self.backend.shares_tokens:
                self._run_shared(full, tree, read)
            else:
                self._run_levels(full, tree, read)

    def open(self, ids: Sequence[int], read: ReadRow) -> None:
        """Make `ids` the session's prompt and read the row after it (as point STEM)."""
        with self._guard():
            batch = _Batch()
            for position in range(self._rewind(ids), len(ids)):
                last = batch.add(ids[position], position, [MAIN])
            batch.outputs.append((last, 0, STEM))
            self._decode(batch, read)
            self.held = list(ids)

    def expand(self, growths: Sequence[Growth], read: ReadRow) -> None:
        """Continue several sequences in one pass; `read` gets (number of the growth, offset in its ids, row).

        A target is the source itself or empty.
        """
        with self._guard():
            batch = _Batch()
            for number, growth in enumerate(growths):
                if growth.target != growth.source:
                    self.backend.copy(growth.source, growth.target, growth.length)
                for offset, token in enumerate(growth.ids):
                    index = batch.add(token, growth.length + offset, [growth.target])
                    if offset >= growth.first:
                        batch.outputs.append((index, number, offset))
            self._decode(batch, read)

    def drop(self, sequence: int) -> None:
        """Free a sequence other than the main one."""
        self.backend.remove(sequence, 0)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.reset()
            raise

    def _rewind(self, ids: Sequence[int]) -> int:
        """Keep the longest common prefix of what is held and `ids` on the main sequence; return its length.

        The last id is always evaluated anew, because its row is needed.
        """
        keep = min(common_prefix(self.held, ids), len(ids) - 1)
        if keep < len(self.held) and not self.backend.remove(MAIN, keep):
            self._cost.refused_removals += 1
            self.backend.clear()
            keep = 0
        self.held = self.held[:keep]
        return keep

    def _decode(self, batch: _Batch, read: ReadRow) -> None:
        """Evaluate a batch; in several passes when it holds more than the runtime takes at once."""
        size = self.backend.n_batch
        for begin in range(0, len(batch.tokens), size):
            part = slice(begin, begin + size)
            outputs = [(i - begin, stem, point) for i, stem, point in batch.outputs if begin <= i < begin + size]
            self.backend.decode(
                batch.tokens[part], batch.positions[part], batch.sequences[part], [o[0] for o in outputs]
            )
            self._cost.passes += 1
            self._cost.tokens += len(batch.tokens[part])
            for index, stem, point in outputs:
                read(stem, point, self.backend.logits(index))

    def _feed(self, sequence: int, ids: list[int], start: int, stop: int) -> int:
        """Evaluate ids[start:stop] on one sequence in full batches, reading nothing; return `stop` or `start`."""
        while start < stop:
            end = min(start + self.backend.n_batch, stop)
            batch = _Batch()
            for position in range(start, end):
                batch.add(ids[position], position, [sequence])
            self._decode(batch, _ignore)
            start = end
        return start

    # -- attention: a token stands on several sequences ----------------------------------------------------------

    def _run_shared(self, stems: list[_Stem], tree: ScoreTree, read: ReadRow) -> None:
        main = stems[0]
        main.cached = self._rewind(main.ids)
        for stem in stems[1:]:
            stem.shared = min(common_prefix(main.ids, stem.ids), len(stem.ids) - 1)
            stem.cached = min(main.cached, stem.shared)
        new = sum(stem.new for stem in stems)
        together = new + len(stems) * len(tree.tokens) <= min(self.backend.n_batch, self.backend.n_ctx - main.cached)
        for group in [stems] if together else [[stem] for stem in stems]:
            self._run_group(group, main, len(stems), tree, read)
        self.held = main.ids

    def _run_group(self, group: list[_Stem], main: _Stem, first_free: int, tree: ScoreTree, read: ReadRow) -> None:
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
                room = max(1, self.backend.n_batch - len(tree.tokens))
                stem.cached = self._feed(stem.number, stem.ids, stem.cached, len(stem.ids) - room)
                stem.shared = stem.cached
        strands = [(stem, path) for stem in group for path in tree.paths() or [[]]]
        while strands:
            strands = self._pass(group, strands, cells, range(first_free, self.backend.n_seq), tree, read)
        for stem in group:
            if stem is not main:
                self.drop(stem.number)

    def _pass(
        self,
        group: list[_Stem],
        strands: list[tuple[_Stem, list[int]]],
        cells: int,
        free: range,
        tree: ScoreTree,
        read: ReadRow,
    ) -> list[tuple[_Stem, list[int]]]:
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
        batch = _Batch()
        for stem in group:
            self._add_stem(batch, stem, group, carriers, tree.wants(STEM))
        for (number, point), sequences in placed.items():
            base = len(group[number - group[0].number].ids)
            index = batch.add(tree.tokens[point], base + tree.depths[point], sequences)
            if tree.wants(point):
                batch.outputs.append((index, number, point))
        self._decode(batch, read)
        for stem in group:
            stem.cached = stem.shared = len(stem.ids)
        for sequences in carriers.values():
            for sequence in sequences[1:]:
                self.drop(sequence)
        return strands[taken:]

    def _add_stem(
        self, batch: _Batch, stem: _Stem, group: list[_Stem], carriers: dict[int, list[int]], wanted: bool
    ) -> None:
        """Add a stem's new tokens; what other stems share with the first one stands on their sequences as well."""
        for position in range(max(stem.cached, stem.shared), len(stem.ids)):
            sequences = carriers[stem.number]
            if stem.number == MAIN:
                for other in group[1:]:
                    if other.cached <= position < other.shared:
                        sequences = sequences + carriers[other.number]
            index = batch.add(stem.ids[position], position, sequences)
            if wanted and position == len(stem.ids) - 1:
                batch.outputs.append((index, stem.number, STEM))

    # -- recurrent and hybrid: a state can be copied whole, never rolled back or shared --------------------------

    def _run_levels(self, stems: list[_Stem], tree: ScoreTree, read: ReadRow) -> None:
        """Evaluate all stems in one pass and their trees level by level; one stem after the other in a small memory."""
        main = stems[0]
        main.cached = self._rewind(main.ids)
        for stem in stems[1:]:  # the last id of each is left, because the row after it is read
            stem.shared = min(common_prefix(main.ids, stem.ids), len(stem.ids) - 1, len(main.ids) - 1)
        others = sorted(stems[1:], key=lambda s: s.shared)
        paths = tree.paths()
        deepest = max(map(len, paths), default=0)
        own = [len(s.ids) - (s.shared if main.cached <= s.shared else 0) for s in others]
        together = len(main.ids) + sum(own) + deepest <= self.backend.n_ctx
        for group in [[*others, main]] if together else [[stem] for stem in (*others, main)]:
            for stem in group:
                if stem is not main:
                    self._fork(main, stem, deepest)
            batch = _Batch()
            for stem in group:
                for position in range(stem.cached, len(stem.ids)):
                    index = batch.add(stem.ids[position], position, [stem.number])
                if tree.wants(STEM):
                    batch.outputs.append((index, stem.number, STEM))
            self._decode(batch, read)
            held = sum(len(s.ids) - s.cached for s in group if s is not main)
            if group[-1] is main:
                main.cached = len(main.ids)
            free = range(len(stems), self.backend.n_seq)
            strands = [(stem, path) for stem in group for path in paths]
            while strands:
                strands = self._levels(strands, free, self.backend.n_ctx - main.cached - held, tree, read)
            for stem in group:
                if stem is not main:
                    self.drop(stem.number)
        self.held = main.ids

    def _fork(self, main: _Stem, stem: _Stem, deepest: int) -> None:
        """Let a stem begin with what it shares with the main one, if the main state has not gone past it."""
        if main.cached > stem.shared and main.cached + len(stem.ids) + deepest > self.backend.n_ctx:
            self.backend.clear()  # both whole do not fit, and the main one comes later
            main.cached = 0
        if main.cached <= stem.shared and stem.shared:
            main.cached = self._feed(MAIN, main.ids, main.cached, stem.shared)
            self.backend.copy(MAIN, stem.number, stem.shared)
            stem.cached = stem.shared

    def _levels(
        self, strands: list[tuple[_Stem, list[int]]], free: range, cells: int, tree: ScoreTree, read: ReadRow
    ) -> list[tuple[_Stem, list[int]]]:
        """Evaluate as many strands as sequences and cells allow, one pass a level of branching; return those left over.

        Each run of a tree is evaluated on one sequence; where it branches, the state is copied.
        """
        points: set[tuple[int, int]] = set()
        members: dict[int, tuple[_Stem, list[tuple[int, list[int]]]]] = {}
        taken = 0
        for sequence, (stem, path) in zip(free, strands, strict=False):
            more = points.union((stem.number, point) for point in path)
            if taken and len(more) > cells:
                break
            points = more
            members.setdefault(stem.number, (stem, []))[1].append((sequence, path))
            taken += 1
        frontier = [(number, stem, 0, some) for number, (stem, some) in members.items()]
        while frontier:  # (sequence that ends here, its stem, depth, strands that go on)
            batch = _Batch()
            following: list[tuple[int, _Stem, int, list[tuple[int, list[int]]]]] = []
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
                        index = batch.add(tree.tokens[path[end]], len(stem.ids) + end, [sequence])
                        if tree.wants(path[end]):
                            batch.outputs.append((index, stem.number, path[end]))
                        end += 1
                    following.append((sequence, stem, end, group))
            self._decode(batch, read)
            frontier = [f for f in following if any(len(p) > f[2] for _, p in f[3])]
        for sequence in free[:taken]:
            self.drop(sequence)
        return strands[taken:]


def _ignore(stem: int, point: int, row: NDArray[np.float32]) -> None:
    """Read nothing."""
