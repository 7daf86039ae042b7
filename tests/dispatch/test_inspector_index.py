"""The index over a log: what it finds at a glance is what the lines say, at any place, while the file grows."""

from __future__ import annotations

import math
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dispatch.inspector.columns import Columns, Filter
from dispatch.inspector.index import LogIndex
from dispatch.inspector.keeper import Keeper
from dispatch.inspector.lines import CLOSED, FAILED, LEDGER, LOW, REFUSED, REQUEST, TOP, WISH, Glance, glance, of_record
from dispatch.inspector.prompts import prompts_of
from dispatch.inspector.quick import QuickColumns
from dispatch.log.encoding import encode, seal, unseal
from dispatch.log.objects import Delta, InstructionRecord, LedgerStep, TokenRow
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Outcome
from dispatch.log.writer import LogWriter
from kernel.errors import LogError
from tests.dispatch.test_replay_decide import played

HOSTILE = '\\","margin":9,"</script><img src=x onerror=alert(1)>\u202e\x00\ud800{[' + "x" * 100_000


def hostile_record(n: int = 1, **fields: object) -> DecisionRecord:
    """A decision whose every text is hostile, and whose arguments have the names of its own fields."""
    steps = (
        LedgerStep(at=0, legal=2, mass=0.5, rows=(TokenRow.of(7, b'{"legal":true}', -0.1, legal=False),
                                                 TokenRow.of(1, HOSTILE.encode("utf-8", "replace"), -0.7, legal=True))),
    )  # fmt: skip
    known: dict[str, object] = {
        "cartridge": f"c{HOSTILE}",
        "instruction": InstructionRecord(cartridge="c", method="m", arguments={"text": HOSTILE}),
        "text": HOSTILE,
        "ids": (1,),
        "state": HOSTILE,
        "result": HOSTILE,
        "refused": True,
        "failed": HOSTILE,
        "request": HOSTILE,
        "prompt": Delta(keep=3, new=(1, 2)),
        "rule": "exact",
        "margin": 0.25,
        "preferred": HOSTILE,
        "preferred_by": 0.75,
        "stop": "closed",
        "model_ms": 2.5,
        "planner_ms": 0.5,
        "at_ms": 12.5,
        "ledger": steps,
    }
    return DecisionRecord.model_validate({"n": n, **known, **fields})


def hostile_log(path: Path, like: Path, decisions: int = 2) -> Path:
    """Write a log of such decisions behind the header of another one."""
    parts = unseal(like.read_bytes().splitlines()[0])
    assert parts is not None
    first, chain = seal(parts[0], "")
    lines = [first]
    for n in range(1, decisions + 1):
        line, chain = seal(encode(hostile_record(n, prompt=None)), chain)
        lines.append(line)
    path.write_bytes(b"".join(lines))
    return path


def line_of(record: DecisionRecord) -> bytes:
    return seal(encode(record), "")[0]


def test_a_glance_sees_what_stands_in_the_line_among_hostile_texts() -> None:
    """Every value by hand; no text that looks like a field is taken for one."""
    flags = REFUSED | FAILED | REQUEST | CLOSED | TOP | WISH | LOW | LEDGER
    expected = Glance(1, f"c{HOSTILE}", 0.25, 3.0, 12.5, flags, None, 3)
    assert of_record(hostile_record()) == expected
    assert glance(line_of(hostile_record())) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"margin": math.inf, "stop": "forced", "ledger": None},
        {"margin": None, "planner_ms": None, "model_ms": None, "stop": None, "preferred": None, "preferred_by": None},
        {"margin": 1e-7, "refused": False, "failed": None, "request": None, "prompt": None, "at_ms": None},
        {"margin": -0.0, "preferred_by": 0.25, "outcome": "not legal"},
    ],
)
def test_a_glance_and_the_record_say_the_same(fields: dict[str, object]) -> None:
    """With fields that are missing, not finite, zero, or of a later version."""
    record = hostile_record(**fields)
    seen, known = glance(line_of(record)), of_record(record)
    assert seen is not None
    for name in Glance._fields:
        assert repr(getattr(seen, name)) == repr(getattr(known, name)), name


def test_what_is_no_decision_is_not_seen() -> None:
    """Other lines, an unknown order of fields, bytes."""
    for line in (b"", b"\n", b'{"event":"outcome","decisions":3}', b'{"n":1,"event":"decision"}', bytes(range(256))):
        assert glance(line) is None


@pytest.fixture(params=["", ".gz"])
def log(request: pytest.FixtureRequest, tmp_path: Path, counter: SimpleNamespace) -> Path:
    """Forty decisions of a scripted model, with null prompts, plain and compressed."""
    return played(tmp_path / f"log{request.param}", counter)


def test_every_decision_is_found_at_its_place(log: Path) -> None:
    """Against a reader that goes from line to line: records, columns, prompts."""
    index = LogIndex(log)
    assert index.read()
    prompts = Prompts()
    with LogReader(log) as reader:
        for record in reader:
            assert index.record(record.n) == record
            assert glance(index.line(record.n)) == of_record(record)
            assert prompts_of(index, record.n) == prompts.take(record)
        assert index.outcome == reader.outcome
    assert index.columns.count == 40
    assert index.columns["margin"][4] == np.float32(index.record(5).margin or 0)
    with pytest.raises(LogError, match="no decision 41"):
        index.line(41)
    index.close()


def test_a_compressed_log_is_checked_as_a_plain_one(log: Path, counter: SimpleNamespace) -> None:
    """The engines run, and the verdict is that of replay."""
    keeper = Keeper(log, counter.make)
    kept = keeper.finish()
    told = kept.check.told()
    assert (told["state"], told["decisions"], told["engines"]) == ("verified", 40, True)
    assert kept.check.engines(17) is not None
    keeper.close()


def test_prompts_that_keep_ever_less_are_put_together_from_few_lines(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A prompt whose beginning stands in the first line of a thousand, read from three lines."""
    engine = counter.engine()
    engine.reset(7)
    told = [[1, 2, 3, 4, 5, 6], *([1, 2, 3, 4, 50 + n % 2, n] for n in range(990)), [1, 2, 9], [1, 2, 9, 8]]
    with LogWriter(tmp_path / "log", counter.header()) as log:
        for n, ids in enumerate(told, 1):
            log.decision(counter.decision(n, engine, 1), prompt=ids)
    index = LogIndex(tmp_path / "log")
    index.read()
    read: list[int] = []
    record = index.record
    index.record = lambda n: (read.append(n), record(n))[1]  # type: ignore[method-assign]
    found = prompts_of(index, 992)
    assert found is not None
    assert found.main == (1, 2, 9)
    assert read == [992, 1]
    read.clear()
    assert prompts_of(index, 991).main == tuple(told[990])  # type: ignore[union-attr]
    assert read == [991, 1]
    index.close()


def test_prompts_that_contradict_each_other_are_an_error(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The first decision keeps what stands nowhere; the second keeps more than the first has."""
    path = counter.write(tmp_path / "log", 3)
    counter.forge(path, 2, prompt={"keep": 5, "new": [1]})
    counter.forge(path, 3, prompt={"keep": 99, "new": []})
    index = LogIndex(path)
    index.read()
    for n in (1, 2):
        with pytest.raises(LogError, match="keeps"):
            prompts_of(index, n)
    index.close()


def test_a_jump_in_a_log_of_five_thousand_reads_one_line(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The index is used while it grows, in slices; a decision costs its own bytes, wherever it stands."""
    header = counter.write(tmp_path / "log", 1).read_bytes().splitlines(keepends=True)[0]
    chain = header[-35:-3].decode()
    lines = [header]
    for n in range(1, 5001):
        body = encode(counter.decision(n, counter.engine(), 1)).replace(b'"n":1,', b'"n":%d,' % n, 1)
        line, chain = seal(body, chain)
        lines.append(line)
    (tmp_path / "log").write_bytes(b"".join(lines))
    index = LogIndex(tmp_path / "log")
    counts = []
    while not index.read(0.0):
        counts.append(index.columns.count)
        assert index.record(counts[-1]).n == counts[-1]
    assert 0 < counts[0] < 5000, "it is used before it is whole"
    assert index.columns.count == 5000
    read: list[int] = []
    plain = index.source.read
    index.source.read = lambda at, length: (read.append(length), plain(at, length))[1]  # type: ignore[method-assign]
    for n in (1, 2500, 5000):
        assert index.record(n).n == n
        assert read.pop() == len(lines[n])
    assert read == []
    index.close()


def test_a_growing_log_is_read_on_line_by_line(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Half a line is left until its end is there."""
    whole = counter.write(tmp_path / "whole", 12).read_bytes()
    lines = whole.splitlines(keepends=True)
    path = tmp_path / "log"
    path.write_bytes(lines[0] + lines[1] + lines[2][:40])
    index = LogIndex(path)
    assert index.read()
    assert (index.columns.count, index.outcome) == (1, None)
    with path.open("ab") as out:
        out.write(lines[2][40:] + b"".join(lines[3:]))
    assert index.read()
    assert index.columns.count == 12
    assert index.outcome is not None
    index.close()


def test_a_line_that_cannot_stand_there_ends_the_index(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A repeated decision, foreign text, a second outcome: what is above stays."""
    lines = counter.write(tmp_path / "log", 5).read_bytes().splitlines(keepends=True)
    for spoiled in (b"".join([*lines[:4], lines[3], *lines[4:]]), b"".join(lines[:4]) + b"hello\n", b"".join(lines * 1)
                    + lines[-1]):  # fmt: skip
        (tmp_path / "bad").write_bytes(spoiled)
        index = LogIndex(tmp_path / "bad")
        assert index.read()
        assert index.stopped is not None
        assert index.columns.count in (3, 5)
        assert index.record(3).n == 3
        index.close()


BOTH = pytest.mark.parametrize("kind", [Columns, QuickColumns], ids=["plain", "numpy"])


def filled(kind: type[Columns], margins: list[float]) -> Columns:
    columns = kind()
    columns.extend(
        [Glance(n, "c", m, float(n), 0.0, n, None, 0) for n, m in enumerate(margins, 1)], [(0, 1)] * len(margins)
    )
    return columns


@BOTH
def test_the_least_confident_come_in_the_order_of_margins(kind: type[Columns]) -> None:
    """By hand: ties by number, what has no margin or no rival is left out."""
    columns = filled(kind, [0.5, math.nan, 0.25, math.inf, 0.25, 1.0])
    order, after = [], None
    while (found := columns.least(after)) is not None:
        order.append(found)
        after = found[0]
    assert order == [(3, 0.25, 1), (5, 0.25, 2), (1, 0.5, 3), (6, 1.0, 4)]
    assert columns.least(2) == (3, 0.25, 1), "behind one that is in no order it begins anew"


@BOTH
def test_filters_hold_together(kind: type[Columns]) -> None:
    """Each alone and two at once, by hand."""
    columns = filled(kind, [0.5, 0.1, 2.0, math.inf])
    assert list(columns.select(Filter(margin_below=1.0))) == [1, 2]
    assert list(columns.select(Filter(ms_above=2.0))) == [3, 4]
    assert list(columns.select(Filter(flags=2))) == [2, 3], "numbers 2 and 3 have the second bit"
    assert list(columns.select(Filter(margin_below=1.0, flags=2))) == [2]
    assert list(columns.select(Filter(cartridge="c"))) == [1, 2, 3, 4]
    assert list(columns.select(Filter(cartridge="d"))) == []
    assert list(columns.select(Filter(outcome="none"))) == []


@BOTH
def test_the_strip_is_columns_behind_a_head(kind: type[Columns]) -> None:
    """Taken apart byte by byte."""
    columns = filled(kind, [0.5, math.nan, 2.0])
    data = columns.strip(7, 2, complete=True)
    assert struct.unpack("<8I", data[:32]) == (0x5254534B, 1, 7, 2, 2, 3, 1, 0)
    assert len(data) == 32 + 2 * (4 + 4 + 4 + 2 + 1 + 1)
    margins, ms, _, flags = (
        np.frombuffer(data, kind, 2, at) for kind, at in (("<f4", 32), ("<f4", 40), ("<f4", 48), ("<u2", 56))
    )
    assert math.isnan(margins[0])
    assert (margins[1], ms.tolist(), flags.tolist()) == (2.0, [2.0, 3.0], [2, 3])
    assert data[60:] == bytes([0, 0, 0, 0])
    assert columns.told(2, 10)["margin"] == ["nan", 2.0]


def wait_for(what: Callable[[], bool], seconds: float = 10.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.005)


def test_a_keeper_follows_checks_and_begins_anew(tmp_path: Path, counter: SimpleNamespace) -> None:
    """A log grows, ends, and is written anew with other decisions: a new generation."""
    lines = counter.write(tmp_path / "whole", 8).read_bytes().splitlines(keepends=True)
    path = tmp_path / "log"
    path.write_bytes(b"".join(lines[:4]))
    keeper = Keeper(path, counter.make)
    keeper.start()
    try:
        wait_for(lambda: keeper.kept.check.decisions == 3)
        wait_for(lambda: keeper.kept.check.told()["state"] == "unfinished")
        with path.open("ab") as out:
            out.write(b"".join(lines[4:]))
        keeper.poke()
        wait_for(lambda: keeper.kept.check.told()["state"] == "verified")
        told = keeper.kept.check.told()
        assert (told["decisions"], told["engines"]) == (8, True)
        assert told["sentence"].startswith("verified: 8 whole decisions verify to the end")
        other = counter.write(tmp_path / "other", 3, seed=5)
        os.replace(other, path)
        keeper.poke()
        wait_for(lambda: keeper.kept.generation == 2 and keeper.kept.check.told()["state"] == "verified")
        assert keeper.kept.index.columns.count == 3
    finally:
        keeper.close()


def test_a_session_that_goes_on_behind_its_outcome_is_read_anew(tmp_path: Path, counter: SimpleNamespace) -> None:
    """As --resume does it: the outcome is cut off, more decisions follow, and the file is longer than before."""
    path = counter.write(tmp_path / "log", 4)
    keeper = Keeper(path, counter.make)
    keeper.start()
    try:
        wait_for(lambda: keeper.kept.check.told()["state"] == "verified")
        longer = counter.write(tmp_path / "longer", 9).read_bytes()
        with path.open("r+b") as out:
            out.write(longer)
        keeper.poke()
        wait_for(lambda: keeper.kept.generation == 2 and keeper.kept.check.decisions == 9)
    finally:
        keeper.close()


@pytest.mark.parametrize(
    ("spoil", "state", "holds"),
    [
        (lambda lines: [*lines[:3], lines[3].replace(b"now", b"NOW"), *lines[4:]], "damaged", 2),
        (lambda lines: [*lines[:5], lines[5][:30]], "damaged", 4),
        (lambda lines: lines[:5], "unfinished", 4),
    ],
)
def test_what_is_broken_is_told_with_the_decision(
    spoil: Callable[[list[bytes]], list[bytes]], state: str, holds: int, tmp_path: Path, counter: SimpleNamespace
) -> None:
    """A changed line, a cut one, a missing outcome."""
    path = counter.write(tmp_path / "log", 8)
    path.write_bytes(b"".join(spoil(path.read_bytes().splitlines(keepends=True))))
    keeper = Keeper(path, counter.make)
    kept = keeper.finish()
    told = kept.check.told()
    assert (told["state"], told["decisions"]) == (state, holds), told["sentence"]
    assert f"{holds} whole decisions verify" in told["sentence"]
    keeper.close()


def test_an_engine_that_disagrees_is_told(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The checksums fit, the state does not: as replay says it."""
    path = counter.write(tmp_path / "log", 8)
    counter.forge(path, 4, state="s0.0")
    keeper = Keeper(path, counter.make)
    told = keeper.finish().check.told()
    assert (told["state"], told["decisions"]) == ("different", 2)
    assert "decision 3" in told["sentence"] or "step 3" in told["sentence"], told["sentence"]
    keeper.close()


def test_values_at_a_glance_are_put_right_by_what_is_checked(tmp_path: Path, counter: SimpleNamespace) -> None:
    """An argument named as a field of the decision misleads the glance, not the record."""
    index = LogIndex(counter.write(tmp_path / "log", 3))
    index.read()
    index.columns.correct([_all(glance(index.line(2)))._replace(margin=4.0)])
    assert index.columns["margin"].tolist()[1] == 4.0
    index.columns.correct([_all(glance(index.line(2)))._replace(n=9)])
    assert index.columns.count == 3
    index.close()


def _all(found: Glance | None) -> Glance:
    assert found is not None
    return found


def test_an_outcome_is_kept_and_nothing_follows(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The last line of a log, as the reader has it."""
    index = LogIndex(counter.write(tmp_path / "log", 2))
    index.read()
    assert isinstance(index.outcome, Outcome)
    assert index.outcome.ending is Ending.LIMIT
    index.close()
