"""One stage of a chain: a trie of texts with an exit for each leaf, and the places of a walk through the chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kernel.trie.trie import Trie
from kernel.write.slots import Grammar, Slot


class TriePlace(NamedTuple):
    """A place in the trie of a stage, given by the stage's number: at a node, or inside an edge.

    `edge` is -1 at a node. Inside an edge, the next id is `trie.ids[at]`, and the edge ends before `trie.ids[until]`.
    """

    stage: int
    node: int = 0
    edge: int = -1
    at: int = 0
    until: int = 0


Place = TriePlace | Slot | None
"""Where a walk stands: in a trie, in a slot that a grammar holds, or (None) behind the end of the opcode."""

Exit = TriePlace | Grammar | None
"""Where a leaf leads: to the root of another stage's trie, to the beginning of a grammar, or (None) to the end."""


class Stage:
    """A trie and the exits of its leaves.

    Leaf i leads to `exits[exit_of[i]]`; a stage has few exits and may have very many leaves.
    """

    def __init__(self, trie: Trie, leads_to: Sequence[Exit]) -> None:
        """Keep the trie, and for each of its leaves where it leads."""
        self.trie = trie
        self.exits = list(dict.fromkeys(leads_to))
        numbers = {exit_: number for number, exit_ in enumerate(self.exits)}
        self.exit_of = np.array([numbers[exit_] for exit_ in leads_to], np.int32).data
