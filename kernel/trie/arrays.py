"""Named arrays in a file behind a JSON header, read by mapping it. Knows nothing of what they are for.

    magic | version, header length | header (JSON) | checksum of all that | arrays, each aligned to 64 bytes

Nothing is unpickled and nothing is executed: a file that is foreign, cut, damaged, or made for other keys is refused
with a StoreError. Writing is atomic: a reader finds the old file or the new one, and what a killed writer leaves
behind is removed by the next.
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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernel.errors import StoreError

ALIGN = 64
_HEAD = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_TYPES = frozenset({"<i4", "<i8", "<f8", "|u1"})
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")

Array = NDArray[Any]


@dataclass(frozen=True)
class Kind:
    """One kind of file.

    Attributes:
        magic: its first 8 bytes.
        what, made, again: words for messages, such as `compiled trie`, `compiled`, `compile it again`.
    """

    magic: bytes
    version: int
    what: str
    made: str
    again: str


def write(path: Path, arrays: Mapping[str, Array], keys: Mapping[str, str], kind: Kind) -> None:
    """Write arrays so that `read` gives them back.

    Args:
        arrays: by name: int32, int64, float64 or uint8, one-dimensional.
        keys: what they depend on; `read` has to be given the same.
    Raises:
        StoreError: the file cannot be written; what was there before is still there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path.parent)
        with _replacing(path) as file:
            _write(file, arrays, keys, kind)
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be written: {error.strerror or error}") from error


def read(path: Path, keys: Mapping[str, str], kind: Kind) -> dict[str, Array]:
    """Map the arrays of a file; they are read-only views of it.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is not exactly what `write` wrote for these keys.
    """
    try:
        return _parse(path, _map(path), keys, kind)
    except (KeyError, TypeError, ValueError) as error:  # sums agree, yet `write` did not write it
        raise StoreError(f"{str(path)!r} is not a {kind.what} of this program: {error!r}") from error


def keep_last(folder: Path, pattern: str, count: int) -> None:
    """Remove all but the last written files of a name pattern; whoever has one of them mapped keeps it."""
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime)
    for old in files[:-count]:
        old.unlink(missing_ok=True)


def _write(file: BinaryIO, arrays: Mapping[str, Array], keys: Mapping[str, str], kind: Kind) -> None:
    table = []
    at = 0
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array)
        type_ = flat.dtype.newbyteorder("<").str
        if type_ not in _TYPES or flat.ndim != 1:
            raise StoreError(f"array {name!r} is {flat.dtype} of shape {flat.shape}; {sorted(_TYPES)} in one dimension")
        sum_ = zlib.crc32(_bytes(flat, type_))
        table.append({"name": name, "type": type_, "count": len(flat), "at": at, "sum": sum_})
        at += -(-flat.nbytes // ALIGN) * ALIGN
    header = json.dumps({**keys, "arrays": table, "size": at}, separators=(",", ":")).encode()
    head = _HEAD.pack(kind.magic, kind.version, len(header)) + header
    head += _SUM.pack(zlib.crc32(head))
    file.write(head.ljust(_start(len(header)), b"\0"))
    for row, array in zip(table, arrays.values(), strict=True):
        data = _bytes(np.ascontiguousarray(array), row["type"])
        file.write(data)
        file.write(bytes(-len(data) % ALIGN))


def _bytes(flat: Array, type_: Any) -> memoryview:
    return memoryview(flat.astype(type_, copy=False).view(np.uint8))  # type: ignore[arg-type]


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


def _parse(path: Path, data: bytes | mmap.mmap, keys: Mapping[str, str], kind: Kind) -> dict[str, Array]:
    where = repr(str(path))
    if (begins := data[: len(kind.magic)]) != kind.magic:
        raise StoreError(f"{where} is not a {kind.what}: it begins with {begins!r}, not {kind.magic!r}")
    if len(data) < _HEAD.size:
        raise StoreError(f"{where} is cut off after {len(data)} bytes; {kind.again}")
    _, version, length = _HEAD.unpack(data[: _HEAD.size])
    if version != kind.version:
        raise StoreError(f"{where} has format {version}; this program reads {kind.version}; {kind.again}")
    end = _HEAD.size + length
    if len(data) < end + _SUM.size:
        raise StoreError(f"{where} is cut off in its header; {kind.again}")
    if _SUM.unpack(data[end : end + _SUM.size])[0] != zlib.crc32(data[:end]):
        raise StoreError(f"{where} is damaged in its header; {kind.again}")
    header = json.loads(data[_HEAD.size : end])  # whole and unchanged, so it is what `save` wrote
    for key, mine in keys.items():
        if header[key] != mine:
            raise StoreError(f"{where} was {kind.made} for {key} {header[key]!r}, not {mine!r}; {kind.again}")
    start = _start(length)
    if len(data) != start + header["size"]:
        raise StoreError(f"{where} has {len(data)} bytes of {start + header['size']}; {kind.again}")
    arrays: dict[str, Array] = {}
    for row in header["arrays"]:
        array = np.frombuffer(data, row["type"], row["count"], start + row["at"])
        if zlib.crc32(array.view(np.uint8)) != row["sum"]:  # type: ignore[arg-type]
            raise StoreError(f"{where} is damaged in {row['name']!r}; {kind.again}")
        arrays[row["name"]] = array
    return arrays


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
