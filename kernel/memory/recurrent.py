"""Plans the same for recurrent and hybrid models, whose state cannot be cut back: only whole states are copied.

A token stands on one sequence. All prompts go into one pass, each on a sequence of its own that begins with a copy of
the state at the point where it parts from the session's prompt. Then the trees follow level by level: each run of ids
without a branch is evaluated on one sequence, and where the tree branches, the state is copied. So a decision takes one
pass for the prompts and one for each level of branching.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from kernel.memory.listed import flat_of
from kernel.memory.memory import Memory
from kernel.memory.passes import MAIN, Batch, Clear, Copy, Drop, Plan, Room, Stem, Step, Token, Work, common_prefix, fed
from kernel.memory.tree import STEM, ScoreTree


@dataclass(frozen=True, slots=True)
class Strand:
    """One path of the tree behind one prompt; `sequence` is its own, unless another strand carries it so far."""

    stem: int
    sequence: int
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Front:
    """Strands that have the first `depth` points of their paths in common; `sequence` holds the state after them."""

    sequence: int
    depth: int
    strands: tuple[Strand, ...]

    @property
    def goes_on(self) -> bool:
        """Whether any of the paths is longer."""
        return any(len(strand.path) > self.depth for strand in self.strands)

    def parted(self) -> list[list[Strand]]:
        """Return the strands that go on, those with the same next point together."""
        by_point: dict[int, list[Strand]] = {}
        for strand in self.strands:
            if len(strand.path) > self.depth:
                by_point.setdefault(strand.path[self.depth], []).append(strand)
        return list(by_point.values())


def plan(memory: Memory, work: Work) -> Plan:
    """Settle what the memory keeps, then return the steps that evaluate the work."""
    ids = [(*flat_of(prompt), *work.tree.prefix) for prompt in work.prompts]
    main = Stem(MAIN, ids[0], cached=memory.rewind(ids[0]))
    return Plan(tuple(Levels(main, ids[1:], work.tree, memory.room).steps()), main.ids)


class Levels:
    """The passes of one decision; use it once."""

    def __init__(self, main: Stem, others: Sequence[tuple[int, ...]], tree: ScoreTree, room: Room) -> None:
        self.main, self.tree, self.room = main, tree, room
        self.paths = tree.paths()
        self.deepest = max(map(len, self.paths), default=0)
        self.free = range(1 + len(others), room.n_seq)
        # the last id of each is left, because the row after it is read
        stems = [
            Stem(number, ids, shared=min(common_prefix(main.ids, ids), len(ids) - 1, len(main.ids) - 1), source=MAIN)
            for number, ids in enumerate(others, 1)
        ]
        self.others = sorted(stems, key=lambda stem: stem.shared)

    def steps(self) -> Iterator[Step]:
        """Yield all steps: the prompts together, or one after the other in a small memory; the session's comes last."""
        own = [len(s.ids) - (s.shared if self.main.cached <= s.shared else 0) for s in self.others]
        if len(self.main.ids) + sum(own) + self.deepest <= self.room.n_ctx:
            yield from self._group(self.others, with_main=True)
        else:
            for stem in self.others:
                yield from self._group([stem], with_main=False)
            yield from self._group([], with_main=True)

    def _group(self, others: Sequence[Stem], *, with_main: bool) -> Iterator[Step]:
        forked = []
        for stem in others:
            stem = yield from self._fork(stem)
            forked.append(stem)
        stems = [*forked, self.main] if with_main else forked
        yield Batch(tuple(token for stem in stems for token in self._prompt(stem)))
        held = sum(len(stem.ids) - stem.cached for stem in forked)
        if with_main:
            self.main = replace(self.main, cached=len(self.main.ids))
        strands = [(stem, path) for stem in stems for path in self.paths]
        while strands:
            taken = self._fitting(strands, self.room.n_ctx - self.main.cached - held)
            yield from self._levels(strands[:taken])
            strands = strands[taken:]
        yield from [Drop(stem.number) for stem in forked]

    def _fork(self, stem: Stem) -> Generator[Step, None, Stem]:
        """Let a stem begin with what it shares with the main one, if the main state has not gone past it."""
        main = self.main
        if main.cached > stem.shared and main.cached + len(stem.ids) + self.deepest > self.room.n_ctx:
            yield Clear()  # both whole do not fit, and the main one comes later
            main = replace(main, cached=0)
        if main.cached <= stem.shared and stem.shared:
            yield from fed(MAIN, main.ids, range(main.cached, stem.shared), self.room)
            main = replace(main, cached=max(main.cached, stem.shared))
            yield Copy(MAIN, stem.number, stem.shared)
            stem = replace(stem, cached=stem.shared)
        self.main = main
        return stem

    def _prompt(self, stem: Stem) -> Iterator[Token]:
        for position in range(stem.cached, len(stem.ids)):
            last = position == len(stem.ids) - 1 and self.tree.wants(STEM)
            yield Token(stem.ids[position], position, (stem.number,), (stem.number, STEM) if last else None)

    def _fitting(self, strands: Sequence[tuple[Stem, list[int]]], cells: int) -> int:
        """Return how many strands the sequences and cells hold together; at least one."""
        points: set[tuple[int, int]] = set()
        for taken, (stem, path) in enumerate(strands):
            points |= {(stem.number, point) for point in path}
            if taken and (len(points) > cells or taken == len(self.free)):
                return taken
        return len(strands)

    def _levels(self, strands: Sequence[tuple[Stem, list[int]]]) -> Iterator[Step]:
        """Yield one pass a level of branching."""
        lengths = {stem.number: len(stem.ids) for stem, _ in strands}
        own = [Strand(s.number, at, tuple(path)) for at, (s, path) in zip(self.free, strands, strict=False)]
        fronts = [Front(number, 0, tuple(s for s in own if s.stem == number)) for number in lengths]
        while fronts:
            tokens: list[Token] = []
            following: list[Front] = []
            for front in fronts:
                for group in front.parted():
                    first = group[0]
                    if first.sequence != front.sequence:
                        yield Copy(front.sequence, first.sequence, lengths[first.stem] + front.depth)
                    end = _common(group, front.depth)
                    for depth, point in enumerate(first.path[front.depth : end], front.depth):
                        output = (first.stem, point) if self.tree.wants(point) else None
                        position = lengths[first.stem] + depth
                        tokens.append(Token(self.tree.tokens[point], position, (first.sequence,), output))
                    following.append(Front(first.sequence, end, tuple(group)))
            yield Batch(tuple(tokens))
            fronts = [front for front in following if front.goes_on]
        yield from [Drop(strand.sequence) for strand in own]


def _common(strands: Sequence[Strand], depth: int) -> int:
    """Return up to which depth the paths of the strands are equal, from a depth on at which they are."""
    shortest = min(len(strand.path) for strand in strands)
    while depth < shortest and len({strand.path[depth] for strand in strands}) == 1:
        depth += 1
    return depth
