"""A GGUF file's vocabulary is read before llama.cpp reads it, which aborts where a file contradicts itself.

The kinds of fault: an assertion of the runtime on data that could have been read; a token before each prompt that comes
from a default of the runtime and not from the file.
"""

from __future__ import annotations

import logging
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest

from kernel.backends.gguf import TOKENS, check_vocabulary, read_metadata, stated_ids
from kernel.backends.llama_cpp import read_vocabulary
from kernel.errors import ModelError
from kernel.prompt import Part

SYMBOLS = [chr(b) if 33 <= b < 127 else chr(256 + b) for b in range(256)]
BEGIN, END = 257, 258
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a vocabulary-only file: 256 bytes, `ab`, two control tokens; keys and token texts as given."""

    def file(replaced: dict[int, str] | None = None, **keys: Any) -> Path:
        tokens = [*SYMBOLS, "ab", "<begin>", "<end>"]
        for number, text in (replaced or {}).items():
            tokens[number] = text
        out = gguf.GGUFWriter(tmp_path / "made.gguf", "llama")
        out.add_tokenizer_model("gpt2")
        out.add_tokenizer_pre("gpt-2")
        out.add_token_list(tokens)
        out.add_token_merges(["a b"])
        out.add_token_types(keys.pop("types", [1] * 257 + [3] * 2))
        for key, value in keys.items():
            add = out.add_bool if isinstance(value, bool) else out.add_uint32
            add(f"tokenizer.ggml.{key}", value)
        out.write_header_to_file()
        out.write_kv_data_to_file()
        out.close()
        return tmp_path / "made.gguf"

    return file


def test_all_metadata_is_read(vocab_ggufs: dict[str, Path], write: Write) -> None:
    """As the package `gguf` reads it, from a small file; and the number of tokens of real ones."""
    path = write(bos_token_id=BEGIN, add_bos_token=True)
    found = read_metadata(path)
    assert {key: found[key] for key in found if key.startswith("tokenizer.ggml.") and "token_id" in key} == {
        "tokenizer.ggml.bos_token_id": BEGIN
    }
    assert found["general.architecture"] == "llama"
    reader = gguf.GGUFReader(path)
    assert [token.decode() for token in found[TOKENS]] == reader.fields[TOKENS].contents()
    assert list(found["tokenizer.ggml.token_type"]) == reader.fields["tokenizer.ggml.token_type"].contents()
    assert len(read_metadata(vocab_ggufs["gpt-2"])[TOKENS]) == 50257
    assert stated_ids(read_metadata(vocab_ggufs["llama-spm"])) == {0, 1, 2}


@pytest.mark.parametrize("command", [["choose", "-p", "x", "-o", "a", "-o", "b"], ["inspect", "home"]])
def test_two_tokens_of_one_text_are_refused_before_the_load(write: Write, command: list[str]) -> None:
    """Text and both ids, in one line; without the check llama.cpp asserts and the process ends with 134."""
    path = write({200: SYMBOLS[199]})
    done = subprocess.run(
        [sys.executable, "-m", "kernel", command[0], "-m", str(path), *command[1:]], capture_output=True, text=True
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert f"the tokens 199 and 200 have one text, {SYMBOLS[199]!r}" in line


def test_arrays_of_another_length_are_refused(write: Write) -> None:
    """A type for each token, or the file contradicts itself."""
    path = write(types=[1] * 100)
    with pytest.raises(ModelError, match=r"'tokenizer.ggml.token_type' has 100 entries for 259 tokens"):
        check_vocabulary(path, read_metadata(path))


@pytest.mark.parametrize(
    ("keys", "before", "warned"),
    [
        ({}, [], False),
        ({"bos_token_id": BEGIN}, [], False),
        ({"bos_token_id": BEGIN, "add_bos_token": True}, [BEGIN], False),
        ({"bos_token_id": BEGIN, "add_bos_token": False}, [], False),
        ({"add_bos_token": True}, [], True),
        ({"add_bos_token": True, "eos_token_id": END}, [], True),
        ({"bos_token_id": 70_000, "add_bos_token": True}, [], True),
    ],
)
def test_only_a_token_that_the_file_names_stands_before_a_prompt(
    write: Write, caplog: pytest.LogCaptureFixture, keys: dict[str, Any], before: list[int], warned: bool
) -> None:
    """The begin token stated or not, asked for or not, out of range: `ab` is one token, worked out by hand."""
    with caplog.at_level(logging.WARNING):
        vocabulary = read_vocabulary(write(**keys))
    assert vocabulary.prompt([Part("ab")]) == [*before, 256]
    assert [r.levelname for r in caplog.records] == ["WARNING"] * warned
    if warned:
        assert "which the file does not name as special" in caplog.text


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:2000], "cut off or damaged"),
        (lambda data: data[:16], "cut off or damaged"),
        (lambda data: data[:4] + struct.pack("<I", 9) + data[8:], "GGUF version 9"),
        (lambda data: data[:16] + struct.pack("<Q", 1 << 60) + data[24:], "more than the file holds"),
        (lambda data: b"PK\x03\x04" + data[4:], "is not a GGUF file"),
        (lambda data: b"", "is not a GGUF file"),
    ],
)
def test_a_damaged_file_is_a_sentence(write: Write, damage: Callable[[bytes], bytes], message: str) -> None:
    """Cut off, of another version, with a count that no file could hold, or no GGUF file at all."""
    path = write()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match=message):
        read_vocabulary(path)
