"""The one reader of text files."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernel import textfile
from kernel.api import Kernel
from kernel.backends.scripted import ScriptedBackend
from kernel.errors import BuildError, CartridgeError, UsageError
from kernel.textfile import read_lines, read_text, stream_lines, utf8


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"shut\nopener\n", ["shut", "opener"]),
        (b"shut\r\nopener", ["shut", "opener"]),
        (b"\xef\xbb\xbfshut\n", ["shut"]),
        ("a\u2028b\nc\x0bd\x0c\ne\x85f\x1c\n\rg\n".encode(), ["a\u2028b", "c\x0bd\x0c", "e\x85f\x1c", "\rg"]),
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b"\n\n", ["", ""]),
        (b"a\xef\xbb\xbfb\n", ["a\ufeffb"]),
    ],
)
def test_lines_end_at_lf_and_crlf_only(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    """Kind: readers that part files differently. No other character ends a line; a mark at its beginning is dropped."""
    (tmp_path / "file").write_bytes(data)
    assert read_lines(tmp_path / "file") == lines
    if data != b"\xef\xbb\xbf":
        assert list(stream_lines(io.BytesIO(data), "stdin")) == lines


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("a\n".encode("utf-16"), "file:1: it is UTF-16; save the file as UTF-8"),
        (b"\xfe\xff\0a", "file:1: it is UTF-16"),
        ("a\n".encode("utf-32"), "file:1: it is UTF-32"),
        (b"\0\0\xfe\xff\0\0\0a", "file:1: it is UTF-32"),
        (b"a\nb\n\0c", "file:3: it has a NUL byte"),
        ("a\n".encode("utf-16-le"), "file:1: it has a NUL byte"),
        (b"a\nb\xf6c\n", "file:2: byte b'\\xf6' is not UTF-8"),
        (b"a\n\xed\xa0\x80", "file:2: byte b'\\xed' is not UTF-8"),
        (b"ab\n\xe2\x82", "file:2: byte b'\\xe2' is not UTF-8"),
    ],
)
def test_what_is_no_text_is_named_with_its_line(tmp_path: Path, data: bytes, said: str) -> None:
    """Kind: bytes that are not UTF-8. In a file and in a stream alike."""
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(CartridgeError) as error:
        read_text(tmp_path / "file", CartridgeError, "file")
    assert str(error.value).startswith(said)
    with pytest.raises(UsageError) as other:
        list(stream_lines(io.BytesIO(data), "file"))
    assert str(other.value).startswith(said)


def test_files_and_lines_have_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind: memory that the input decides. A line of the most bytes is read, one more is an error, and so of a file."""
    monkeypatch.setattr(textfile, "MAX_LINE", 10)
    monkeypatch.setattr(textfile, "MAX_BYTES", 20)
    assert list(stream_lines(io.BytesIO(b"123456789\n1234567890"), "in")) == ["123456789", "1234567890"]
    with pytest.raises(UsageError, match="in:2: the line has more than"):
        list(stream_lines(io.BytesIO(b"a\n12345678901\n"), "in"))
    (tmp_path / "file").write_bytes(b"x" * 21)
    with pytest.raises(UsageError, match="file' has more than"):
        read_text(tmp_path / "file")
    if Path("/dev/zero").exists():
        with pytest.raises(UsageError, match="has more than"):
            read_text(Path("/dev/zero"))


@pytest.mark.parametrize("name", ["gone", ".", "a\0b", "x" * 300])
def test_a_path_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    """Missing, a folder, no path at all, too long: the type that was asked for, and the path by repr."""
    with pytest.raises(UsageError, match="cannot be read: "):
        read_text(tmp_path / name)


def test_half_a_character_is_no_text(tools: SimpleNamespace) -> None:
    """Kind: lone surrogates, out of a command line, a file name or JSON. Typed, for an opcode and for a prompt."""
    with pytest.raises(BuildError, match=r"'a\\udcff' is no text that UTF-8 can spell: '\\udcff' is half a character"):
        utf8("a\udcff")
    vocabulary = tools.toy_vocabulary()
    row = np.linspace(0, 1, len(vocabulary), dtype=np.float32)
    kernel = Kernel(ScriptedBackend(vocabulary, lambda ids: row))
    with pytest.raises(BuildError, match="half a character"):
        kernel.compile(["a\ud800", "b"])
    with pytest.raises(UsageError, match="half a character"):
        kernel.choose("\udfff", ["a", "b"])
    with pytest.raises(UsageError, match="half a character"):
        kernel.choose("x", ["a", "b"], null="\udfff")
