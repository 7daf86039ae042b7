"""Log files as hostile input: whoever wrote them sets size, depth and bytes; memory is bounded, errors are typed."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dispatch.log.damage import MAX_LINE
from dispatch.log.encoding import DEPTH, ENTRIES, START, decode, seal, unseal
from dispatch.log.reader import CHANGES, LogReader
from dispatch.log.replay import replay
from dispatch.log.report import Verdict
from dispatch.log.writer import LogWriter
from kernel.errors import LogError


def spoil(path: Path, line: int, change: Callable[[bytes], bytes]) -> None:
    """Change the body of one line (from 1) as bytes and compute every checksum again."""
    out, chain = [], START
    for at, old in enumerate(path.read_bytes().splitlines(), 1):
        parts = unseal(old)
        assert parts is not None
        new, chain = seal(change(parts[0]) if at == line else parts[0], chain)
        out.append(new)
    path.write_bytes(b"".join(out))


def with_field(name: str, value: bytes) -> Callable[[bytes], bytes]:
    """Return what puts a field at the end of a line."""
    return lambda body: body[:-1] + b',"' + name.encode() + b'":' + value + b"}"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (with_field("mood", b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1)), "nested too deeply"),
        (with_field("mood", b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
        (with_field("mood", b'{"a":' * 5000 + b"1" + b"}" * 5000), "nested too deeply"),
        (with_field("mood", b"[" + b"0," * ENTRIES + b"0]"), "values in one list"),
        (with_field("mood", b"1e999"), "larger than any number"),
        (with_field("mood", b"9" * 5000), "4300"),
        (with_field("mood", b"Infinity"), "is not JSON"),
        (with_field("state", b'"s0.0"'), "'state' stands there twice"),
        (with_field("mac", b'"short"'), "mac: "),
        (with_field("nonfinite", b'{"/legal/-1/logprob":"nan"}'), "not there"),
        (with_field("nonfinite", b"[1]"), "not there"),
        (lambda body: body.replace(b"now", b"n\xe9\xff"), "utf-8"),
        (lambda body: body.replace(b"now", "門".encode()[:2]), "utf-8"),
        (lambda body: body.decode().encode("utf-16"), "NUL bytes"),
        (lambda body: body.replace(b'"ids":[', b'"ids":["x",' * 1), "ids"),
    ],
)
def test_a_line_that_no_reader_should_take_is_invalid(
    tmp_path: Path, counter: SimpleNamespace, change: Callable[[bytes], bytes], why: str
) -> None:
    """The kind: the checksum is right, and the bytes are no strict JSON of this form. Line and reason are told."""
    path = counter.write(tmp_path / "log")
    spoil(path, 5, change)
    report = replay(path, counter.make)
    assert (report.verdict, report.line, report.decisions) == (Verdict.DAMAGED, 5, 3)
    assert why in report.sentence


@pytest.mark.parametrize(
    "fields",
    [
        {"event": ["header"]},
        {"event": None},
        {"schema": "1"},
        {"schema": 10**30},
        {"cartridges": []},
        {"cartridges": {}},
        {"cartridges": [{"name": "counter", "version": "1"}] * 2},
        {"cartridges": "counter"},
        {"seed": 1.5},
        {"seed": "7"},
        {"started": "yesterday"},
        {"started": "2026-01-02T03:04:05"},
        {"wire": "morse"},
        {"limits": {"pieces": True}},
        {"rule": {"name": "exact", "parameters": [1]}},
        {"model": {"name": "m"}},
        {"player": 3},
        {"versions": {"a": 1}},
        {"keyed": "00"},
        {"keyed": 7},
    ],
    ids=json.dumps,
)
def test_a_header_of_another_kind_is_a_typed_error(
    tmp_path: Path, counter: SimpleNamespace, fields: dict[str, Any]
) -> None:
    """By the field, before any cartridge is made."""
    path = counter.write(tmp_path / "log")
    counter.forge(path, 1, **fields)
    with pytest.raises(LogError, match="line 1"):
        LogReader(path)


def test_a_seed_that_an_engine_cannot_start_from_is_a_difference(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The kind: an engine chokes on a number from a file."""

    class Picky(counter.engine):  # type: ignore[misc, name-defined]
        """Takes seeds from 0 on."""

        def reset(self, seed: int) -> None:
            """Fail below."""
            if seed < 0:
                raise ValueError("seed must be non-negative")
            super().reset(seed)

    path = counter.write(tmp_path / "log")
    counter.forge(path, 1, seed=-(10**30))
    report = replay(path, lambda record: dataclasses.replace(counter.make(record), engine=Picky))
    assert (report.verdict, report.line) == (Verdict.DIFFERENT, 1)
    assert "seed must be non-negative" in report.sentence


def test_very_many_small_lines_are_read_in_little_memory(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Blank ones, and junk behind the damage; with right checksums, events that nobody knows."""
    path = counter.write(tmp_path / "log", decisions=3, end=False)
    good = path.read_bytes()
    end = unseal(good.splitlines()[-1])
    assert end is not None
    chain, strange = end[1], []
    for _ in range(1000):
        line, chain = seal(b'{"event":"x"}', chain)
        strange.append(line)
    for tail, line in [(b"\n" * 100_000, None), (b"{}\n" * 50_000, 5), (b"".join(strange), None)]:
        path.write_bytes(good + tail)
        tracemalloc.start()
        try:
            report = replay(path, counter.make)
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
        assert (report.decisions, report.line) == (3, line)
        assert len(report.notes) <= 20


def test_more_cartridges_than_can_join_between_two_decisions_are_invalid(
    tmp_path: Path, counter: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kind: a list in memory grows with the file. None is dropped in silence."""
    assert CHANGES == 10_000
    monkeypatch.setattr("dispatch.log.reader.CHANGES", 4)
    path = counter.write(tmp_path / "log", decisions=2, end=False)
    end = unseal(path.read_bytes().splitlines()[-1])
    assert end is not None
    chain, out, ends = end[1], [], []
    for n in range(3):
        for body in (
            {"event": "joined", "n": 2, "cartridge": {"name": f"c{n}", "version": "1"}},
            {"event": "left", "n": 2, "cartridge": f"c{n}"},
        ):
            line, chain = seal(json.dumps(body, separators=(",", ":")).encode(), chain)
            out.append(line)
            ends.append(seal(b'{"event":"outcome","decisions":2,"ending":"limit","detail":"","summary":{}}', chain)[0])
    played = path.read_bytes()
    path.write_bytes(played + b"".join(out[:4]) + ends[3])
    with LogReader(path) as reader:
        assert sum(1 for _ in reader) == 2
        assert reader.damage is None, "as many as are allowed"
        assert reader.outcome is not None
    path.write_bytes(played + b"".join(out))
    with LogReader(path) as reader:
        assert sum(1 for _ in reader) == 2
        assert reader.damage is not None
        assert (reader.damage.line, "more than 4 joins" in reader.damage.detail) == (8, True)


def test_a_line_that_no_reader_would_take_is_not_written(tmp_path: Path, counter: SimpleNamespace) -> None:
    """It ends the session like a full disk, and what was written before is whole."""
    engine = counter.engine()
    engine.reset(7)
    with LogWriter(tmp_path / "log", counter.header()) as log:
        log.decision(counter.decision(1, engine, 1))
        long = counter.decision(2, engine, 1).model_copy(update={"result": "x" * MAX_LINE})
        with pytest.raises(LogError, match=f"over {MAX_LINE}"):
            log.decision(long)
    report = replay(tmp_path / "log", counter.make)
    assert (report.verdict, report.decisions) == (Verdict.UNFINISHED, 1)


def test_nesting_up_to_the_limit_is_read() -> None:
    """One level less than what is refused."""
    inside = DEPTH - 1
    assert decode(b'{"a":' + b"[" * inside + b"]" * inside + b"}")
