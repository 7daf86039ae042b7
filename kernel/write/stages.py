"""Opcodes as a chain of tries: products of arguments are factored, open arguments end in a grammar.

The opcodes ` place {"x":0..9999,"y":0..9999}` and ` note {"text":any string}`, with a closing mark of one newline:

    stage 0 --- ` place {"x":0,"` .. ` place {"x":9999,"` ---> stage 1 --- `y":0}\\n` .. `y":9999}\\n` ---> end
            `-- ` note {"text":` ----------------------------> slot: a grammar of `"` any string `"}\\n` -> end

Each stage is a trie of the texts between backticks, and each leaf has an exit: another stage, a grammar, or the end. So
two tries of 10,000 leaves stand for 10^8 texts, and a text that cannot be listed has a path all the same. `builder.py`
decides what a stage holds and where the fixed text between two arguments is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError
from kernel.shape.shape import Shape
from kernel.text.vocabulary import Vocabulary
from kernel.write.builder import Builder
from kernel.write.ending import Ending
from kernel.write.slots import Grammar
from kernel.write.stage import Place, TriePlace

NOTHING = np.empty(0, np.int32)


class Stages:
    """The compiled opcodes of one vocabulary, and the steps of a walk through them.

    Args:
        shapes: one for each opcode, the closing mark of the wire form included.
    Raises:
        BuildError: nothing to compile; a text that does not round-trip; opcodes that cannot be told apart.
    """

    def __init__(self, shapes: Sequence[Shape], vocabulary: Vocabulary) -> None:
        if not shapes:
            raise BuildError("no opcodes to compile; a cartridge declares at least one")
        builder = Builder(vocabulary)
        self._begin = builder.build(shapes)
        self.vocabulary = vocabulary
        self.stages = builder.stages
        self.grammars = builder.grammars

    @property
    def start(self) -> Place:
        """The place in front of the first id; in a grammar a new one each time, since a slot moves."""
        return self._begin.start() if isinstance(self._begin, Grammar) else self._begin

    @cached_property
    def ending(self) -> Ending:
        """The shortest endings of opcodes that were begun, found as they are asked for."""
        return Ending(self.stages, self.grammars, self.vocabulary)

    def legal(self, place: Place) -> NDArray[np.int32]:
        """Return the legal next ids, int32, ascending; a view where a trie holds them, empty at the end."""
        if isinstance(place, TriePlace):
            trie = self.stages[place.stage].trie
            return trie.children(place.node) if place.edge < 0 else trie.ids[place.at : place.at + 1]
        return NOTHING if place is None else place.legal()

    def advance(self, place: TriePlace, token: int) -> Place:
        """Return the place after one more id of a trie; raises KeyError when it is not legal. A slot moves itself."""
        stage = self.stages[place.stage]
        trie = stage.trie
        if place.edge < 0:
            edge = trie.find(place.node, token)
            if edge < 0:
                raise KeyError(token)
            leaf = trie._order[trie._edge_lo[edge]]
            start = trie._starts[leaf]
            child = trie._edge_child[edge]
            until = trie._starts[leaf + 1] if child < 0 else start + trie._node_depth[child]
            at = start + trie._node_depth[place.node] + 1
        else:
            edge, until = place.edge, place.until
            if trie.ids[place.at] != token:
                raise KeyError(token)
            at = place.at + 1
        if at < until:
            return TriePlace(place.stage, place.node, edge, at, until)
        child = trie._edge_child[edge]
        if child >= 0:
            return TriePlace(place.stage, child)
        exit_ = stage.exits[stage.exit_of[trie._order[trie._edge_lo[edge]]]]
        return exit_.start() if isinstance(exit_, Grammar) else exit_
