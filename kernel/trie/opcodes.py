"""From the texts of opcodes to a trie of token ids. Knows no model beyond its vocabulary, no wire form, no game.

Everything is done for all opcodes at once, so that a million of them take seconds; `compile_cached` keeps the result
of a large set on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError, NoLegalOpcodeError, StoreError, did_you_mean
from kernel.text.bulk import Progress, tokenize_bulk
from kernel.text.vocabulary import Vocabulary
from kernel.trie.arrays import keep_last
from kernel.trie.ordering import Ordering, extended
from kernel.trie.store import Stored, cached, load
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]

END = "\n"
"""What is put behind an opcode that begins another one, so that stopping there is a token to choose like any other."""

BLOCK = 1 << 16
"""Opcodes whose bytes are counted at once, so that the scratch memory stays small."""

FILES_KEPT = 16


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
        progress: told how many texts are tokenized, when that takes more than a second.
        stored: what `store` gave for the same literals and vocabulary; nothing is tokenized then.

    Raises BuildError, naming both texts, when two literals are equal or have one id sequence; when a literal is
    empty or does not round-trip; when one is the beginning of another and an END behind it changes nothing.
    """

    def __init__(
        self,
        literals: Sequence[Literal | str],
        vocabulary: Vocabulary,
        *,
        progress: Progress | None = None,
        stored: Stored | None = None,
    ) -> None:
        self.literals = tuple(x if isinstance(x, Literal) else Literal(x) for x in literals)
        if not self.literals:
            raise BuildError("no opcodes to compile; a cartridge declares at least one")
        self.vocabulary = vocabulary
        self.texts = tuple([x.body + x.closer if x.closer else x.body for x in self.literals])
        self.labels = tuple([x.label or text for x, text in zip(self.literals, self.texts, strict=True)])
        if stored is not None:
            self._adopt(stored)
            return
        self._refuse_repeats()
        ids, offsets = tokenize_bulk(vocabulary, self.texts, progress=progress)
        ids, offsets, ordering, ended = self._end_prefixes(ids, offsets)
        self.trie = Trie.build(ids, offsets, ordering)
        self.scored = self._scored(ids, offsets, ended)

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def schema(self) -> str:
        """`b2:` and a hash of all that the trie depends on beside the vocabulary: texts, closers, END."""
        return schema_of(self.literals)

    def store(self) -> Stored:
        """Return what `store` writes, to give back as `stored`."""
        return Stored(self.trie, {"scored": self.scored})

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

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: position for position, text in enumerate(self.texts)}

    def _adopt(self, stored: Stored) -> None:
        scored = stored.extra.get("scored")
        if scored is None or len(scored) != stored.trie.n_leaves or len(scored) != len(self.texts):
            raise StoreError(
                f"a compiled trie of {stored.trie.n_leaves} opcodes is not of these {len(self.texts)}; compile again"
            )
        self.trie, self.scored = stored.trie, scored

    def _refuse_repeats(self) -> None:
        if len(set(self.texts)) == len(self.texts):
            return
        seen: dict[str, int] = {}
        for position, text in enumerate(self.texts):
            first = seen.setdefault(text, position)
            if first != position:
                raise BuildError(f"opcode {text!r} is declared twice", [(first, position)])

    def _end_prefixes(self, ids: Ints, offsets: Offsets) -> tuple[Ints, Offsets, Ordering, NDArray[np.bool_]]:
        """Append the END to each sequence that begins another one; refuse what is still not told apart."""
        ordering = Ordering.of(ids, offsets)
        for a, b in ordering.duplicates()[:1]:
            raise BuildError(
                f"opcodes {self.texts[a]!r} and {self.texts[b]!r} have one id sequence "
                f"{ids[offsets[a] : offsets[a + 1]].tolist()}",
                [(a, b)],
            )
        begins = ordering.begins_another()
        if begins.any():
            ids, offsets = extended(ids, offsets, begins, self.vocabulary.literal(END))
            ordering = Ordering.of(ids, offsets)
            for a, b in [*ordering.duplicates(), *ordering.prefixes()][:1]:
                a, b = (a, b) if begins[a] else (b, a)
                raise BuildError(
                    f"opcode {self.texts[a]!r} is the beginning of {self.texts[b]!r} even with {END!r} behind it; "
                    "end both with a closing mark",
                    [(a, b)],
                )
        return ids, offsets, ordering, begins

    def _scored(self, ids: Ints, offsets: Offsets, ended: NDArray[np.bool_]) -> Ints:
        """Return how many ids of each opcode count: those that begin before its body ends, and the END."""
        count = np.diff(offsets).astype(np.int32)
        if not any(x.closer for x in self.literals):
            return count
        pieces = self.vocabulary.pieces
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces)) if len(ids) > len(pieces) else None
        for low in range(0, len(count), BLOCK):
            part = slice(low, min(low + BLOCK, len(count)))
            some = ids[offsets[part.start] : offsets[part.stop]]
            width = sizes[some] if sizes is not None else np.array([len(pieces[i]) for i in some.tolist()], np.int64)
            heads = offsets[part] - offsets[part.start]
            begin = np.cumsum(width) - width  # where each id begins, in bytes; of the block, then of its opcode
            begin -= np.repeat(begin[heads], count[part])
            bodies = np.fromiter((len(x.body.encode()) for x in self.literals[part]), np.int64)
            inside = begin < np.repeat(bodies, count[part])
            held = np.maximum(1, np.add.reduceat(inside, heads, dtype=np.int32))
            bare = np.fromiter((not x.closer for x in self.literals[part]), np.bool_) | ended[part]
            count[part] = np.where(bare, count[part], held)
        return count


def compile_cached(
    literals: Sequence[Literal | str],
    vocabulary: Vocabulary,
    folder: Path,
    *,
    progress: Progress | None = None,
    note: Callable[[str], None] | None = None,
) -> OpcodeSet:
    """Compile literals, or take them compiled from a folder, which keeps the last FILES_KEPT sets.

    `note` hears of files that could not be used or written; the result is right all the same.
    """
    made: list[OpcodeSet] = []

    def build() -> Stored:
        made.append(OpcodeSet(literals, vocabulary, progress=progress))
        return made[0].store()

    whole = [x if isinstance(x, Literal) else Literal(x) for x in literals]
    if not whole:
        return OpcodeSet(whole, vocabulary)
    stored = cached(folder, tokenizer=vocabulary.fingerprint, schema=schema_of(whole), build=build, note=note)
    if not made:
        return OpcodeSet(whole, vocabulary, stored=stored)
    keep_last(folder, "*.trie", FILES_KEPT)
    return made[0]


def compiled_from(path: Path, literals: Sequence[Literal], vocabulary: Vocabulary) -> OpcodeSet:
    """Return the set as a file holds it; raises StoreError where it is not of these literals and this tokenizer."""
    try:
        stored = load(path, tokenizer=vocabulary.fingerprint, schema=schema_of(literals))
    except FileNotFoundError:
        raise StoreError(f"there is no file {str(path)!r}; the command `compile` writes one") from None
    return OpcodeSet(literals, vocabulary, stored=stored)


def schema_of(literals: Sequence[Literal]) -> str:
    """Return `b2:` and a hash of the bodies and closers, in order, and of the END."""
    digest = hashlib.blake2b(f"{END!r} {len(literals)}".encode(), digest_size=16)
    for low in range(0, len(literals), BLOCK):
        some = literals[low : low + BLOCK]
        texts = [x.body.encode() for x in some] + [x.closer.encode() for x in some]
        digest.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
        digest.update(b"".join(texts))
    return f"b2:{digest.hexdigest()}"
