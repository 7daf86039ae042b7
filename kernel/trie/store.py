"""Compiled opcode sets on disk: written once, mapped by every later process.

A file holds the arrays of the trie and how many ids of each opcode are scored. Its header names the fingerprint of the
tokenizer and that of the opcodes, and a file is used for exactly these. `arrays` describes the bytes.

    folder/b2_<opcodes>-b2_<tokenizer>.trie     one file for each set of opcodes and tokenizer; the last 16 are kept
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kernel.errors import StoreError
from kernel.text.bulk import Progress
from kernel.text.vocabulary import Vocabulary
from kernel.trie.arrays import Kind, keep_last, read_arrays, write_arrays
from kernel.trie.opcodes import Compiled, Literal, OpcodeSet, fingerprint_of
from kernel.trie.trie import Trie

KIND = Kind(b"\x93CKTRIE\n", 2, "compiled trie", "compiled", "compile it again")

FILES_KEPT = 16


def save(path: Path, compiled: Compiled, *, tokenizer: str, opcodes: str) -> None:
    """Write a compiled set so that `load` gives it back.

    Args:
        tokenizer: fingerprint of the vocabulary that the ids belong to.
        opcodes: fingerprint of the texts that were compiled.
    Raises:
        StoreError: the file cannot be written; what was there before is still there.
    """
    arrays = {f"trie.{name}": getattr(compiled.trie, name) for name in Trie.ARRAYS}
    write_arrays(path, {**arrays, "scored": compiled.scored}, {"tokenizer": tokenizer, "opcodes": opcodes}, KIND)


def load(path: Path, *, tokenizer: str, opcodes: str) -> Compiled:
    """Map a compiled set; the arrays are read-only views of the file.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is not exactly what `save` wrote for this tokenizer and these opcodes.
    """
    arrays = read_arrays(path, {"tokenizer": tokenizer, "opcodes": opcodes}, KIND)
    try:
        return Compiled(Trie({name: arrays[f"trie.{name}"] for name in Trie.ARRAYS}), arrays["scored"])
    except (KeyError, TypeError, ValueError) as error:  # the sums agree, yet `save` did not write it
        raise StoreError(f"{str(path)!r} is not a {KIND.what} of this program: {error!r}") from error


def compile_cached(
    literals: Sequence[Literal | str],
    vocabulary: Vocabulary,
    folder: Path,
    *,
    progress: Progress | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> OpcodeSet:
    """Compile literals, or take them compiled from a folder, which keeps the last FILES_KEPT sets.

    `note` hears of files that could not be used or written; the result is right all the same.
    """
    whole = [x if isinstance(x, Literal) else Literal(x) for x in literals]
    keys = {"tokenizer": vocabulary.fingerprint, "opcodes": fingerprint_of(whole)}
    path = folder / f"{_name(keys['opcodes'])}-{_name(keys['tokenizer'])}.trie"
    try:
        return OpcodeSet(whole, vocabulary, compiled=load(path, **keys))
    except FileNotFoundError:
        pass
    except StoreError as error:
        note(f"{error}; compiling anew")
    opcodes = OpcodeSet(whole, vocabulary, progress=progress)
    try:
        save(path, opcodes.compiled, **keys)
    except StoreError as error:
        note(str(error))
    else:
        keep_last(folder, "*.trie", FILES_KEPT)
    return opcodes


def compiled_from(path: Path, literals: Sequence[Literal], vocabulary: Vocabulary) -> OpcodeSet:
    """Return the set as a file holds it; raises StoreError where it is not of these literals and this tokenizer."""
    try:
        compiled = load(path, tokenizer=vocabulary.fingerprint, opcodes=fingerprint_of(literals))
    except FileNotFoundError:
        raise StoreError(f"there is no file {str(path)!r}; the command `compile` writes one") from None
    return OpcodeSet(literals, vocabulary, compiled=compiled)


def _name(key: str) -> str:
    """Return a key as part of a file name; the header holds the whole key, so a clash is refused, not trusted."""
    return re.sub(r"[^A-Za-z0-9]+", "_", key)[:40]
