"""Compiled tries on disk. Knows no opcode, no model, no layout of bytes (arrays.py does)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernel.errors import StoreError
from kernel.trie.arrays import Array, Kind, read, write
from kernel.trie.trie import Trie

KIND = Kind(b"\x93CKTRIE\n", 1, "compiled trie", "compiled", "compile it again")


@dataclass(frozen=True)
class Stored:
    """What a file held: the trie and whatever arrays were stored beside it."""

    trie: Trie
    extra: Mapping[str, Array] = field(default_factory=dict)


def save(path: Path, trie: Trie, *, tokenizer: str, schema: str, extra: Mapping[str, Array] | None = None) -> None:
    """Write a compiled trie so that `load` gives it back.

    Args:
        tokenizer: fingerprint of the vocabulary that the ids belong to.
        schema: hash of the opcodes and of everything else that the trie depends on.
        extra: other arrays to keep, by name; see `arrays.write`.
    Raises:
        StoreError: the file cannot be written; what was there before is still there.
    """
    arrays = {f"trie.{name}": getattr(trie, name) for name in Trie.ARRAYS}
    arrays |= {f"extra.{name}": array for name, array in (extra or {}).items()}
    write(path, arrays, {"tokenizer": tokenizer, "schema": schema}, KIND)


def load(path: Path, *, tokenizer: str, schema: str) -> Stored:
    """Map a compiled trie; the arrays are read-only views of the file.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is not exactly what `save` wrote for this tokenizer and schema.
    """
    arrays = read(path, {"tokenizer": tokenizer, "schema": schema}, KIND)
    try:
        trie = Trie({name: arrays[f"trie.{name}"] for name in Trie.ARRAYS})
    except (KeyError, TypeError, ValueError) as error:  # the sums agree, yet `save` did not write it
        raise StoreError(f"{str(path)!r} is not a {KIND.what} of this program: {error!r}") from error
    extra = {name.removeprefix("extra."): array for name, array in arrays.items() if name.startswith("extra.")}
    return Stored(trie, extra)


def cached(
    folder: Path,
    *,
    tokenizer: str,
    schema: str,
    build: Callable[[], Stored],
    note: Callable[[str], None] | None = None,
) -> Stored:
    """Return the compiled trie of this tokenizer and schema: from the folder, or built and kept there.

    Args:
        build: makes it when there is none, or when the one there is refused.
        note: is told why a file was refused or why the new one could not be kept; the result is right all the same.
    """
    path = folder / f"{_name(schema)}-{_name(tokenizer)}.trie"
    try:
        return load(path, tokenizer=tokenizer, schema=schema)
    except FileNotFoundError:
        pass
    except StoreError as error:
        if note is not None:
            note(f"{error}; compiling anew")
    stored = build()
    try:
        save(path, stored.trie, tokenizer=tokenizer, schema=schema, extra=stored.extra)
    except StoreError as error:
        if note is not None:
            note(str(error))
    return stored


def _name(key: str) -> str:
    """Return a key as part of a file name; the header holds the whole key, so a clash is refused, not trusted."""
    return re.sub(r"[^A-Za-z0-9]+", "_", key)[:40]
