"""Compressed logs read like plain ones, cut or broken ones up to the break."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from dispatch.log.compression import compressor
from dispatch.log.damage import MAX_LINE
from dispatch.log.reader import LogReader
from dispatch.log.records import Ending, Outcome
from dispatch.log.replay import Verdict, replay
from dispatch.log.writer import LogWriter
from kernel.errors import LogError


def has_zstd() -> bool:
    """Whether a zstd module is there."""
    from dispatch.log.compression import zstd

    try:
        zstd(Path("x"))
    except LogError:
        return False
    return True


SUFFIXES = ["gz", pytest.param("zst", marks=pytest.mark.skipif(not has_zstd(), reason="needs a zstd module"))]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_compressed_log_verifies_and_is_smaller(tmp_path: Path, counter: SimpleNamespace, suffix: str) -> None:
    """The same lines as the plain file, in fewer bytes."""
    plain = counter.write(tmp_path / "log.jsonl", decisions=200)
    compressed = counter.write(tmp_path / f"log.jsonl.{suffix}", decisions=200)
    assert replay(compressed, counter.make).sentence == replay(plain, counter.make).sentence
    with LogReader(plain) as one, LogReader(compressed) as other:
        assert list(one) == list(other)
    assert compressed.stat().st_size < plain.stat().st_size / 2


def test_ordinary_gunzip_reads_a_whole_compressed_log(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Other tools see one proper stream with its end mark and checksum."""
    plain = counter.write(tmp_path / "log.jsonl")
    assert gzip.decompress(counter.write(tmp_path / "log.gz").read_bytes()) == plain.read_bytes()


def test_several_gzip_streams_are_read_as_one(tmp_path: Path, counter: SimpleNamespace) -> None:
    """As `cat a.gz b.gz` makes them; the suffix does not matter for reading."""
    data = counter.write(tmp_path / "log.jsonl").read_bytes()
    path = tmp_path / "joined.jsonl"
    path.write_bytes(b"".join(gzip.compress(data[at : at + 700]) for at in range(0, len(data), 700)))
    assert replay(path, counter.make).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_compressed_log_that_was_not_ended_holds_every_line(
    tmp_path: Path, counter: SimpleNamespace, suffix: str
) -> None:
    """What a killed session leaves: each line is there as soon as it was written."""
    path, engine = tmp_path / f"log.{suffix}", counter.engine()
    engine.reset(7)
    with LogWriter(path, counter.header()) as log:
        for n in range(1, 5):
            log.decision(counter.decision(n, engine, 1))
            assert replay(path, counter.make).decisions == n


def test_a_compressed_log_cut_anywhere_reads_up_to_the_cut(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Never more than was left, never an error from the decompressor; decisions grow with the length."""
    path = counter.write(tmp_path / "log.gz", decisions=8)
    data, counts = path.read_bytes(), []
    for length in range(0, len(data), 3):
        path.write_bytes(data[:length])
        try:
            report = replay(path, counter.make)
        except LogError:
            counts.append(-1)
        else:
            assert report.verdict in (Verdict.UNFINISHED, Verdict.DAMAGED, Verdict.VERIFIED)
            counts.append(report.decisions)
    assert counts == sorted(counts)
    assert counts[0] == -1
    assert set(counts) == set(range(-1, 9))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_compressed_log_broken_anywhere_never_verifies_what_was_not_written(
    tmp_path: Path, counter: SimpleNamespace, suffix: str
) -> None:
    """300 flipped bits: each decision that is given out is one that was written, and none before the flip is lost."""
    path, ends = tmp_path / f"log.{suffix}", []
    engine = counter.engine()
    engine.reset(7)
    with LogWriter(path, counter.header()) as log:
        for n in range(1, 21):
            log.decision(counter.decision(n, engine, 1))
            ends.append(path.stat().st_size)
        log.outcome(Outcome(decisions=20, ending=Ending.LIMIT))
    with LogReader(path) as reader:
        written, outcome = list(reader), reader.outcome
    data = path.read_bytes()
    for seed in range(300):
        rng = random.Random(seed)
        broken = bytearray(data)
        at = rng.randrange(len(data))
        broken[at] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        try:
            with LogReader(path) as reader:
                found = list(reader)
                whole = reader.damage is None and reader.outcome is not None
        except LogError:
            assert at < ends[0]
            continue
        assert found == written[: len(found)]
        assert len(found) >= sum(end <= at for end in ends)
        if whole:
            assert (found, reader.outcome) == (written, outcome)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_small_file_that_stands_for_a_large_one_does_not_fill_the_memory(tmp_path: Path, suffix: str) -> None:
    """The kind: what is read is bounded by a file's size. 200 MiB of nothing in some 200 kB."""
    path = tmp_path / f"log.{suffix}"
    compress = compressor(path)
    with path.open("wb") as file:
        for _ in range(200):
            file.write(compress(bytes(1 << 20), False))
        file.write(compress(b"", True))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(LogError, match="line 1 is no header"):
            LogReader(path)
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_LINE
    finally:
        tracemalloc.stop()


def test_broken_compression_is_named(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Garbage inside the stream: the line where it ends and the decompressor's reason."""
    path, lines = tmp_path / "log.gz", counter.write(tmp_path / "log.jsonl").read_bytes().splitlines(keepends=True)
    good = zlib.compressobj(wbits=31)
    path.write_bytes(good.compress(b"".join(lines[:4])) + good.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 100)
    report = replay(path, counter.make)
    assert (report.verdict, report.decisions) == (Verdict.DAMAGED, 3)
    assert "line 5 (decision 4): changed: the compressed data is broken" in report.sentence


def test_a_missing_zstd_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Package and extra stand in the error."""
    for name in ("compression", "backports"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    (tmp_path / "log.zst").write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(LogError, match=r"log\.zst' is compressed .* pip install 'cartridge-kernel\[zstd\]'"):
        LogReader(tmp_path / "log.zst")
