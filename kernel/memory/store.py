"""The line store: which sequences hold which lines, so that a line that comes again is not evaluated again.

The invariant: beside every stored line its lead is stored, used later than the line; so of a lead and its lines the
lines go first. A plan carries what is stored after it, and the memory takes that over when the plan has been carried
out: a pass that fails leaves nothing stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from kernel.memory.listed import Ids, Listed


class Line(NamedTuple):
    """A line behind its lead; without a `line` it is the lead itself."""

    lead: Ids
    line: Ids = ()

    @property
    def cells(self) -> int:
        """Cells of memory that it takes; those of the lead belong to the lead."""
        return len(self.line or self.lead)


@dataclass(frozen=True, slots=True)
class Stored:
    """The sequence of each stored line and lead; the one that was used last stands at the end."""

    sequences: Mapping[Line, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def cells(self) -> int:
        """Cells that all of them take."""
        return sum(line.cells for line in self.sequences)

    def first(self, n_seq: int) -> int:
        """Return the lowest sequence that is taken: those below are free; `n_seq` where nothing is stored."""
        return min(self.sequences.values(), default=n_seq)

    def after(self, wanted: Sequence[Line], room: range, cells: int) -> Stored:
        """Return what is stored when these have been used: they, and of the others those that were used last.

        Args:
            wanted: as many as `room` holds at most; a lead behind its lines.
            room: the sequences that may hold lines; new ones take the highest free one.
            cells: how many all may take; those that are wanted count, but stay.

        >>> a, b, lead = Line((1,), (2,)), Line((1,), (3,)), Line((1,))
        >>> first = Stored().after([a, lead], range(5, 8), 9)
        >>> list(first.sequences.values()), list(first.after([b, lead], range(5, 8), 2).sequences.values())
        ([7, 6], [7, 6])
        """
        kept: list[Line] = []
        left = cells - sum(line.cells for line in wanted)
        for line in reversed([*self.sequences]):
            if line not in wanted:
                left -= line.cells
                if left < 0 or len(kept) + len(wanted) == len(room):
                    break
                kept.append(line)
        found = {line: self.sequences[line] for line in reversed(kept)}
        taken = {*found.values(), *(self.sequences[line] for line in wanted if line in self.sequences)}
        free = (number for number in reversed(room) if number not in taken)
        for line in wanted:
            found[line] = self.sequences[line] if line in self.sequences else next(free)
        return Stored(MappingProxyType(found))


def wanted(prompts: Sequence[Listed]) -> list[Line]:
    """Return the lines of some prompts, each once, and behind them their leads."""
    lines = [Line(prompt.lead, line) for prompt in prompts for line in prompt.lines]
    return list(dict.fromkeys([*lines, *(Line(prompt.lead) for prompt in prompts if prompt.lead)]))
