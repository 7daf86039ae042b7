"""Which sequence holds the path to which node, while a search has nodes open.

A *place* is the path of ids from the prompt to a node of the trie. It stays on a sequence of its own as long as one of
the node's edges is open. When sequences or cells run out, the place that was evaluated first gives its sequence back;
its path is evaluated again when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel.errors import ContextError
from kernel.memory.listed import Prompted, cells_of, end_of
from kernel.memory.memory import Growth, Memory
from kernel.memory.passes import MAIN, Ids


@dataclass(slots=True)
class Place:
    """The path to a node behind the forced prefix, the sequence that holds it or None, and the node's open edges."""

    path: Ids
    sequence: int | None
    edges: int = 0


class Places:
    """The places of one search.

    Args:
        base: the prompt and the forced prefix; they are on the main sequence.
        root: the node behind them.
    """

    def __init__(self, memory: Memory, base: Prompted, root: int) -> None:
        if memory.whole.n_seq < 2:
            raise ContextError(f"n_seq={memory.whole.n_seq} is too small to search this set; 2 or more")
        self._memory = memory
        self._base, self._held = end_of(base), cells_of(base)
        self._places = {root: Place((), MAIN)}
        self._free: list[int] = []

    def open(self) -> None:
        """Take all sequences that are free, now that the prompt is in memory."""
        self._free = list(range(1, self._memory.room.n_seq))

    def path(self, node: int) -> Ids:
        """Return the ids between the prefix and a node."""
        return self._places[node].path

    def add(self, node: int, path: Ids, sequence: int) -> None:
        """Take note that a sequence now holds the path to a node."""
        self._places[node] = Place(path, sequence)

    def opened(self, node: int, edges: int) -> None:
        """Take note of a node's open edges; one without any needs its sequence no more."""
        self._places[node].edges = edges
        if not edges:
            self._give_back(self._places[node])

    def closed(self, node: int) -> None:
        """Take note that one edge of a node is open no more."""
        place = self._places[node]
        self.opened(node, place.edges - 1)

    def free(self, sequence: int) -> None:
        """Give back the sequence of a finished opcode."""
        self._memory.drop(sequence)
        self._free.append(sequence)

    def close(self) -> None:
        """Give back all sequences."""
        for place in self._places.values():
            self._give_back(place)

    def grow(self, node: int, ids: Ids, batch: Sequence[tuple[int, Growth]]) -> Growth | None:
        """Return how ids are evaluated behind the path to a node; None where the pass has no room for them.

        Args:
            batch: the nodes and growths that are in the pass already; the first one always finds room.
        """
        place, needed = self._places[node], {other for other, _ in batch} | {node}
        if not self._free and not self._make_room(needed) and not batch:
            self._give_back(place)  # it is the only one: what it holds is evaluated again
        if not self._free:
            return None
        target = self._free.pop()
        while not batch and self._cells + len(place.path) + len(ids) > self._memory.room.n_ctx:
            if not self._make_room(needed):
                break
        if place.sequence is None:
            source, length, again = MAIN, self._base, place.path
        else:
            source, length, again = place.sequence, self._base + len(place.path), ()
        used = sum(len(growth.ids) for _, growth in batch) + len(again) + len(ids)
        if batch and (used > self._memory.room.n_batch or used + self._cells > self._memory.room.n_ctx):
            self._free.append(target)
            return None
        return Growth(source, length, target, (*again, *ids), len(again))

    def _give_back(self, place: Place) -> None:
        if place.sequence not in (None, MAIN):
            self.free(place.sequence)
            place.sequence = None

    def _make_room(self, needed: set[int]) -> bool:
        """Give back the sequence of the place longest in memory and not needed; False when there is none."""
        for node, place in self._places.items():
            if place.sequence not in (None, MAIN) and node not in needed:
                self._give_back(place)
                return True
        return False

    @property
    def _cells(self) -> int:
        """An upper bound of the cells in use."""
        return self._held + sum(len(p.path) for p in self._places.values() if p.sequence not in (None, MAIN))
