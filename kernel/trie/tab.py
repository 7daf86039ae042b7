"""What a browser needs to choose as this kernel does: a vocabulary and compiled opcodes, each as one block of bytes.

Both have the form of `arrays`: a short JSON header, then arrays that JavaScript looks at where they lie, without
reading them through. The header of a trie names the fingerprint of the vocabulary that its ids belong to; opcodes.js of
the page refuses another one, and its vocabulary.js compares every piece with the model's own.

    vocabulary   pieces, piece_ends    the bytes of all ids one behind the other, and where each ends
                 attributes            as in `kernel.text.vocabulary`
                 begin, eog            ids that stand in front of every prompt; those that end what a model writes
    trie         ids, starts, order    the sequences of ids, and which comes first: sorted, they are the trie, and an
                                       edge is a run of them that has an id in common (opcodes.js)
                 scored                how many leading ids of each opcode are scored
                 texts, text_ends      UTF-8: what each opcode is on the wire
                 labels, label_ends    what people see, where that is another text
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kernel.errors import BuildError
from kernel.prompt import Part
from kernel.text.vocabulary import Vocabulary
from kernel.textfile import utf8
from kernel.trie.arrays import Array, Kind, packed
from kernel.trie.opcodes import OpcodeSet

TRIE = Kind(b"\x93CKTABT\n", 1, "trie for the tab", "compiled", "compile it again")
VOCABULARY = Kind(b"\x93CKTABV\n", 1, "vocabulary for the tab", "made", "make it again")


def trie_asset(opcodes: OpcodeSet) -> bytes:
    """Return compiled opcodes for a browser."""
    trie = opcodes.trie
    arrays = {"ids": trie.ids, "starts": trie.starts, "order": trie.order, "scored": opcodes.scored}
    arrays |= _blob("text", map(utf8, opcodes.texts))
    if opcodes.labels != opcodes.texts:
        arrays |= _blob("label", map(utf8, opcodes.labels))
    return packed(arrays, {"tokenizer": opcodes.vocabulary.fingerprint, "opcodes": opcodes.fingerprint}, TRIE)


def vocabulary_asset(vocabulary: Vocabulary) -> bytes:
    """Return a vocabulary for a browser, whose runtime tokenizes but tells no attributes.

    Raises:
        BuildError: the vocabulary puts ids behind a prompt, which the tab does not do.
    """
    with_start, without = (vocabulary.prompt([Part("a")], start=start) for start in (True, False))
    begin = with_start[: len(with_start) - len(without)]
    if [*begin, *without] != with_start:
        raise BuildError(f"{vocabulary.name}: it ends a prompt with ids of its own, and the tab cannot do that")
    arrays = _blob("piece", vocabulary.pieces)
    arrays["attributes"] = np.asarray(vocabulary.attributes, np.int32)
    arrays["begin"] = np.asarray(begin, np.int32)
    arrays["eog"] = np.asarray(sorted(vocabulary.eog), np.int32)
    keys = {"tokenizer": vocabulary.fingerprint, "scheme": vocabulary.scheme, "name": vocabulary.name}
    return packed(arrays, keys, VOCABULARY)


def _blob(name: str, texts: Iterable[bytes]) -> dict[str, Array]:
    """Return byte strings one behind the other, and where each ends."""
    whole = list(texts)
    ends = np.cumsum([len(text) for text in whole], dtype=np.int64).astype(np.int32)
    return {f"{name}s": np.frombuffer(b"".join(whole), np.uint8), f"{name}_ends": ends}
