"""Compiled tries on disk: named arrays behind a JSON header, read by mapping the file. Knows no opcode, no model.

    magic | version, header length | header (JSON) | checksum of all that | arrays, each aligned to 64 bytes

Nothing is unpickled and nothing is executed: a file that is foreign, cut, damaged, or made for another tokenizer or
another set of opcodes is refused with a StoreError. Writing is atomic: a reader finds the old file or the new one,
and what a killed writer leaves behind is removed by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import re
import secrets
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernel.errors import StoreError
from kernel.trie import Trie

MAGIC = b"\x93CKTRIE\n"
VERSION = 1
ALIGN = 64
_HEAD = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_TYPES = frozenset({"<i4", "<i8", "|u1"})
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")

Array = NDArray[Any]


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
        extra: other arrays to keep, by name: int32, int64 or uint8, one-dimensional.
    Raises:
        StoreError: the file cannot be written; what was there before is still there.
    """
    arrays = {f"trie.{name}": getattr(trie, name) for name in Trie.ARRAYS}
    arrays |= {f"extra.{name}": array for name, array in (extra or {}).items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        with _replacing(path) as file:
            _write(file, arrays, {"tokenizer": tokenizer, "schema": schema})
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


def load(path: Path, *, tokenizer: str, schema: str) -> Stored:
    """Map a compiled trie; the arrays are read-only views of the file.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is not exactly what `save` wrote for this tokenizer and schema.
    """
    try:
        return _parse(path, _map(path), tokenizer, schema)
    except (KeyError, TypeError, ValueError) as error:  # sums agree, yet `save` did not write it
        raise StoreError(f"{str(path)!r} is not a compiled trie of this program: {error!r}") from error


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


def _write(file: BinaryIO, arrays: Mapping[str, Array], keys: Mapping[str, str]) -> None:
    table = []
    at = 0
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array)
        kind = flat.dtype.newbyteorder("<").str
        if kind not in _TYPES or flat.ndim != 1:
            raise StoreError(f"array {name!r} is {flat.dtype} of shape {flat.shape}; {sorted(_TYPES)} in one dimension")
        sum_ = zlib.crc32(_bytes(flat, kind))
        table.append({"name": name, "type": kind, "count": len(flat), "at": at, "sum": sum_})
        at += -(-flat.nbytes // ALIGN) * ALIGN
    header = json.dumps({**keys, "arrays": table, "size": at}, separators=(",", ":")).encode()
    head = _HEAD.pack(MAGIC, VERSION, len(header)) + header
    head += _SUM.pack(zlib.crc32(head))
    file.write(head.ljust(_start(len(header)), b"\0"))
    for row, array in zip(table, arrays.values(), strict=True):
        data = _bytes(np.ascontiguousarray(array), row["type"])
        file.write(data)
        file.write(bytes(-len(data) % ALIGN))


def _bytes(flat: Array, kind: Any) -> memoryview:
    return memoryview(flat.astype(kind, copy=False).view(np.uint8))  # type: ignore[arg-type]


def _start(header: int) -> int:
    """Return where the arrays begin behind a header of so many bytes."""
    return -(-(_HEAD.size + header + _SUM.size) // ALIGN) * ALIGN


def _map(path: Path) -> bytes | mmap.mmap:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < _HEAD.size:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise StoreError(f"{str(path)!r} cannot be read: {error}") from error


def _parse(path: Path, data: bytes | mmap.mmap, tokenizer: str, schema: str) -> Stored:
    where = repr(str(path))
    if data[: len(MAGIC)] != MAGIC:
        raise StoreError(f"{where} is not a compiled trie: it begins with {data[: len(MAGIC)]!r}, not {MAGIC!r}")
    if len(data) < _HEAD.size:
        raise StoreError(f"{where} is cut off after {len(data)} bytes; compile it again")
    _, version, length = _HEAD.unpack(data[: _HEAD.size])
    if version != VERSION:
        raise StoreError(f"{where} has format {version}; this program reads {VERSION}; compile it again")
    end = _HEAD.size + length
    if len(data) < end + _SUM.size:
        raise StoreError(f"{where} is cut off in its header; compile it again")
    if _SUM.unpack(data[end : end + _SUM.size])[0] != zlib.crc32(data[:end]):
        raise StoreError(f"{where} is damaged in its header; compile it again")
    header = json.loads(data[_HEAD.size : end])  # whole and unchanged, so it is what `save` wrote
    for key, mine in (("tokenizer", tokenizer), ("schema", schema)):
        if header[key] != mine:
            raise StoreError(f"{where} was compiled for {key} {header[key]!r}, not {mine!r}; compile it again")
    start = _start(length)
    if len(data) != start + header["size"]:
        raise StoreError(f"{where} has {len(data)} bytes of {start + header['size']}; compile it again")
    arrays: dict[str, Array] = {}
    for row in header["arrays"]:
        array = np.frombuffer(data, row["type"], row["count"], start + row["at"])
        if zlib.crc32(array.view(np.uint8)) != row["sum"]:  # type: ignore[arg-type]
            raise StoreError(f"{where} is damaged in {row['name']!r}; compile it again")
        arrays[row["name"]] = array
    trie = {name: arrays[f"trie.{name}"] for name in Trie.ARRAYS}
    extra = {name.removeprefix("extra."): array for name, array in arrays.items() if name.startswith("extra.")}
    return Stored(Trie(trie), extra)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """Give a new file that takes the place of `path` at the end; nothing changes when the body raises."""
    temporary, file = _temporary(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _temporary(path: Path) -> tuple[Path, BinaryIO]:
    """Return a new locked file beside `path`; the lock says that its writer is alive."""
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        file = temporary.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if temporary.exists():  # else somebody has taken it for a leftover between the two lines above
            return temporary, file
        file.close()


def _remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that are gone: those that nobody holds a lock on."""
    for leftover in folder.glob(".*.tmp"):
        if not _TEMPORARY.fullmatch(leftover.name):
            continue
        with contextlib.suppress(OSError), leftover.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover.unlink(missing_ok=True)
