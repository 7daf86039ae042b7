"""From the texts of opcodes to a trie of token ids. Knows no model beyond its vocabulary, no wire form, no game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError, NoLegalOpcodeError, did_you_mean
from kernel.subset import Subset
from kernel.trie import Trie, duplicates, proper_prefixes
from kernel.vocab import Vocabulary

END = "\n"
"""What is put behind an opcode that begins another one, so that stopping there is a token to choose like any other."""


@dataclass(frozen=True, slots=True)
class Literal:
    """The text of one opcode.

    The `closer` ends it and tells nothing about which opcode it is, so it is not scored; `label` is what people see.
    """

    body: str
    closer: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        """Body and closer."""
        return self.body + self.closer


class OpcodeSet:
    """Compiled literals: the trie, and which text each leaf is.

    Args:
        literals: texts in the order that `Decision.index` refers to.
        vocabulary: of the live model.

    Raises BuildError, naming both texts, when two literals are equal or have one id sequence; when a literal is
    empty or does not round-trip; when one is the beginning of another and an END behind it changes nothing.
    """

    def __init__(self, literals: Sequence[Literal | str], vocabulary: Vocabulary) -> None:
        self.literals = tuple(x if isinstance(x, Literal) else Literal(x) for x in literals)
        if not self.literals:
            raise BuildError("no opcodes to compile; a cartridge declares at least one")
        self.vocabulary = vocabulary
        self.texts = tuple(x.text for x in self.literals)
        self.labels = tuple(x.label or x.text for x in self.literals)
        self._index: dict[str, int] = {}
        for position, text in enumerate(self.texts):
            if text in self._index:
                raise BuildError(f"opcode {text!r} is declared twice", [(self._index[text], position)])
            self._index[text] = position
        sequences = [vocabulary.literal(text) for text in self.texts]
        ended = self._end_prefixes(sequences)
        self.trie = Trie.of(sequences)
        self.scored = self._scored(sequences, ended)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def everything(self) -> Subset:
        """All opcodes legal."""
        return Subset.all(self.trie)

    def subset(self, texts: Sequence[str]) -> Subset:
        """Return the subset of these texts; raises NoLegalOpcodeError for none or an unknown one."""
        if not texts:
            raise NoLegalOpcodeError("the legal set is empty; an engine with no legal instruction has ended")
        leaves = []
        for text in texts:
            index = self._index.get(text)
            if index is None:
                raise NoLegalOpcodeError(f"{text!r} is legal but was never compiled{did_you_mean(text, self._index)}")
            leaves.append(index)
        return self.subset_of(leaves)

    def subset_of(self, indices: Sequence[int]) -> Subset:
        """Return the subset of these opcode indices; raises NoLegalOpcodeError for none."""
        if len(set(indices)) == len(self.texts):
            return self.everything
        return Subset.of(self.trie, indices)

    def index(self, text: str) -> int:
        """Return the position of a text; KeyError when it is unknown."""
        return self._index[text]

    def _end_prefixes(self, sequences: list[list[int]]) -> NDArray[np.bool_]:
        """Append the END to each sequence that begins another one; refuse what is still not told apart."""
        flat, offsets = _flatten(sequences)
        for a, b in duplicates(flat, offsets):
            raise BuildError(
                f"opcodes {self.texts[a]!r} and {self.texts[b]!r} have one id sequence {sequences[a]}", [(a, b)]
            )
        begins = proper_prefixes(flat, offsets)
        if begins.any():
            end = self.vocabulary.literal(END)
            for position in np.flatnonzero(begins).tolist():
                sequences[position] = sequences[position] + end
            flat, offsets = _flatten(sequences)
            pairs = duplicates(flat, offsets)
            still = np.flatnonzero(proper_prefixes(flat, offsets)).tolist()
            if pairs or still:
                a = next(x for x in pairs[0] if begins[x]) if pairs else still[0]
                other = next(b for b, s in enumerate(sequences) if b != a and s[: len(sequences[a])] == sequences[a])
                raise BuildError(
                    f"opcode {self.texts[a]!r} is the beginning of {self.texts[other]!r} even with {END!r} behind it; "
                    "end both with a closing mark",
                    [(a, other)],
                )
        return begins

    def _scored(self, sequences: list[list[int]], ended: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return how many ids of each opcode count: those that hold a byte of its body, and the END."""
        scored = np.empty(len(sequences), np.int32)
        pieces = self.vocabulary.pieces
        for position, (literal, ids) in enumerate(zip(self.literals, sequences, strict=True)):
            count = len(ids)
            if literal.closer and not ended[position]:
                left = len(literal.closer.encode())
                while count > 1 and left >= len(pieces[ids[count - 1]]):
                    count -= 1
                    left -= len(pieces[ids[count]])
            scored[position] = count
        return scored


def _flatten(sequences: list[list[int]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    flat = np.fromiter((i for s in sequences for i in s), np.int32, int(lengths.sum()))
    return flat, np.concatenate([[0], np.cumsum(lengths)])
