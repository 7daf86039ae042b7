"""A session that was broken off goes on from its last whole line, to the state that it would have come to."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from dispatch.log.compression import open_log
from dispatch.log.objects import InstructionRecord
from dispatch.log.prompts import Prompts
from dispatch.log.reader import LogReader
from dispatch.log.records import DecisionRecord, Ending, Outcome, Resumed
from dispatch.log.redact import Redactor
from dispatch.log.replay import Verdict, replay
from dispatch.log.resume import Resumption, resume
from dispatch.log.writer import LogWriter
from kernel.errors import LogError, UsageError
from kernel.opcode import HALT_INSTRUCTION

DECISIONS = 30


def go_on(path: Path, counter: SimpleNamespace, found: Resumption) -> str:
    """Play what `counter.write` plays, from where the log stands; return the last state hash."""
    rng, engine = random.Random(7), counter.engine()
    engine.reset(7)
    choices = []
    for _ in range(DECISIONS):
        choices.append(rng.choice(engine.legal()).args["by"])
        engine.apply(counter.add(choices[-1]))
    engine = found.engines["counter"]
    with found.writer as log:
        for n in range(log.n + 1, DECISIONS + 1):
            log.decision(counter.decision(n, engine, choices[n - 1]), prompt=range(n % 5, 20 + n))
        summary = {"counter": dict(engine.summary())}
        log.outcome(Outcome(decisions=DECISIONS, ending=Ending.LIMIT, summary=summary))
    return str(engine.state_hash())


def essence(path: Path) -> list[tuple[object, ...]]:
    """Return what each decision did and read."""
    fold = Prompts()
    with LogReader(path) as reader:
        found = [(r.n, r.instruction, r.state, r.text, fold.take(r)) for r in reader]
        assert reader.damage is None
        return found


def resumed(path: Path) -> list[Resumed]:
    """Return the lines that say that the session went on."""
    with open_log(path) as file:
        lines = [json.loads(line) for line in file]
    return [Resumed.model_validate(line) for line in lines if line["event"] == "resumed"]


@pytest.mark.parametrize("suffix", ["jsonl", "gz"])
def test_a_session_cut_at_25_random_bytes_comes_to_the_same_end(
    tmp_path: Path, counter: SimpleNamespace, suffix: str
) -> None:
    """Whatever was lost is played again; the log verifies to its end and tells where it was joined."""
    path = counter.write(tmp_path / f"log.{suffix}", decisions=DECISIONS)
    whole, data, rng = essence(path), path.read_bytes(), random.Random(1)
    with LogReader(path) as reader:
        assert sum(1 for _ in reader) == DECISIONS
        assert reader.outcome is not None
        final = whole[-1][2]
    for _ in range(25):
        path.write_bytes(data[: rng.randrange(len(data) // 4, len(data) - 40)])
        before = replay(path, counter.make)
        assert not before.good
        found = resume(path, counter.make)
        assert found.writer.n == before.decisions
        assert (found.last.n if found.last else 0) == before.decisions
        assert go_on(path, counter, found) == final
        assert replay(path, counter.make).verdict is Verdict.VERIFIED
        assert essence(path) == whole
        assert [joint.n for joint in resumed(path)] == [before.decisions]


def test_a_session_can_be_resumed_twice_and_says_what_was_dropped(tmp_path: Path, counter: SimpleNamespace) -> None:
    """13 bytes of a cut line, then nothing."""
    path = counter.write(tmp_path / "log", decisions=5, end=False)
    path.write_bytes(path.read_bytes() + b'{"event":"dec')
    resume(path, counter.make).writer.close()
    found = resume(path, counter.make)
    assert found.report.decisions == 5
    go_on(path, counter, found)
    with LogReader(path) as reader:
        assert sum(1 for _ in reader) == DECISIONS
    assert [(joint.n, joint.dropped, joint.ending) for joint in resumed(path)] == [(5, 13, None), (5, 0, None)]


def test_a_block_of_nuls_at_the_end_is_taken_off(tmp_path: Path, counter: SimpleNamespace) -> None:
    """What a power cut leaves; with whole lines behind it the log is left alone."""
    path = counter.write(tmp_path / "log", decisions=5, end=False)
    good = path.read_bytes()
    path.write_bytes(good + bytes(3000))
    go_on(path, counter, resume(path, counter.make))
    assert replay(path, counter.make).verdict is Verdict.VERIFIED
    lines = good.splitlines(keepends=True)
    bad = b"".join(lines[:4]) + bytes(2 << 20) + b"\n" + b"".join(lines[4:])
    path.write_bytes(bad)
    with pytest.raises(LogError, match=r"damaged before its end: line 5 \(decision 4\): nuls"):
        resume(path, counter.make)
    assert path.read_bytes() == bad


def test_a_lost_newline_is_put_back(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The last line is whole without it, and nothing is played twice."""
    path = counter.write(tmp_path / "log", decisions=5, end=False)
    path.write_bytes(path.read_bytes()[:-1])
    found = resume(path, counter.make)
    assert found.writer.n == 5
    go_on(path, counter, found)
    assert replay(path, counter.make).verdict is Verdict.VERIFIED


def test_an_interrupted_session_goes_on_and_one_that_is_over_does_not(tmp_path: Path, counter: SimpleNamespace) -> None:
    """The outcome that came from outside is taken off and told; the end of the rules stays."""
    halt = InstructionRecord.of(HALT_INSTRUCTION)
    for ending in (Ending.RULES, Ending.HALT, Ending.LIMIT, Ending.INTERRUPTED, Ending.ERROR):
        path, engine = tmp_path / ending, counter.engine()
        engine.reset(998)
        with LogWriter(path, counter.header(998)) as log:
            if ending is Ending.HALT:
                record = DecisionRecord(n=1, cartridge="counter", instruction=halt, state=engine.state_hash())
            else:
                record = counter.decision(1, engine, 2)
            log.decision(record)
            detail = "a thousand" if ending is Ending.RULES else ""
            log.outcome(Outcome(decisions=1, ending=ending, detail=detail, summary=counter.summary(engine)))
        if ending in (Ending.RULES, Ending.HALT):
            with pytest.raises(LogError, match=f"the session is over: {ending}"):
                resume(path, counter.make)
            assert replay(path, counter.make).verdict is Verdict.VERIFIED
        else:
            resume(path, counter.make).writer.close()
            with LogReader(path) as reader:
                assert sum(1 for _ in reader) == 1
                assert (reader.outcome, resumed(path)[0].ending) == (None, ending)


def test_a_log_that_is_damaged_or_differs_is_left_alone(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Changed, missing and forged lines are evidence; nothing is taken off."""
    path = counter.write(tmp_path / "log", decisions=9, end=False)
    good = path.read_bytes()
    lines = good.splitlines(keepends=True)
    for bad in (good.replace(b'"n":4', b'"n":5'), b"".join(lines[:4] + lines[5:])):
        path.write_bytes(bad)
        with pytest.raises(LogError, match="damaged before its end: line 5"):
            resume(path, counter.make)
        assert path.read_bytes() == bad
    path.write_bytes(good)
    counter.forge(path, 5, state="s0.0")
    with pytest.raises(LogError, match="different: decision 4: state"):
        resume(path, counter.make)


def test_a_log_that_is_being_written_cannot_be_resumed(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Nor one that is not there, nor a compressed one under another name."""
    with LogWriter(tmp_path / "log", counter.header()), pytest.raises(LogError, match="written by another session"):
        resume(tmp_path / "log", counter.make)
    with pytest.raises(LogError, match="no file"):
        resume(tmp_path / "no", counter.make)
    assert not (tmp_path / "no").exists()
    compressed = counter.write(tmp_path / "log.gz", end=False).rename(tmp_path / "log.old")
    with pytest.raises(LogError, match=r"does not end in \.gz"):
        resume(compressed, counter.make)


def test_a_redacted_log_goes_on_with_its_salt_only(tmp_path: Path, counter: SimpleNamespace) -> None:
    """Another salt, or none, would make hashes that do not compare."""
    path, engine, salt = tmp_path / "log", counter.engine(), "ab" * 16
    engine.reset(7)
    with LogWriter(path, counter.header(), redact=Redactor(salt)) as log:
        log.decision(counter.decision(1, engine, 1), prompt=[1, 2])
    for wrong in (None, Redactor()):
        with pytest.raises(UsageError, match="was redacted; give its salt again"):
            resume(path, counter.make, redact=wrong)
    found = resume(path, counter.make, redact=Redactor(salt))
    with found.writer as log:
        log.decision(counter.decision(2, found.engines["counter"], 1), prompt=[1, 2])
    with LogReader(path) as reader:
        hashes = [record.redacted for record in reader]
    assert hashes[0] == hashes[1]
