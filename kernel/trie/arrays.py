"""Named arrays in one file behind a JSON header, read by mapping the file into memory.

    offset 0   magic, 8 bytes | format version, uint32 | length of the header, uint32
           16  header, JSON: {"tokenizer": "b2:..", .., "arrays": [{"name", "type", "count", "at", "sum"}, ..], "size"}
               checksum of all bytes so far, uint32 (CRC-32)
               zeros up to the next multiple of 64
               the arrays, little-endian, each at a multiple of 64; "at" counts from the first one, "sum" is its CRC-32

The keys in front of "arrays" say what the arrays were made for. A file that is foreign, cut off, damaged, or made for
other keys is refused with a StoreError; nothing in it is unpickled or executed.

A writer fills a temporary file and renames it, so a reader finds the old file or the new one, never a part. Beside the
temporary file stands a lock file that the writer holds. The next writer in the folder takes a lock that nobody holds as
the sign that its writer was killed, and removes both files.

    x.trie                          the file that readers open
    .x.trie.0f3a90c2d1b45e67.tmp    what a writer has written so far
    .x.trie.0f3a90c2d1b45e67.lock   held by that writer
"""

from __future__ import annotations

import contextlib
import io
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
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from kernel.errors import StoreError

if TYPE_CHECKING:  # it imports asyncio, which reading need not wait for
    from filelock import FileLock

ALIGN = 64
_HEAD = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_TYPES = frozenset({"<i4", "<i8", "<f8", "|u1"})
_LOCK = re.compile(r"\..+\.[0-9a-f]{16}\.lock")

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


def write_arrays(path: Path, arrays: Mapping[str, Array], keys: Mapping[str, str], kind: Kind) -> None:
    """Write arrays so that `read_arrays` gives them back.

    Args:
        arrays: by name: int32, int64, float64 or uint8, one-dimensional.
        keys: what they depend on; `read_arrays` has to be given the same.
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


def packed(arrays: Mapping[str, Array], keys: Mapping[str, str], kind: Kind) -> bytes:
    """Return the bytes of a file of arrays, for those who send it and do not keep it."""
    out = io.BytesIO()
    _write(out, arrays, keys, kind)
    return out.getvalue()


def read_arrays(path: Path, keys: Mapping[str, str], kind: Kind) -> dict[str, Array]:
    """Map the arrays of a file; they are read-only views of it.

    Raises:
        FileNotFoundError: there is no such file.
        StoreError: it is not exactly what `write_arrays` wrote for these keys.
    """
    try:
        return _parse(path, _map(path), keys, kind)
    except (KeyError, TypeError, ValueError) as error:  # the sums agree, yet the content is not ours
        raise StoreError(f"{str(path)!r} is not a {kind.what} of this program: {error!r}") from error


def keep_last(folder: Path, pattern: str, count: int) -> None:
    """Remove all but the last written files of a name pattern.

    Whoever has one of them mapped keeps it; Windows refuses to remove it then, and it stays for the next time.
    """
    files = sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime)
    for old in files[:-count]:
        with contextlib.suppress(OSError):
            old.unlink()


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
    header = json.loads(data[_HEAD.size : end])  # whole and unchanged, so it is what `_write` wrote
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
    lock, temporary = _reserve(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
        _give_up(lock)
    if os.name != "nt":  # Windows opens no folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _reserve(path: Path) -> tuple[FileLock, Path]:
    """Return a held lock of its own for a writer of `path`, and the name of the temporary file that goes with it."""
    from filelock import FileLock

    while True:
        lock = FileLock(path.with_name(f".{path.name}.{secrets.token_hex(8)}.lock"))
        lock.acquire()
        if Path(lock.lock_file).exists():  # else another writer took it for a leftover before it was held
            return lock, Path(lock.lock_file).with_suffix(".tmp")
        lock.release()


def _give_up(lock: FileLock) -> None:
    """Release a lock and remove its file."""
    lock.release()
    with contextlib.suppress(OSError):  # another writer has just opened it, which Windows minds, or has removed it
        os.unlink(lock.lock_file)


def _remove_leftovers(folder: Path) -> None:
    """Remove the files of writers that are gone: those that nobody holds the lock of."""
    from filelock import FileLock

    for left in folder.glob(".*.lock"):
        if not _LOCK.fullmatch(left.name):
            continue
        lock = FileLock(left)
        with contextlib.suppress(OSError):  # it is held, or gone
            lock.acquire(timeout=0)
            left.with_suffix(".tmp").unlink(missing_ok=True)
            _give_up(lock)
