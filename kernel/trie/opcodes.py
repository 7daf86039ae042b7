"""Compiles the texts of opcodes into a trie of token ids.

    texts      "go"  "go north"             what the cartridge declares, as the model will write it
    ids        [go]  [go] [ north]          each text as the tokenizer splits it alone
    ended      [go] [\\n]  [go] [ north]    a text that begins another one gets a TERMINATOR: stopping is a choice
    trie       go -- \\n --> opcode 0
                  `- north --> opcode 1

Each step is done for all opcodes at once, so that a million of them take seconds. `store` keeps the result on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kernel.errors import BuildError, NoLegalOpcodeError, StoreError, did_you_mean
from kernel.text.bulk import Progress, tokenize_bulk
from kernel.text.vocabulary import Vocabulary
from kernel.textfile import utf8
from kernel.trie.literal import Literal as Literal
from kernel.trie.ordering import Ordering, extended
from kernel.trie.subset import Subset
from kernel.trie.trie import Trie

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]

TERMINATOR = "\n"
"""What is put behind an opcode that begins another one, so that stopping there is a token to choose like any other."""

BLOCK = 1 << 16
"""Opcodes whose bytes are counted at once, so that the scratch memory stays small."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What compiling makes of literals, and what a file keeps of them.

    Attributes:
        trie: leaf i is literal i.
        scored: int32, shape (n_leaves,): how many leading ids of each opcode count in its score.
    """

    trie: Trie
    scored: Ints


class OpcodeSet:
    """Compiled literals: the trie, and which text each leaf is.

    Args:
        literals: texts in the order that `Decision.index` refers to.
        vocabulary: of the live model.
        progress: told how many texts are tokenized, when that takes more than a second.
        compiled: of the same literals and vocabulary, as a file keeps it; nothing is tokenized then.

    Raises:
        BuildError: two literals are equal or have one id sequence; one is empty or does not round-trip; one is the
            beginning of another and a TERMINATOR behind it changes nothing. Both texts are named.
        StoreError: `compiled` has another number of opcodes.
    """

    def __init__(
        self,
        literals: Sequence[Literal | str],
        vocabulary: Vocabulary,
        *,
        progress: Progress | None = None,
        compiled: Compiled | None = None,
    ) -> None:
        self.literals = tuple(x if isinstance(x, Literal) else Literal(x) for x in literals)
        if not self.literals:
            raise BuildError("no opcodes to compile; a cartridge declares at least one")
        self.vocabulary = vocabulary
        self.texts = tuple([x.body + x.closer if x.closer else x.body for x in self.literals])
        self.labels = tuple([x.label or text for x, text in zip(self.literals, self.texts, strict=True)])
        self.compiled = self._compile(progress) if compiled is None else compiled
        self.trie, self.scored = self.compiled.trie, self.compiled.scored
        if not len(self.texts) == self.trie.n_leaves == len(self.scored):
            raise StoreError(f"a compiled trie of {self.trie.n_leaves} opcodes is not of these {len(self.texts)}")

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def fingerprint(self) -> str:
        """`b2:` and a hash of all that the trie depends on beside the vocabulary: texts, closers, TERMINATOR."""
        return fingerprint_of(self.literals)

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
        """Return the subset of these opcode indices; raises NoLegalOpcodeError for none or an unknown one."""
        legal = set(indices)
        if legal and not (min(legal) >= 0 and max(legal) < len(self.texts)):
            odd = next(index for index in indices if not 0 <= index < len(self.texts))
            raise NoLegalOpcodeError(f"there is no opcode {odd!r}; the set has those from 0 to {len(self.texts) - 1}")
        if len(legal) == len(self.texts):
            return self.everything
        return Subset.of(self.trie, indices)

    def index(self, text: str) -> int:
        """Return the position of a text; KeyError when it is unknown."""
        return self._index[text]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {text: position for position, text in enumerate(self.texts)}

    def _compile(self, progress: Progress | None) -> Compiled:
        self._refuse_repeats()
        ids, offsets = tokenize_bulk(self.vocabulary, self.texts, progress=progress)
        ids, offsets, ordering, ended = self._end_prefixes(ids, offsets)
        return Compiled(Trie.build(ids, offsets, ordering), self._scored(ids, offsets, ended))

    def _refuse_repeats(self) -> None:
        if len(set(self.texts)) == len(self.texts):
            return
        seen: dict[str, int] = {}
        for position, text in enumerate(self.texts):
            first = seen.setdefault(text, position)
            if first != position:
                raise BuildError(f"opcode {text!r} is declared twice", [(first, position)])

    def _end_prefixes(self, ids: Ints, offsets: Offsets) -> tuple[Ints, Offsets, Ordering, NDArray[np.bool_]]:
        """Append the TERMINATOR to each sequence that begins another one; refuse what is still not told apart."""
        ordering = Ordering.of(ids, offsets)
        for a, b in ordering.duplicates()[:1]:
            raise BuildError(
                f"opcodes {self.texts[a]!r} and {self.texts[b]!r} have one id sequence "
                f"{ids[offsets[a] : offsets[a + 1]].tolist()}",
                [(a, b)],
            )
        begins = ordering.begins_another()
        if begins.any():
            ids, offsets = extended(ids, offsets, begins, self.vocabulary.literal(TERMINATOR))
            ordering = Ordering.of(ids, offsets)
            for a, b in [*ordering.duplicates(), *ordering.prefixes()][:1]:
                a, b = (a, b) if begins[a] else (b, a)
                raise BuildError(
                    f"opcode {self.texts[a]!r} is the beginning of {self.texts[b]!r} even with {TERMINATOR!r} "
                    "behind it; end both with a closing mark",
                    [(a, b)],
                )
        return ids, offsets, ordering, begins

    def _scored(self, ids: Ints, offsets: Offsets, ended: NDArray[np.bool_]) -> Ints:
        """Return how many ids of each opcode count: those that begin before its body ends, and the TERMINATOR."""
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


def fingerprint_of(literals: Sequence[Literal]) -> str:
    """Return `b2:` and a hash of the bodies and closers, in order, and of the TERMINATOR."""
    digest = hashlib.blake2b(f"{TERMINATOR!r} {len(literals)}".encode(), digest_size=16)
    for low in range(0, len(literals), BLOCK):
        some = literals[low : low + BLOCK]
        texts = [utf8(x.body) for x in some] + [utf8(x.closer) for x in some]
        digest.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
        digest.update(b"".join(texts))
    return f"b2:{digest.hexdigest()}"
